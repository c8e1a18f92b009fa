"""Generated calls of all ufuncs and their methods: recorded, replayed, compared with NumPy.

Where NumPy raises, so does the trace.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import letir as lt
from letir.testing import assert_same

UFUNCS = sorted({f for f in vars(np).values() if isinstance(f, np.ufunc)} - {np.isnat}, key=str)
# products of letir.ops.linalg.matmul_einsum need other shapes
UFUNCS = [f for f in UFUNCS if not f.signature]
# ldexp takes an integer as second operand, so it does not reduce
BINARY = [f for f in UFUNCS if f.nin == 2 and f.nout == 1 and f is not np.ldexp]
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=5_000)
SHAPES = [(), (3,), (2, 3), (0, 3), (2, 1), (2, 3, 2)]


@st.composite
def operands(draw, shapes=tuple(SHAPES)):
    """An array of any numeric dtype, of small and special numbers."""
    dtype = np.dtype(draw(st.sampled_from("?bhilBLefdFD")))
    values = [-3, -1, 0, 1, 2, 5] if dtype.kind == "i" else [0, 1, 2, 5]
    if dtype.kind in "fc":
        values = [-2.5, -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 3.75, np.nan, np.inf, -np.inf]
    elements = st.sampled_from(values).map(dtype.type)
    return draw(arrays.arrays(dtype, draw(st.sampled_from(shapes)), elements=elements))


NUMBERS = st.sampled_from([2, 3, -1, 0.5, 2.5, 1j])
DTYPES = st.sampled_from([None, None, None, "f4", "f8", "D", "i8"])


@st.composite
def calls(draw):
    """(function, arguments) of a ufunc's call."""
    ufunc = draw(st.sampled_from(UFUNCS))
    args = [draw(operands())]
    if ufunc.nin == 2:
        args.insert(draw(st.integers(0, 1)), draw(st.one_of(operands(), NUMBERS)))
    keywords = {"dtype": draw(DTYPES)} if draw(st.booleans()) else {}
    casting = draw(st.sampled_from([None, None, "unsafe", "safe"]))
    keywords |= {} if casting is None else {"casting": casting}
    return lambda *args: ufunc(*args, **keywords), args


@st.composite
def folds(draw):
    """(function, arguments) of reduce, accumulate or reduceat."""
    ufunc, x = draw(st.sampled_from(BINARY)), draw(operands())
    name = draw(st.sampled_from(["reduce", "accumulate", "reduceat"]))
    keywords = {"axis": draw(st.sampled_from([0, 1, -1])), "dtype": draw(DTYPES)}
    if name == "reduceat":
        indices = draw(st.sampled_from([[0], [0, 1], [1, 0], [], [1, 1, 0]]))
        return lambda x: ufunc.reduceat(x, indices, **keywords), [x]
    if name == "reduce":
        keywords["axis"] = draw(st.sampled_from([None, 0, 1, -1, (0, 1), ()]))
        keywords["keepdims"] = draw(st.booleans())
        keywords |= draw(st.sampled_from([{}, {}, {"initial": 1}, {"initial": 2.5}]))
        if draw(st.booleans()):
            mask = np.arange(x.size).reshape(x.shape) % 2 == 0
            keywords["where"] = np.asarray(mask)
    return lambda x: getattr(ufunc, name)(x, **keywords), [x]


@st.composite
def updates(draw):
    """(function, arguments) of a ufunc's method at, on a copy."""
    ufunc, x = draw(st.sampled_from(UFUNCS)), draw(operands(SHAPES[1:3] + SHAPES[4:]))
    items = [0, slice(1), np.array([0, 0]), (0,), ..., np.array([1, 0, 1]), (..., -1)]
    item = draw(st.sampled_from(items))
    new = [draw(st.one_of(st.sampled_from([2, 2.5, np.float32(3)]), operands([()])))]

    def f(x):
        x = x.copy()
        ufunc.at(x, item, *new[: ufunc.nin - 1])
        return x

    return f, [x]


@st.composite
def masked(draw):
    """(function, arguments) of a call with out and where."""
    ufunc = draw(st.sampled_from([f for f in UFUNCS if f.nout == 1]))
    args = [draw(operands(SHAPES[1:4])) for _ in range(ufunc.nin)]
    out, mask = draw(operands(SHAPES[2:4])), draw(operands(SHAPES[2:4])).astype(bool)
    casting = draw(st.sampled_from(["same_kind", "unsafe"]))

    def f(out, *args):
        out = out.copy()
        ufunc(*args, out=out, where=mask, casting=casting)
        return out

    return f, [out, *args]


def outcome(f, args):
    """The result of ``f``, or a marker if it raises."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return f(*args), None
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return None, error


def is_numpys(call) -> None:
    """Raise AssertionError unless the recorded call agrees with NumPy, errors included."""
    f, args = call
    expected, error = outcome(f, args)
    found, ours = outcome(lambda *args: lt.trace(f, *args)(*args), args)
    if isinstance(ours, lt.DTypeError) and "imaginary part would be lost" in str(ours):
        return  # NumPy warns of it
    assert (error is None) is (ours is None), (error, ours)
    if error is None:
        assert_same(expected, found)


CALLS = {"calls": calls(), "folds": folds(), "updates": updates(), "masked": masked()}


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", CALLS)
def test_generated_calls_agree_with_numpy(kind):
    @QUICK
    @given(CALLS[kind])
    def law(call):
        is_numpys(call)

    law()


@pytest.mark.slow
@pytest.mark.parametrize("kind", CALLS)
def test_many_generated_calls_agree_with_numpy(kind):
    @MANY
    @given(CALLS[kind])
    def law(call):
        is_numpys(call)

    law()
