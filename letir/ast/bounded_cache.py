"""``BoundedCache``: a dict of bounded size for values that can be recomputed at any time."""


class BoundedCache(dict):
    """A dict of at most ``max_entries`` entries, which is emptied when one more is set.

    Lookups are the same as in a dict. On hot paths bind the method once, ``find = cache.get``: it
    is as fast as a dict's, while ``cache.get(key)`` takes 12 ns more. All entries are dropped at
    once, because tracking the order of use would slow down every hit. Threads may read and write at
    the same time; of two threads that compute the same entry, the later one wins.

    >>> cache = BoundedCache(2)
    >>> cache["a"], cache["b"], cache["c"] = 1, 2, 3
    >>> cache
    {'c': 3}
    """

    __slots__ = ("max_entries",)

    def __init__(self, max_entries: int):
        super().__init__()
        self.max_entries = max_entries

    def __setitem__(self, key, value):
        if len(self) >= self.max_entries:
            self.clear()
        super().__setitem__(key, value)

    def __reduce__(self):
        return BoundedCache, (self.max_entries,)  # a copy starts empty
