"""Quick forms of Python numbers, and the facts about slots on which quick forms depend.

``quick_forms`` has the forms for arrays and NumPy scalars; see its docstring for the ``write`` of a
form.
"""

import cmath
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.terms import Bind, Const
from letir.ast.types import ArrayType
from letir.ops.as_numpy.quick_functions import draw_text

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
COMPARISONS = {
    **{"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="},
    **{"equal": "==", "not_equal": "!="},
}

# ---- facts ----

# A fact says that a slot holds a Python float, a Python int, a NumPy scalar (not a 0-d array), or
# an array that owns its memory, or a Python complex number that an operator of Python gives. The
# first two facts are the names of the classes in the text.
FLOAT, INT, SCALAR, OWNED, COMPLEX = "float", "int", "scalar", "owned", "complex"
NUMBER_FACTS = {float: FLOAT, int: INT}
NUMBERS = (FLOAT, INT)
# Python's numbers that NumPy converts faster than its own, and the dtypes of these
_DTYPES_OF_FACTS = {FLOAT: _FLOAT, COMPLEX: np.dtype(complex)}
_GIVE_COMPLEX = ("complex_math_function", "python_operator")
_GIVE_NUMBERS = ("weaken", "math_function", "math_reduction", "python_operator")
_ARRAY_MAKERS = ("cast", "clip", "concatenate", "copy", "full", "sort", "stack", "where", "zeros")
_PLAIN_VIEWS = ("index", "reshape", "transpose")
_GIVE_SCALARS = ("sum", "prod", "max", "min", "mean", "var", "std", "norm", "dot", "matmul")


def number_fact(aval: Any) -> str | None:
    """The fact of a Python number of this type, None for other types."""
    if type(aval) is not ArrayType or not aval.weak:
        return None
    return FLOAT if aval.dtype == _FLOAT else INT if aval.dtype == _INT else None


def is_of_fact(dtype: np.dtype, fact: str | None) -> bool:
    """Whether NumPy converts a Python number of this fact to this dtype without a change."""
    return fact in _DTYPES_OF_FACTS and _DTYPES_OF_FACTS[fact] == dtype


def result_fact(write: Any, bind: Bind) -> str | None:
    """The fact about the result of a bind with one result, see ``NUMBER_FACTS``."""
    aval, name = write.result, bind.op.name
    if aval is None:
        return None
    if aval.weak:
        if name in _GIVE_COMPLEX and aval.dtype.kind == "c":
            return COMPLEX
        return number_fact(aval) if name in _GIVE_NUMBERS else None
    if aval.shape:
        return OWNED if bind.op.memory == "new" else None
    if hasattr(bind.op.impl, "ufunc") or name in _GIVE_SCALARS:
        return SCALAR
    if name == "cast":
        if write.is_stacked and is_of_fact(aval.dtype, write.fact(0)):
            return str(write.fact(0))
        return SCALAR if write.fact(0) in (*NUMBERS, COMPLEX, SCALAR) else None
    return SCALAR if name == "index" and _selects_one(bind) else None


def casts_for_stack(steps: Sequence[tuple], results: Iterable[int]) -> frozenset[int]:
    """The numbers of the casts whose results are used by ``stack`` alone.

    Such a cast may leave a Python number as it is: ``stack`` makes the same array of it.
    ``steps``: (name of the operation, slots read, slots written); ``results``: the slots that hold
    the results in the end. Linear time.
    """
    used = set(results)  # the slots that later steps read in another way
    result = []
    for n in range(len(steps) - 1, -1, -1):
        name, read, written = steps[n]
        if name == "cast" and used.isdisjoint(written):
            result.append(n)
        used.difference_update(written)
        if name != "stack":
            used.update(read)
    return frozenset(result)


def makes_array(bind: Bind) -> bool:
    """Whether the form of an operation makes an array, if the result has axes."""
    return bind.op.name in _ARRAY_MAKERS


def makes_plain_view(bind: Bind) -> bool:
    """Whether the result is part or all of the first operand's memory, each element once."""
    if bind.op.name == "index":
        return not _index_copies(bind)
    return bind.op.name in _PLAIN_VIEWS and len(bind.args) == 1


