"""Hypothesis strategies: ``arrays``, ``avals``, and ``programs``, which are Lambdas with arguments.

A program is a list of steps. Each step is a sample of an operation whose operands are replaced, one
by one, by values that the program has already, where they fit or can be made to fit. Steps are
plain data, so that Hypothesis shrinks a program by dropping them.
"""

import functools
import math
import warnings
from collections.abc import Collection
from operator import add

import numpy as np
from attrs import define, field, frozen
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from letir.ast.attrs import Here
from letir.ast.builder import LetBuilder, Value, result_types
from letir.ast.primitive import PRIMITIVES, Primitive, results_tuple
from letir.ast.terms import Lambda, Source
from letir.ast.types import PYTHON_NUMBERS, ArrayType, Undef, UndefType
from letir.errors import DTypeError, GuardError, MissingRule, TraceError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import compute
from letir.testing.control_sources import control_functions
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import Sample, applied_program
from letir.tracing.entry import trace

_DTYPES = tuple(np.dtype(c) for c in "?bhiqBHIQefdFD")
_ELEMENTS = {
    "b": st.booleans(),
    "i": st.integers(-9, 9),
    "u": st.integers(0, 9),
    "f": st.integers(-64, 64).map(lambda n: n / 8),
    "c": st.builds(complex, st.integers(-8, 8), st.integers(-8, 8)),
}
# drawn more often: evaluators are most likely wrong about aliases
VIEWS = ("index", "index_set", "index_add", "reshape", "transpose", "broadcast_to", "flip")
# operations that change their arguments are not drawn as steps
_DRAWN = [name for name, found in SAMPLES.items() if not any("program" in s.exempt for s in found)]
_MAX_VALUE = 1e4  # larger values are not used as operands
_MAX_OPERANDS, _MAX_RESULTS = 4, 6


def avals(
    dtypes: Collection = _DTYPES, *, max_axes: int = 3, max_length: int = 3
) -> st.SearchStrategy:
    """Types of small arrays (``ArrayType``), weak ones included; they shrink towards ``bool[]``.

    >>> from hypothesis import given
    >>> @given(avals(dtypes=[np.dtype("float32")], max_axes=2))
    ... def test_types_have_at_most_two_axes(kind):
    ...     assert kind.dtype == np.float32 and len(kind.shape) <= 2
    >>> test_types_have_at_most_two_axes()
    """
    shapes = numpy_strategies.array_shapes(
        min_dims=0, max_dims=max_axes, min_side=0, max_side=max_length
    )
    strong = st.builds(ArrayType, st.sampled_from(list(dtypes)), shapes)
    weak = [type_of(kind(0)) for kind in (int, float, complex) if np.dtype(kind) in dtypes]
    return st.one_of(strong, st.sampled_from(weak)) if weak else strong


def arrays(types: "ArrayType | st.SearchStrategy | None" = None) -> st.SearchStrategy:
    """Arrays of these types, of small finite numbers; a weak type gives a Python number.

    >>> from hypothesis import given
    >>> @given(arrays(ArrayType(float, (3,))))
    ... def test_squares_are_not_negative(x):
    ...     assert x.shape == (3,) and np.all(x * x >= 0)
    >>> test_squares_are_not_negative()
    """
    if types is None:
        types = avals()
    return (st.just(types) if isinstance(types, ArrayType) else types).flatmap(_arrays_of)


def _arrays_of(aval: ArrayType) -> st.SearchStrategy:
    elements = _ELEMENTS[aval.dtype.kind]
    if aval.weak:
        return elements.map(type(np.zeros((), aval.dtype).item()))
    return numpy_strategies.arrays(aval.dtype, aval.shape, elements=elements)


