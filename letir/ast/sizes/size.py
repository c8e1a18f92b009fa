"""``Size``: a symbolic size, a polynomial in names that stand for sizes.

Sums, products and quotients of sizes are sizes; other arithmetic makes them traced numbers. A
comparison whose answer depends on the values of the names is answered by a guard, or refused
(``SizeReads``).
"""

import math
import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any, final

import numpy as np
from attrs import field, frozen

from letir.ast import LATE_BOUND
from letir.ast.sizes.size_reads import (
    SIZE_READS,
    answer_by_guard,
    note_least,
    note_read,
    traced_operator,
)
from letir.errors import DTypeError, ShapeError, TraceError

# words with another meaning in the text of a program
DTYPE_NAMES = frozenset(np.dtype(c).name for c in "?bhilBHILefdFD")
_NO_SIZE_NAMES = frozenset(["None", "True", "False", "Undef", "nan", "inf", "complex", "lambda"])


def _ordered_by(compare: Callable) -> Callable:
    """A comparison method for sizes, an error if the answer depends on their values."""

    def ordered(self, other):
        if not issubclass(type(other), Size | int | float | np.integer):
            return NotImplemented  # a traced value answers for itself
        difference = _difference_to_zero(compare, self, other)
        answer = (
            None if difference is None else LATE_BOUND["compare_with_zero"](compare, difference)
        )
        if answer is not None:
            note_read(f"whether {self} is less than {other}", True)
            return answer
        answer = answer_by_guard(self, compare, other)
        if answer is not None:
            return answer
        note_read(f"whether {self} is less than {other}")
        raise ShapeError(
            f"cannot tell whether {self} is less or greater than {other}\n"
            f"  pass a number for the size, or {_undecided_advice(note_least(compare, difference))}"
        )

    return ordered


def _undecided_advice(least: tuple[str, int] | None) -> str:
    """The advice in the error of an undecided comparison: how to make it the same for all sizes."""
    if least is None:
        return "avoid the comparison"
    larger = f"{least[0]}+{least[1]}"
    return f"{larger} for it if it is always at least {least[1]}: ShapeDtype(('{larger}',))"


def _difference_to_zero(compare: Callable, size: "Size", other: Any) -> "Size | int | None":
    """A size d for which ``compare(d, 0)`` is ``compare(size, other)``; None if there is none."""
    if issubclass(type(other), float):
        if not math.isfinite(other):
            return None
        other = math.ceil(other) if compare in (lt, ge) else math.floor(other)
    return size - (other if type(other) is Size else int(other))


class Quotient(str):
    """A name for ``of // by``, which is not a polynomial."""

    of: "Size"
    by: int

    def __new__(cls, of: "Size", by: int) -> "Quotient":
        text = str(of) if len(of.terms) == 1 else f"({of})"
        result = super().__new__(cls, f"({text}//{by})")
        result.of, result.by = of, by
        return result

    def __reduce__(self):
        return Quotient, (self.of, self.by)


