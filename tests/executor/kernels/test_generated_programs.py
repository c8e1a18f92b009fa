"""Generated programs with a kernel for each group, however small: the results of NumPy.

Of all operations, dtypes, memory orders and sizes, also of empty arrays, with writes in place, with
control flow, and as gradients.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.pytrees import flatten
from letir.errors import LetirError
from letir.executor.compiled import kernels_setting
from letir.ops import load_all
from letir.testing import assert_same, functions, programs
from tests.rounding_noise import assert_within_rounding

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

load_all()
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=10_000)
REAL = [np.dtype(name) for name in ("bool", "int64", "float32", "float64", "complex128")]


def laid_out(x, order: int):
    """A copy of an array in one of five memory layouts."""
    if not isinstance(x, np.ndarray):
        return x
    if x.ndim == 0 or order == 0:
        return x.copy()
    if order == 1:
        return x.copy(order="F")
    if order == 2:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if order == 3:
        return x[::-1].copy()[::-1]
    return np.repeat(x, 2, axis=0)[1::2]


def outcome(f, args) -> tuple:
    """(the leaves of the result, the type of the error)."""
    try:
        return tuple(flatten(f(*args))[0]), None
    except (ArithmeticError, ValueError, IndexError, LetirError) as error:
        return None, type(error)


def computes_the_same(fn, args, exact: bool, orders=(0,)):
    """Compare a program with and without kernels; it gets new arguments each time."""

    def given():
        return [laid_out(x, orders[n % len(orders)]) for n, x in enumerate(args)]

    expected, error = outcome(lambda *args: lt.run_forward(fn, *args), given())
    found, other = outcome(lt.compile(fn, exact=exact, kernels="on"), given())

    assert error is other
    if error is None and exact:
        assert_same(expected, found)
    elif error is None:
        assert_within_rounding(fn, given(), expected, found)


def programs_in_any_memory_order(data, exact):
    fn, args = data.draw(programs())
    # without ``exact``, a kernel may give a value another order than NumPy does
    assume(exact or not any(bind.op.name == "guard_order" for bind in fn.binds))
    orders = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    computes_the_same(fn, args, exact, orders)


def programs_with_control_flow(data, exact):
    computes_the_same(*data.draw(programs(control_flow=True)), exact)


def functions_with_writes(data, exact):
    f, args = data.draw(functions())
    try:
        fn = lt.trace(f, *[laid_out(x, 0) for x in args])
    except LetirError:
        return
    computes_the_same(fn, args, exact)


def values_and_gradients(data, exact):
    f, args = data.draw(programs(dtypes=REAL, max_steps=8))
    places = tuple([n for n, x in enumerate(args) if np.asarray(x).dtype.kind == "f"])

    def loss(*args):
        arrays = [y for y in flatten(f(*args))[0] if hasattr(y, "dtype")]
        return sum([(y * y).sum() for y in arrays if y.dtype.kind == "f"], 0.0)

    try:
        fn = lt.trace(lt.value_and_grad(loss, places), *args) if places else None
    except (LetirError, np.linalg.LinAlgError):
        return
    if fn is not None:
        computes_the_same(fn, args, exact)


LAWS = [
    programs_in_any_memory_order,
    programs_with_control_flow,
    functions_with_writes,
    values_and_gradients,
]
EACH = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


def holds(law, data, exact) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law(data, exact)


@EACH
@QUICK
@given(data=st.data(), exact=st.booleans())
def test_generated_programs_compute_the_same_with_kernels(everything_pays, law, data, exact):
    holds(law, data, exact)


@pytest.mark.slow
@EACH
@MANY
@given(data=st.data(), exact=st.booleans())
def test_many_generated_programs_compute_the_same_with_kernels(everything_pays, law, data, exact):
    holds(law, data, exact)