def copies_elements(bind: Bind) -> bool:
    """Whether nothing refers to the memory of the operands after an operation."""
    op = bind.op
    if op.memory == "new":
        return not (op.effect or op.is_user_defined or op.holds_lambdas)
    return op.role == "guard" or (op.name == "index" and _index_copies(bind))


def _index_copies(bind: Bind) -> bool:
    """Whether an index makes an array of its own, or a scalar.

    A place that is a number of Python makes a view, one that is a number of NumPy does not.
    """
    places = [place.type for place in bind.args[1:]]
    has_axes = any(aval is not None and aval.shape for aval in places)
    return has_axes or _selects_one(bind, (int, Here))


def _selects_one(bind: Bind, places: tuple[type, ...] = (int,)) -> bool:
    """Whether an index selects an element, not a 0-d array. ``places``: the types of its parts."""
    item, aval = bind.attrs["item"], bind.args[0].type
    if aval is None:
        return False
    entries = item if type(item) is tuple else (item,)
    return len(entries) == aval.ndim and all(type(entry) in places for entry in entries)


# ---- Python numbers ----


def number_form(write: Any, bind: Bind, following: Bind) -> tuple[str, str] | None:
    """(expression, fact) of a bind of Python numbers and the ``weaken`` that follows it.

    NumPy's operators on Python numbers give the same bits as Python's operators.
    """
    fact = number_fact(following.binders[0].type)
    if following.op.name != "weaken" or fact is None:
        return None
    if bind.op.role == "own_draw":
        text = draw_text(write, **bind.attrs) if not bind.attrs["shape"] else None
        return None if text is None else (f"{fact}({text})", fact)
    facts = [write.fact(i) for i in range(len(bind.args))]
    if not all(kind_of_number in NUMBERS for kind_of_number in facts):
        return None
    form = _NUMBER_FORMS.get(bind.op.name)
    # all operands are integers, or at least one is a float local: constants have been folded
    if form is None or (FLOAT in facts) != (fact == FLOAT):
        return None
    text = form(write)
    return None if text is None else (text, fact)


def spreading_operands(bind: Bind) -> tuple:
    """The operands that make the result infinite or nan if they are infinite or nan."""
    if bind.op.name == "div":  # an infinite divisor gives zero
        return bind.args[:1]
    return bind.args if bind.op.name in (*ARITHMETIC, "neg", "abs") else ()


def _number_operator(symbol: str) -> Callable:
    return lambda write: f"{write.operand(0)} {symbol} {write.operand(1)}"


def _number_div(write) -> str | None:
    """A quotient by a number other than zero, by which Python would raise."""
    divisor = write.bind.args[1]
    is_known = type(divisor) is Const and divisor.value
    return f"{write.operand(0)} / {write.operand(1)}" if is_known else None


def _integer_operator(symbol: str) -> Callable:
    """Python's operator, which agrees with NumPy's for integers and raises for a divisor of 0."""

    def form(write) -> str | None:
        if any(write.fact(i) != INT for i in range(2)):
            return None
        return f"{write.operand(0)} {symbol} {write.operand(1)}"

    return form


def _number_shift(symbol: str, most: int) -> Callable:
    """Python's shift by a known number of at most ``most`` bits."""

    def form(write) -> str | None:
        count = write.bind.args[1]
        is_known = type(count) is Const and type(count.value) is int and 0 <= count.value <= most
        return _integer_operator(symbol)(write) if is_known else None

    return form


def _number_power(write) -> str | None:
    """A square, which NumPy's power multiplies as well."""
    exponent = write.bind.args[1]
    if type(exponent) is Const and exponent.value == 2:
        return f"{write.operand(0)} * {write.operand(0)}"
    return None


def _number_extremum(ufunc: np.ufunc, symbol: str) -> Callable:
    """The smaller or larger number; the ufunc's result for nan and signed zeros."""

    def form(write) -> str | None:
        if write.fact(0) != write.fact(1):  # the class of the result would depend on the values
            return None
        x, y = write.operand(0), write.operand(1)
        other = f"{write.constant(ufunc)}({x}, {y}).item()"
        return f"{x} if {x} {symbol} {y} else {y} if {y} {symbol} {x} else {other}"

    return form


