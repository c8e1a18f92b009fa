"""Programs on CuPy, where a device is present."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import Undef
from letir.eval.array_modules import array_module, type_of
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, applied_program, assert_close, assert_same
from tests.each_sample import each_of
from tests.eval.derivatives import derivative
from tests.eval.stand_in import DERIVATIVE_LACKING, LACKING, ON_HOST, REAL_ONLY

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing cupy warns of a missing CUDA installation
        import cupy
    REASON = None if cupy.cuda.is_available() else "no CUDA device is present"
except ImportError:
    REASON = "CuPy is not installed"

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)
# CuPy raises no LinAlgError
HOST_ERRORS = ["guard_raised"]
NO_DERIVATIVE = {*LACKING, *DERIVATIVE_LACKING, *ON_HOST, *REAL_ONLY}
NUMBERS = np.float64(2.0), 1.0, True, 3j


def is_random(name: str) -> bool:
    """Whether an operation draws numbers, which CuPy's generators draw otherwise."""
    return PRIMITIVES[name].random or "dropout" in name


def on_device(value):
    """Arrays and NumPy scalars copied to the device; other operands unchanged."""
    return cupy.asarray(value) if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_of([n for n in SAMPLES if n not in (*LACKING, *ON_HOST, *HOST_ERRORS)])
def test_every_operation_agrees_between_device_and_host(name):
    for sample in SAMPLES[name]:
        f, args = applied_program(PRIMITIVES[name], sample)
        if not any(isinstance(arg, np.ndarray) for arg in args):
            continue
        if name in REAL_ONLY and any(np.iscomplexobj(arg) for arg in args):
            continue
        expected = run_flat(f, list(args))
        found = run_flat(f, [on_device(arg) for arg in args])
        for a, b in zip(expected, found, strict=True):
            if a is Undef or name in ("size", "weaken", "length"):
                assert_same(a, b)
            else:
                assert isinstance(b, cupy.ndarray)
                assert np.asarray(a).dtype == b.dtype
                if not PRIMITIVES[name].random:  # CuPy's generators draw other numbers
                    assert_close(comparable(name, sample, a), comparable(name, sample, b.get()))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_of([n for n in SAMPLES if n not in NO_DERIVATIVE and not is_random(n)])
def test_every_derivative_agrees_between_device_and_host(name):
    for sample in SAMPLES[name]:
        f, args = applied_program(PRIMITIVES[name], sample)
        expected = derivative(f, args)
        if expected is None or name in ("eig", "eigh", "svd"):  # of vectors whose signs are open
            continue
        for a, b in zip(expected, derivative(f, args, on_device), strict=True):
            assert_close(a, b)


def comparable(name, sample, result):
    """A result without what NumPy leaves open: the signs of vectors, the order of unique values."""
    if name in ("eig", "eigh", "svd"):
        return np.abs(result)
    is_unordered = name == "unique" and not sample.attrs.get("sorted", True)
    return np.sort(result, axis=None) if is_unordered else result


def test_linear_algebra_gives_nan_where_numpy_raises():
    found = lt.trace(np.linalg.inv, np.eye(2))(cupy.zeros((2, 2)))

    assert not cupy.isfinite(found).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tanh(x @ x.T + 1.0).sum(),
        lambda x: (x / x.sum(axis=1, keepdims=True)).max(axis=0).mean(),
        lambda x: (x[[0, 1, 1]] * np.arange(3.0)).sum(),
    ],
)
def test_gradients_agree_between_device_and_host(function):
    df = lt.grad(lt.trace(function, X))
    found = df(cupy.asarray(X))

    assert isinstance(found, cupy.ndarray)
    assert_close(df(X), found)


def test_traces_of_device_arrays_run_on_cupy():
    x = cupy.asarray(X)
    f = lt.trace(lambda x: np.exp(x) * 2, x)

    assert array_module([x, *NUMBERS]).module is cupy
    assert type_of(x) is type_of(X)
    assert_close(np.exp(X) * 2, f(x))


def test_mixing_host_and_device_arrays_is_refused_with_the_remedy():
    f = lt.trace(lambda x, y: x + y, X, X)

    with pytest.raises(lt.DTypeError, match="mix NumPy and CuPy arrays"):
        f(X, cupy.asarray(X))


def test_the_memory_pool_holds_two_arrays_at_the_peak_of_a_chain():
    """[C1, C3] Bytes of the pool in use, without the argument's."""

    def chain(x):
        for _ in range(20):
            x = np.negative(x)
        return x

    f = lt.trace(chain, np.ones(1 << 20))
    x, used = cupy.ones(1 << 20), []
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    lt.run_forward(f, x, observe=lambda *_: used.append(pool.used_bytes() - before))

    assert max(used) <= 2 * x.nbytes
    assert pool.used_bytes() == before


def test_no_array_is_left_in_the_pool_after_an_exception():
    """[C1, C3]"""
    f = lt.trace(lambda x: (-x * 2)[x.argmax()], np.arange(8.0))
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()

    def stop(bind, results):
        if bind.op.name == "argmax":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as caught:
        lt.run_forward(f, cupy.arange(8.0), observe=stop)
    assert caught.value.__traceback__ is not None
    assert pool.used_bytes() == before


def test_nans_are_found_on_the_device():
    f = lt.trace(np.sqrt, np.ones(3))

    with pytest.raises(FloatingPointError, match="sqrt made a nan"):
        lt.run_forward(f, cupy.asarray([1.0, -1.0, 1.0]), debug_nans=True)
