"""``Names``: unique identifiers for one function, none of them a Python keyword."""

import builtins
import keyword
import re
import unicodedata

from letir.errors import ExportError

# builtins that generated functions use; module names hide no builtins at all
_USED = (
    *("_", "np", "complex", "float", "hasattr", "int", "len", "map", "range", "repr", "slice"),
    *("tuple", "zip", "ValueError"),
)
RESERVED = frozenset([*_USED, *keyword.kwlist])


class Names:
    """Hands out identifiers for one scope.

    ``outer``: the names of the enclosing module, which this scope must not hide; None for the scope
    of a module itself.

    >>> names = Names()
    >>> [names.fresh(n) for n in ("x", "x", "layers.0.w", "lambda", "2d")], names.numbered("sum")
    (['x', 'x_1', 'layers_0_w', 'lambda_1', '_2d'], 'sum_1')
    """

    def __init__(self, outer: "Names | None" = None):
        self.outer = outer
        self.taken: set[str] = set()
        self.inner: set[str] = set()  # names used in inner scopes
        self.counts: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """``name`` as an identifier, with a number appended if it is taken."""
        base = nearest_identifier(name)
        return self.take(base) if self.is_free(base) else self.numbered(base)

    def numbered(self, name: str) -> str:
        """``name`` with the next number."""
        base = nearest_identifier(name)
        while True:
            count = self.counts[base] = self.counts.get(base, 0) + 1
            if self.is_free(f"{base}_{count}"):
                return self.take(f"{base}_{count}")

    def is_free(self, name: str) -> bool:
        """Whether a name is unused in this scope, outside and inside."""
        if name in self.taken or name in RESERVED or name in self.inner:
            return False
        if self.outer is None:
            return not hasattr(builtins, name)  # a local may hide a builtin that is not used
        return name not in self.outer.taken

    def exact(self, name: str) -> str:
        """``name`` itself, for a parameter that callers pass by keyword.

        Raises ExportError if the name has another meaning in the source.
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


def nearest_identifier(text: str) -> str:
    """The nearest valid identifier, in Python's normal form."""
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text))
    return name if name.isidentifier() else f"_{name}"
