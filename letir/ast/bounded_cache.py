"""``BoundedCache``: what may be computed anew at any time, of which only so much is kept."""


class BoundedCache(dict):
    """A dict of at most ``most`` entries, which is emptied when one more is set.

    Reading is a dict's own code. Where every nanosecond counts, keep the bound method, ``find =
    cache.get``: a call of it is as fast as of a dict's, while ``cache.get(key)`` takes 12 ns more.
    All entries are forgotten at once because an order of use would cost every hit. Threads may read
    and set at the same time; what one has just set, another that computed it too replaces.

    >>> cache = BoundedCache(2)
    >>> cache["a"], cache["b"], cache["c"] = 1, 2, 3
    >>> cache
    {'c': 3}
    """

    __slots__ = ("most",)

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __setitem__(self, key, value):
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)

    def __reduce__(self):
        return BoundedCache, (self.most,)  # a copy begins empty
