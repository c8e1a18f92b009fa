"""``Names``: the identifiers of one function, none of them twice, none a word of Python's."""

import builtins
import keyword
import re
import unicodedata

from letir.errors import ExportError

# what the text of a function uses; a module hides nothing of Python's at all
_USED = (
    *("_", "np", "complex", "float", "hasattr", "int", "len", "map", "range", "repr", "slice"),
    *("tuple", "zip", "ValueError"),
)
RESERVED = frozenset([*_USED, *keyword.kwlist])


class Names:
    """Hands out identifiers for one scope.

    ``outer`` are the names of the module around it, which nothing here may hide; without it this is
    the scope of a module.

    >>> names = Names()
    >>> [names.fresh(n) for n in ("x", "x", "layers.0.w", "lambda", "2d")], names.numbered("sum")
    (['x', 'x_1', 'layers_0_w', 'lambda_1', '_2d'], 'sum_1')
    """

    def __init__(self, outer: "Names | None" = None):
        self.outer = outer
        self.taken: set[str] = set()
        self.inner: set[str] = set()  # names of the scopes within
        self.counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """``wanted`` as an identifier; with a number if it is taken."""
        base = identifier(wanted)
        return self.take(base) if self.is_free(base) else self.numbered(base)

    def numbered(self, wanted: str) -> str:
        """``wanted`` with the next number."""
        base = identifier(wanted)
        while True:
            count = self.counts[base] = self.counts.get(base, 0) + 1
            if self.is_free(f"{base}_{count}"):
                return self.take(f"{base}_{count}")

    def is_free(self, name: str) -> bool:
        """Whether nothing is called so, here, outside or inside."""
        # inner: a scope within has that name, and would hide what the module calls so from now on
        if name in self.taken or name in RESERVED or name in self.inner:
            return False
        if self.outer is None:
            return not hasattr(builtins, name)  # a local may hide a builtin that no text uses
        return name not in self.outer.taken

    def exact(self, name: str) -> str:
        """``name`` itself, by which callers pass a keyword argument. Raises ExportError if it means
        something else to the text of a function.
        """
        if name in RESERVED or not name.isidentifier():
            raise ExportError(
                f"to_source: the keyword argument {name!r} has a name that the source needs\n"
                "  record the function with another name for it"
            )
        return self.take(name)

    def take(self, name: str) -> str:
        """Mark a name as taken."""
        self.taken.add(name)
        if self.outer is not None:
            self.outer.inner.add(name)
        return name


def identifier(wanted: str) -> str:
    """The nearest identifier: what Python would read, which it normalises."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wanted))
    return name if name.isidentifier() else f"_{name}"