def programs(
    ops: Collection[str] | None = None,
    *,
    dtypes: Collection | None = None,
    max_steps: int = 12,
    control_flow: bool = False,
) -> st.SearchStrategy:
    """(Lambda, arguments): closed, well-typed programs of the operations ``ops`` (default: all).

    Every operation that has samples with operands of these dtypes is drawn; more than half of the
    programs contain a view, an index or an update; such binds also adapt operands to each other.
    Evaluating the program at the arguments causes no warnings. Programs shrink towards one
    operation on its own sample. ``control_flow``: programs of ``control_functions`` instead, of any
    operations.

    >>> from hypothesis import given
    >>> from letir.testing import assert_same
    >>> @given(programs(ops=("add", "tanh")))
    ... def test_replay_is_deterministic(program):
    ...     f, args = program
    ...     assert_same(f(*args), f(*args))
    >>> test_replay_is_deterministic()
    """
    if control_flow:
        return control_functions(max_steps=max(1, max_steps // 3)).map(_record_function)
    chosen = None if dtypes is None else frozenset(dtypes)
    names = [name for name in sorted(ops or _DRAWN) if _samples_with(name, chosen)]
    favoured = [name for name in VIEWS if name in names] or names
    name = st.one_of(st.sampled_from(names), st.sampled_from(names), st.sampled_from(favoured))
    picks = st.tuples(*[st.integers(0, 15)] * _MAX_OPERANDS)
    step = st.builds(ProgramStep, name, st.integers(0, 63), picks)
    # two lists, because a single one would hold six steps on average, whatever its maximum
    first = st.lists(step, max_size=max_steps - max_steps // 2)
    # either may be empty, or a program of one step in the second would not be the smallest
    steps = st.builds(add, first, st.lists(step, max_size=max_steps // 2)).filter(bool)
    return st.builds(program_of_steps, steps, st.integers(0, _MAX_RESULTS - 1), st.just(chosen))


def _record_function(program: tuple) -> tuple[Lambda, list]:
    """The program of a function, and its arguments."""
    function, args = program
    with np.errstate(all="ignore"):
        return trace(function, *args), args


@functools.cache
def _samples_with(name: str, dtypes: frozenset | None) -> list[Sample]:
    """The samples of an operation with these dtypes whose result types are known."""
    typed = [s for s in SAMPLES[name] if s.attrs.get("shape", ()) is not None]
    if dtypes is None:
        return typed
    has_complex = any(np.dtype(dtype).kind == "c" for dtype in dtypes)
    fitting = [s for s in typed if _dtypes_of(s) <= dtypes]
    return [s for s in fitting if has_complex or not _makes_complex(name, s)]


def _makes_complex(name: str, sample: Sample) -> bool:
    """Whether a result of an operation is complex, as a Fourier transform of real numbers is."""
    results = applied_program(PRIMITIVES[name], sample)[0].ret.args
    return any(r.type is not None and r.type.dtype.kind == "c" for r in results)


def _dtypes_of(sample: Sample) -> set:
    """The dtypes of the operands and of the attribute ``dtype``."""
    arrays = [arg for arg in sample.args if arg is not None and arg is not Undef]
    dtype = sample.attrs.get("dtype")
    return {type_of(array).dtype for array in arrays} | ({dtype} if dtype else set())


@frozen
class ProgramStep:
    """One operation: its name, the number of the sample, and a choice for each operand."""

    name: str
    sample: int
    picks: tuple[int, ...]


def program_of_steps(
    steps: list[ProgramStep], more: int, dtypes: frozenset | None = None
) -> tuple[Lambda, list]:
    """The program of these steps; its results are the last value and up to ``more`` before."""
    growth = _Growth()
    for number, step in enumerate(steps, start=1):
        growth.builder.source = Source("program.py", number)
        choices = _samples_with(step.name, dtypes)
        growth.grow(PRIMITIVES[step.name], choices[step.sample % len(choices)], step.picks)
    results = [item.value for item in growth.values[-1 - more :]]
    return growth.builder.build(results), growth.args


@frozen(eq=False)
class _Known:
    """A local of the program and its array value at the arguments.

    Only a ``usable`` one, of finite and moderate numbers, becomes an operand of further operations.
    """

    value: Value
    array: object
    usable: bool = True


@define(eq=False)
class _Growth:
    """A program under construction, evaluated at its arguments bind by bind."""

    builder: LetBuilder = field(factory=LetBuilder)
    args: list = field(factory=list)
    values: list[_Known] = field(factory=list)

    def grow(self, op: Primitive, sample: Sample, picks: tuple[int, ...]) -> None:
        """Add ``op`` on values of the program if it computes, else on the sample's operands."""
        # operands beyond MAX_OPERANDS: 0, a new parameter
        picks = picks + (0,) * len(sample.args)
        chosen = [
            self.given(arg) if _is_mask(arg, sample) else self.chosen(arg, pick)
            for arg, pick in zip(sample.args, picks, strict=False)
        ]
        if not self.added(op, chosen, sample.attrs):
            # the sample's own operands always compute: no step is lost, and a step shrinks to them
            self.added(op, [self.given(arg) for arg in sample.args], sample.attrs, trusted=True)

    def added(self, op: Primitive, operands: list, attrs, *, trusted: bool = False) -> bool:
        """Add ``op`` if it computes without warnings and as declared; whether it was added."""
        attrs = op.complete(attrs)
        results = _results_without_warning(op, [_array_of(operand) for operand in operands], attrs)
        if results is None:
            return False
        args = tuple(self.builder.enter(_value_of(operand)) for operand in operands)
        declared = result_types(op, args, attrs)
        outs = [(r, t) for r, t in zip(results, declared, strict=True) if type(r) is not UndefType]
        usable = [t is type_of(r) and _is_moderate(r) for r, t in outs]  # declared as computed
        if not (trusted or all(usable)):
            return False
        binders = self.builder.emit(op, args, attrs)
        self.values += [
            _Known(Value(self.builder, binder), result, moderate)
            for binder, (result, _), moderate in zip(binders, outs, usable, strict=False)
        ]
        return True

    def chosen(self, arg, pick: int):
        """The operand for ``arg`` of a sample: a fitting value, or a new parameter."""
        if arg is None or arg is Undef or (type(arg) in PYTHON_NUMBERS and pick % 2):
            return arg
        aval = type_of(arg)
        usable = [item for item in self.values if item.usable]
        fitting = [item for item in usable if item.value.type is aval]
        near = fitting or [item for item in usable if _is_near(item.value.type, aval)]
        if pick % 4 == 0 or not near:  # Hypothesis shrinks to 0: a program of one operation
            return self.given(arg)
        # -1: the latest value first, which makes programs deep
        return self.fitted(near[-1 - pick // 4 % len(near)], aval)

    def given(self, arg):
        """A new parameter for the operand ``arg`` of a sample."""
        if arg is None or arg is Undef:
            return arg
        self.args.append(arg.copy() if isinstance(arg, np.ndarray) else arg)
        value = self.builder.param(type_of(arg), f"x{len(self.args)}")
        self.values.append(_Known(value, self.args[-1], _is_moderate(arg)))
        return self.values[-1]

    def fitted(self, item: _Known, aval: ArrayType) -> _Known:
        """``item`` cut or repeated to the type ``aval``, by binds of the program."""
        count = math.prod(aval.shape)
        if item.value.shape != aval.shape:
            item = self.apply("reshape", [item], shape=(-1,), order="C")
            if item.value.size > count:
                item = self.apply("index", [item], item=slice(0, count))
            elif item.value.size < count:
                places = np.arange(count) % item.value.size
                item = self.apply("index", [item, places], item=Here())
            item = self.apply("reshape", [item], shape=aval.shape, order="C")
        same = item.value.dtype == aval.dtype
        return item if same else self.apply("cast", [item], dtype=aval.dtype)

    def apply(self, name: str, operands: list, **attrs) -> _Known:
        """The result of an operation that cannot fail."""
        self.added(PRIMITIVES[name], operands, attrs, trusted=True)
        return self.values[-1]


def _array_of(operand):
    """The value of an operand at the arguments."""
    return operand.array if type(operand) is _Known else operand


def _value_of(operand):
    """An operand as it appears in the program."""
    return operand.value if type(operand) is _Known else operand


def _is_mask(arg, sample: Sample) -> bool:
    """Whether an operand is a mask of an index, which must select a fixed number of elements."""
    is_indexed = "item" in sample.attrs or "items" in sample.attrs
    return is_indexed and type(arg) is np.ndarray and arg.dtype.kind == "b"


def _is_near(aval: ArrayType, target: ArrayType) -> bool:
    """Whether a value of one type can be cut, repeated and cast to another without a loss."""
    if aval.weak or target.weak or (aval.size == 0) != (target.size == 0):
        return False
    return aval.dtype == target.dtype or (target.inexact and np.can_cast(aval.dtype, target.dtype))


def _results_without_warning(op: Primitive, arrays: list, attrs) -> tuple | None:
    """The results of an operation; None if it warns or fails."""
    try:
        # an underflow to 0 is not an error, and depends on the library
        with warnings.catch_warnings(action="error"), np.errstate(all="raise", under="ignore"):
            out = compute(op, arrays, attrs)
    except (ArithmeticError, ValueError, IndexError, Warning, GuardError):
        return None
    except (DTypeError, MissingRule):  # a real matrix may have complex roots and eigenvalues
        return None
    except TraceError:  # guard_separate, of one array given twice
        return None
    return results_tuple(op, out)


def _is_moderate(array) -> bool:
    """Whether an array holds finite numbers no larger than ``_MAX_VALUE``."""
    return bool(np.all(np.abs(np.asarray(array).astype(complex)) <= _MAX_VALUE))