_NUMBER_FORMS: dict[str, Callable] = {
    **{name: _number_operator(symbol) for name, symbol in ARITHMETIC.items()},
    "neg": lambda write: f"-{write.operand(0)}",
    "abs": lambda write: f"abs({write.operand(0)})",
    # correctly rounded, like NumPy's; Python raises for negative numbers
    "sqrt": lambda write: f"{write.constant(math.sqrt)}({write.operand(0)})",
    "div": _number_div,
    "remainder": _integer_operator("%"),
    "floor_divide": _integer_operator("//"),
    **{name: _integer_operator(symbol) for name, symbol in _BITWISE.items()},
    "invert": lambda write: f"~{write.operand(0)}",
    "left_shift": _number_shift("<<", 63),
    "right_shift": _number_shift(">>", 1 << 62),
    "power": _number_power,
    "minimum": _number_extremum(np.minimum, "<"),
    "maximum": _number_extremum(np.maximum, ">"),
}


def math_function_form(write: Any, *, name: str, module: Any = math) -> str:
    """A call of the function of this name in ``math``, or in ``module``."""
    operands = ", ".join(map(write.operand, range(len(write.bind.args))))
    return f"{write.constant(getattr(module, name))}({operands})"


def complex_math_function_form(write: Any, *, name: str) -> str:
    """A call of ``cmath``'s function of this name."""
    return math_function_form(write, name=name, module=cmath)


def math_reduction_form(write: Any, *, name: str) -> str:
    """A call of ``math.fsum`` or ``math.hypot``."""
    operands = ", ".join(map(write.operand, range(len(write.bind.args))))
    listed = f"[{operands}]" if name == "fsum" else operands
    return f"{write.constant(getattr(math, name))}({listed})"


def python_operator_form(write: Any, *, operator: str, kind: str) -> str | None:
    """Python's operator, if the class of its result is certain."""
    facts = [write.fact(0), write.fact(1)]
    if kind == "complex" and operator in ("mul", "div"):
        symbol = "*" if operator == "mul" else "/"
        are_numbers = all(
            fact in (*NUMBERS, COMPLEX) or not is_local(write, i) for i, fact in enumerate(facts)
        )
        return f"{write.operand(0)} {symbol} {write.operand(1)}" if are_numbers else None
    if not all(fact in NUMBERS for fact in facts):
        return None
    symbol = {"div": "/", "floor_divide": "//", "remainder": "%", "right_shift": ">>"}.get(operator)
    if operator == "power" and facts == [FLOAT, INT]:
        symbol = "**"
    if symbol is None or kind != (FLOAT if operator == "div" or FLOAT in facts else INT):
        return None
    return f"{write.operand(0)} {symbol} {write.operand(1)}"


def number_test(write: Any, bind: Bind) -> str | None:
    """The comparison of two Python numbers by Python's operator."""
    symbol = COMPARISONS.get(bind.op.name)
    if write.plain or symbol is None or any(write.fact(i) not in NUMBERS for i in range(2)):
        return None
    # Python compares an int and a float exactly; NumPy makes a float of the int, which may be large
    are_mixed = write.fact(0) != write.fact(1) and all(is_local(write, i) for i in range(2))
    texts = [
        f"float({write.operand(i)})" if are_mixed and write.fact(i) == INT else write.operand(i)
        for i in range(2)
    ]
    return f"{texts[0]} {symbol} {texts[1]}"


def compares_numbers(write: Any, bind: Bind) -> bool:
    """Whether a bind compares Python's numbers, or the outcomes of two such comparisons."""
    if bind.op.name not in COMPARISONS:
        return False
    avals = [write.type(i) for i in range(2)]
    are_flags = all(aval is not None and aval.dtype == np.bool_ for aval in avals)
    return are_flags or all(write.fact(i) in NUMBERS for i in range(2))


def is_local(write: Any, i: int) -> bool:
    """Whether an operand is a value of the program, not a constant."""
    return type(write.bind.args[i]) is not Const