def _floor_quotient(size: Any, by: int) -> Any:
    """``size // by`` for a positive number; a quotient with a remainder becomes a name."""
    if type(size) is not Size:
        return size // by
    nested = [name for names, _ in size.terms for name in names if type(name) is Quotient]
    if len(nested) == 1 and size.terms[0] == ((nested[0],), 1) and len(size.names) == 1:
        (inner,) = nested  # (n//2 + 3)//4 is (n + 6)//8
        return _floor_quotient(inner.of + inner.by * (size - Size.named(inner)), inner.by * by)
    whole = Size.from_coefficients({names: c // by for names, c in size.terms})
    rest = Size.from_coefficients({names: c % by for names, c in size.terms})
    if type(rest) is not Size:
        return whole
    if by == 2 and rest.terms[-1] == ((), 1):  # one of several forms of the larger half
        return whole + (rest - 1) - _floor_quotient(rest - 1, 2)
    return whole + Size.named(Quotient(rest, by))


def _value_of_name(name: str, sizes: dict) -> Any:
    """The value of a name or a quotient for these values of names; others stay symbolic."""
    if type(name) is Quotient:
        return name.of.substitute(sizes) // name.by
    return sizes[name] if name in sizes else Size.named(name)


_MAX_POWER = 4  # higher powers are traced numbers
_MAX_TERMS = 4096  # of a product: the terms of (a+b)*(c+d)*... double with each factor
_NUMBERS = (int, float, np.integer)


_add_numbers, _multiply_numbers = traced_operator("add"), traced_operator("mul")
_subtract, _subtract_from = traced_operator("sub"), traced_operator("sub", True)
_divide_numbers, _mod_numbers = traced_operator("floordiv"), traced_operator("mod")
_raise_numbers = traced_operator("pow")


def _checked_terms(terms: Any) -> Any:
    """The terms of a size, or of the size with this name. Raises DTypeError for anything else."""
    if type(terms) is str:
        return Size.named(terms).terms
    if type(terms) is tuple and all(type(t) is tuple and len(t) == 2 for t in terms):
        return terms
    raise DTypeError(
        f"Size({terms!r}): a size has a name, Size('n'), or is computed: 2 * Size('n')\n"
        "  in a shape its name suffices: ShapeDtype(('n', 64))"
    )


@final
@frozen(eq=False, repr=False)
class Size:
    """A symbolic size: a polynomial in names with integer coefficients.

    ``terms``: sorted pairs (names of the monomial, coefficient), without zero coefficients. A
    quotient such as ``n // 2`` counts as a name.

    >>> n = Size.named("n")
    >>> n + 1, 2 * n, n - n, n * n, (2 * n + 1) // 2, n % 2
    (n+1, 2*n, 0, n*n, n, -2*(n//2)+n)
    """

    terms: tuple[tuple[tuple[str, ...], int], ...] = field(converter=_checked_terms)

    def __eq__(self, other):
        if SIZE_READS.get() is not None and (
            type(other) is Size or issubclass(type(other), _NUMBERS)
        ):
            return self._is_equal(other)  # != asks here too
        return self.terms == other.terms if type(other) is Size else NotImplemented

    def _is_equal(self, other):
        """Whether two sizes are equal, while reads of sizes are watched."""
        difference = sizes_differ(self, other)
        if difference is None:
            answer = answer_by_guard(self, eq, other)
            if answer is not None:
                return answer
        note_read(f"whether {self} is {other}", difference is not None)
        return self.terms == other.terms if type(other) is Size else NotImplemented

    def __hash__(self):
        if SIZE_READS is not None and SIZE_READS.get() is not None:  # None: Python ends
            note_read(f"the hash of {self}")
        return hash(self.terms)

    __class__ = property(lambda self: int)  # for isinstance(n, int); type(n) is Size

    def __reduce__(self):
        return Size, (self.terms,)

    @classmethod
    def named(cls, name: str) -> "Size":
        """The size called ``name``, a word.

        Raises ShapeError if it is not a word, or has another meaning in the text of a program.
        """
        if type(name) is Quotient:
            return cls((((name,), 1),))
        is_word = isinstance(name, str) and re.fullmatch(r"[^\W\d]\w*", name)
        if not is_word or name in _NO_SIZE_NAMES | DTYPE_NAMES:
            raise ShapeError(f"{name!r} cannot name a size\n  take a word such as n or batch_size")
        return cls((((name,), 1),))

    @staticmethod
    def from_coefficients(coefficients: dict) -> "Size | int":
        """The polynomial with these coefficients by monomial, as an int if it is constant."""
        terms = tuple(sorted((names, c) for names, c in coefficients.items() if c))
        if not any(names for names, _ in terms):
            return sum(c for _, c in terms)
        # highest degree first, the constant last: eval/arguments.py matches on this order
        return Size(tuple(sorted(terms, key=lambda term: (-len(term[0]), term[0]))))

    @property
    def names(self) -> frozenset[str]:
        """The names in the polynomial."""
        result: set[str] = set()
        for names, _ in self.terms:
            for name in names:
                result.update(name.of.names if type(name) is Quotient else (name,))
        return frozenset(result)

    @property
    def is_internal(self) -> bool:
        """Whether the size is known only after a loop has run.

        Its name has a leading underscore, and two such sizes of the same name need not be equal.
        """
        return any(name.startswith("_") for name in self.names)

    def evaluate(self, sizes: dict[str, int]) -> int:
        """The value of the polynomial for these values of its names."""
        return sum(
            c * math.prod(_value_of_name(name, sizes) for name in ns) for ns, c in self.terms
        )

    def substitute(self, sizes: dict) -> "Size | int":
        """The size with values for some of its names."""
        total: Any = 0
        for names, factor in self.terms:
            product = factor
            for name in names:
                product = product * _value_of_name(name, sizes)
            total = total + product
        return total

    def number(self) -> Any:
        """The size as a traced Python number. Raises TraceError if nothing in the active trace has
        this size.
        """
        return LATE_BOUND["number_of_size"](self)

    # ---- arithmetic ----

    def __add__(self, other):
        if not issubclass(type(other), Size | int):
            return _add_numbers(self, other)
        sums = dict(self.terms)
        for names, c in terms_of(other):
            sums[names] = sums.get(names, 0) + c
        return Size.from_coefficients(sums)

    def __mul__(self, other):
        if not issubclass(type(other), Size | int):
            return _multiply_numbers(self, other)
        products: dict = {}
        factors = terms_of(other)
        if len(self.terms) * len(factors) > _MAX_TERMS:
            raise ShapeError(
                f"a product of sizes would have up to {len(self.terms) * len(factors)} terms\n"
                "  give sizes such as n+m a name of their own"
            )
        for names, c in self.terms:
            for more, d in factors:
                key = tuple(sorted(names + more))
                products[key] = products.get(key, 0) + c * d
        return Size.from_coefficients(products)

    def __floordiv__(self, other):
        if type(other) is not int:
            result = exact_quotient(self, other) if type(other) is Size else None
            return _divide_numbers(self, other) if result is None else result
        if other == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        return _floor_quotient(-self, -other) if other < 0 else _floor_quotient(self, other)

    def __mod__(self, other):
        return self - other * (self // other) if type(other) is int else _mod_numbers(self, other)

    def __divmod__(self, other):
        return self // other, self % other

    def __pow__(self, other):
        if type(other) is int and other < 0:
            return (self * 1.0) ** float(other)
        if type(other) is not int or other > _MAX_POWER:
            return _raise_numbers(self, other)
        return math.prod([self] * other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -1 * other if issubclass(type(other), Size | int) else _subtract(self, other)

    def __rsub__(self, other):
        return -self + other if issubclass(type(other), Size | int) else _subtract_from(self, other)

    __truediv__, __rtruediv__ = traced_operator("truediv"), traced_operator("truediv", True)
    __rfloordiv__, __rmod__ = traced_operator("floordiv", True), traced_operator("mod", True)
    __rpow__ = traced_operator("pow", True)

    def __pos__(self):
        return self

    def __round__(self, ndigits=None):
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__  # as of any integer

    def __abs__(self):
        return self if self >= 0 else -self

    # ---- NumPy ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        numbers = [x.number() if type(x) is Size else x for x in inputs]
        return getattr(ufunc, method)(*numbers, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return LATE_BOUND["numpy_call_on_size"](self, func, args, kwargs)

    # Otherwise range(n) would fix one size in a program that is for all sizes.
    def _as_number(self, *others):
        """Raise TraceError: the operation needs a number."""
        note_read(f"the number {self}")
        raise TraceError(
            f"the size {self} has a name but no value while this is traced\n"
            "  pass the number as a static argument, or trace with concrete arrays"
        )

    __index__ = __int__ = __float__ = __complex__ = _as_number

    def __bool__(self):
        answer = sizes_differ(self, 0)
        if answer is None:
            answer = answer_by_guard(self, ne, 0)
        note_read(f"whether {self} is 0", answer is not None)
        return self._as_number() if answer is None else answer

    __lt__, __le__, __gt__, __ge__ = map(_ordered_by, (lt, le, gt, ge))

    def __repr__(self):
        text = ""
        for names, c in self.terms:
            sign = "-" if c < 0 else "+" if text else ""
            factors = ([str(abs(c))] if abs(c) != 1 or not names else []) + list(names)
            text += sign + "*".join(factors)
        return text

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))  # printers of Python's integers compare them with numbers


def sizes_differ(size: Size, other: Any) -> bool | None:
    """Whether two sizes differ for all values of the names; None if it depends on the values."""
    if not issubclass(type(other), Size | int | float | np.integer):
        return True
    if issubclass(type(other), float) and not other.is_integer():
        return True
    difference = size - (other if type(other) is Size else int(other))
    if type(difference) is int:
        return bool(difference)
    compared = LATE_BOUND["compare_with_zero"]
    return True if compared(gt, difference) or compared(lt, difference) else None


def exact_quotient(size: Size | int, by: Size | int) -> Size | int | None:
    """``size / by`` if it is a size for all values of the names, else None."""
    if type(by) is int and type(size) is int:
        return None if by == 0 or size % by else size // by
    shared, factor = terms_of(by)[0]
    result: dict = {}
    rest: Any = size
    while type(rest) is Size or rest != 0:  # long division: each step removes the highest term
        names, c = terms_of(rest)[0]
        remaining = list(names)
        for name in shared:
            if name not in remaining:
                return None
            remaining.remove(name)
        if factor == 0 or c % factor or tuple(remaining) in result:
            return None
        result[tuple(remaining)] = c // factor
        rest = rest - Size.from_coefficients({tuple(remaining): c // factor}) * by
    return Size.from_coefficients(result)


def terms_of(size: Size | int) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The terms of a size or a number."""
    return size.terms if type(size) is Size else (((), size),)
