"""``BindWriter``: the context for writing one bind, passed to the ``source`` of its record.

``source(write, *operands, **attrs)``, with ``write`` a BindWriter and operands as texts, returns

- a text: the right side of an assignment to the result, or to all results;
- a tuple of texts, one for each result, which replace the results wherever these are used;
- None: it has written complete statements, with ``write.line`` and ``write.block``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from letir.ast.attrs import Required, token
from letir.ast.checker import retype
from letir.ast.terms import Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import ExportError
from letir.source.numpy_literals import literal_text

# On 0-d operands Python's operators use NumPy's scalars, which differ from the ufuncs: complex
# products are contracted, powers use another algorithm, and integer overflow warns.
_EXACT_ON_SCALARS = frozenset(["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!="])

_NAMESPACES = ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft"))


class BindWriter:
    """One bind with the types of its operands, and methods for writing it."""

    def __init__(self, writer, bind: Bind, operands: list[str]):
        self.writer, self.bind, self.operands = writer, bind, operands

    # ---- types of operands ----

    def type(self, position: int) -> ArrayType | None:
        """The type of an operand; None if it is unknown, or if the operand is None."""
        aval = self.bind.args[position].type
        return aval if isinstance(aval, ArrayType) else None

    def is_array(self, position: int) -> bool:
        """Whether an operand is certainly an array or a NumPy scalar, not a Python number."""
        aval = self.type(position)
        if type(self.bind.args[position]) is not Local or aval is None or aval.weak:
            return False
        return bool(aval.shape) or aval.dtype.kind != "b"  # Python's True has type bool[] as well

    def may_be_none(self, position: int) -> bool:
        """Whether an operand may be ``Undef``, written as None in the source."""
        return self.operands[position] in self.writer.nullable

    def is_exact_infix(self, symbol: str) -> bool:
        """Whether Python's operator gives the same bits as the ufunc on these operands."""
        avals = [self.type(i) for i in range(len(self.bind.args))]
        arrays = [aval for i, aval in enumerate(avals) if self.is_array(i)]
        has_axes = any(aval.shape for aval in arrays)
        if symbol == "**":
            return has_axes and None not in avals and self.is_exact_power(*avals)
        if has_axes or symbol == "@":  # on arrays Python's operator is the ufunc
            return has_axes
        real = all(aval is not None and aval.dtype.kind in "fiu" for aval in avals)
        has_float = any(aval.dtype.kind == "f" for aval in arrays)
        return real and has_float and symbol in _EXACT_ON_SCALARS

    def is_exact_power(self, base: ArrayType, exponent: ArrayType) -> bool:
        """Whether ``**`` on these arrays equals np.power.

        Not for booleans, half precision and complex numbers, nor for scalar exponents for which
        NumPy may use a square root or a reciprocal.
        """
        if {base.dtype.char, exponent.dtype.char} & set("?eFD"):
            return False
        power = self.bind.args[1]
        return bool(exponent.shape) or (type(power) is Const and power.value not in (0.5, 1, -1))

    # ---- texts ----

    def literal(self, value: Any) -> str:
        """The expression of a constant or an attribute."""
        return literal_text(value, self.writer.indent)

    def call(self, function: str, *operands: str, **attrs: Any) -> str:
        """A call with the attributes that differ from the defaults as keywords."""
        defaults = self.bind.op.attrs
        keywords = [
            f"{name}={self.literal(value)}"
            for name, value in attrs.items()
            if name not in defaults
            or defaults[name] is Required
            or token(defaults[name])
            != token(value)  # 0, 0.0 and False are equal, but differ as texts
        ]
        return f"{function}({', '.join([*operands, *keywords])})"

    def numpy_call(self, *operands: str, **attrs: Any) -> str:
        """A call of the record's NumPy function. Raises ExportError if there is none."""
        return self.call(self.numpy_name(), *operands, **attrs)

    def numpy_name(self) -> str:
        """The dotted name of the record's NumPy function."""
        op = self.bind.op
        for function in op.numpy if not op.is_user_defined else ():
            for name in (op.name, function.__name__):
                for module, prefix in _NAMESPACES:
                    # by identity: a name may mean another function in NumPy
                    if getattr(module, name, None) is function:
                        return f"{prefix}.{name}"
        raise ExportError(
            f"to_source: {op.name} has no form in NumPy\n"
            "  give its record one: letir.primitive(..., source='2 * {0}'), "
            "or source=function(write, *operands, **attrs)"
        )

    def constant(self, array: Any) -> str:
        """The expression of an array constant, a copy that the caller may change."""
        name = self.bind.binders[0].name if self.bind.binders else None
        return self.writer.module.constant(array, name)

    def helper(self, text: str) -> str:
        """The name of a helper function with this text, added to the module."""
        return self.writer.module.helper(text)

    def imported(self, function: Callable) -> str | None:
        """The name under which a user's function is imported; None if it cannot be."""
        return self.writer.imported(function)

    def function(self, fn: Lambda, name: str, about: str) -> str:
        """The name of a module function that computes ``fn``."""
        return self.writer.function(fn, name, about)

    def body(self, fn: Lambda, operands: Sequence[str], into: Sequence | None = None) -> tuple:
        """Write the binds of ``fn`` inline, and return the texts of its results."""
        types = [self.type(i) if i < len(self.bind.args) else None for i in range(len(operands))]
        if any(kind not in (None, p.type) for kind, p in zip(types, fn.params, strict=True)):
            pairs = zip(types, fn.params, strict=True)
            # source forms depend on the types of this call; the body was recorded for other types
            fn = retype(fn, *[p.type if kind is None else kind for kind, p in pairs])
        return self.writer.body(fn, operands, into)

    # ---- statements ----

    def results(self, *, may_be_none: bool = False) -> list[str | None]:
        """Names for the results, to be assigned by statements; None for unused results."""
        base = self.bind.op.name.rpartition(".")[2]
        return [self.writer.binder(b, may_be_none, base) for b in self.bind.binders]

    def result(self) -> str:
        """The name of the only result, to be assigned by statements."""
        return self.results()[0] or "_"

    @contextmanager
    def defined(self, operands: Sequence[str]) -> Iterator[None]:
        """A context in which these operands are known not to be None."""
        nullable = self.writer.nullable
        known = nullable.intersection(operands)
        nullable -= known
        yield
        nullable |= known

    def named(self, name: str) -> str:
        """A new name for a temporary."""
        return self.writer.names.numbered(name)

    def line(self, text: str) -> None:
        """Write a statement."""
        self.writer.line(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A context that writes ``head`` and indents the statements written inside."""
        with self.writer.block(head):
            yield

    @property
    def place(self) -> str:
        """The bind's location in the user's code, for messages."""
        return f"{self.bind.source.short}: " if self.bind.source else ""
