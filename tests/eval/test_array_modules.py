"""Which array module runs a program, what is refused, and that no operation calls NumPy by name."""

import contextlib
import sys
import types
from collections.abc import Iterator

import numpy as np
import numpy.ma
import pytest
from attrs import evolve

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType, Undef
from letir.eval.array_modules import array_module, is_array, type_of
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, applied_program, assert_close, assert_same
from letir.tracing import callers
from tests.each_sample import each_sample, in_one_test
from tests.eval.derivatives import derivative
from tests.eval.stand_in import (
    API,
    DERIVATIVE_LACKING,
    LACKING,
    ON_HOST,
    REAL_ONLY,
    DeviceArray,
    DeviceModule,
    modules,
    moved,
    words,
)

X = np.array([1.0, 2.0, 3.0])
MATRIX = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])


@contextlib.contextmanager
def imported_device() -> Iterator[DeviceModule]:
    """A stand-in for CuPy, imported as cupy within the block."""
    module = DeviceModule()
    with pytest.MonkeyPatch.context() as patch:
        for name, found in modules(module).items():
            patch.setitem(sys.modules, name, found)
        # a library: its calls of NumPy are not recorded
        patch.setitem(callers._users, "tests.eval.stand_in", False)
        yield module


@pytest.fixture
def device() -> Iterator[DeviceModule]:
    """A stand-in for CuPy, imported as cupy."""
    with imported_device() as module:
        yield module


# ---- which module ----


def test_without_cupy_all_arrays_belong_to_numpy(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)

    assert array_module([X, 1.0, None]) is np


def test_device_arrays_select_the_module_of_the_device(device):
    assert array_module([1.0, DeviceArray(X), np.float64(2.0)]).module is device


def test_host_arrays_and_numbers_select_numpy(device):
    assert array_module([X, 1.0, np.float64(2.0)]) is np
    assert array_module([]) is np


def test_mixing_host_and_device_arrays_is_an_error_with_the_remedy(device):
    with pytest.raises(lt.DTypeError, match=r"mix NumPy and CuPy .*\n.*cupy.asarray\(x\) or"):
        array_module([DeviceArray(X), X])


def test_the_arguments_that_are_mixed_are_named(device):
    f = lt.trace(lambda w, x, y: w * x + y, 1.0, X, X)
    text = (
        r"argument 1 \(x\), float64\[3\], is on device 0, argument 2 \(y\), float64\[3\], is on the"
    )
    for call in (f, lt.compile(f), lambda *args: lt.run_forward(f, *args)):
        with pytest.raises(lt.DTypeError, match=text):
            call(1.0, DeviceArray(X), X)


def test_arrays_of_two_devices_are_refused(device):
    other = DeviceArray(X)
    other.device = types.SimpleNamespace(id=1)

    with pytest.raises(lt.DTypeError, match=r"several devices: .* device 0, .* device 1"):
        array_module([DeviceArray(X), other])


class Tensor:
    """An array of another library."""

    def __init__(self, array, kind=1):
        self.array, self.kind = array, kind

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.kind, 0


@pytest.mark.parametrize("kind, module", [(1, "np"), (2, "cupy"), (3, "np")])
def test_tensors_are_refused_with_the_call_that_views_them(kind, module):
    with pytest.raises(lt.DTypeError, match=rf"view it first: {module}\.from_dlpack\(x\)"):
        lt.jit(np.sin)(Tensor(X, kind))


def test_arguments_and_results_are_exchanged_without_a_copy():
    x = np.ones(3)
    view = lt.jit(lambda x: x)(np.from_dlpack(Tensor(x)))
    assert np.shares_memory(np.from_dlpack(view), x)
    variable = lt.Variable(x)
    assert np.shares_memory(np.from_dlpack(variable), variable.numpy())


def test_a_traced_value_has_no_memory_to_exchange():
    with pytest.raises(lt.TraceError, match="cannot become an ordinary array"):
        lt.trace(np.from_dlpack, X)
    with pytest.raises(lt.TraceError, match="its history would be lost"):
        np.from_dlpack(lt.Variable(X, requires_grad=True))


def test_a_0d_host_array_counts_as_a_number_among_device_arrays(device):
    assert array_module([np.array(2.0), DeviceArray(X)]).module is device


def test_device_arrays_are_arrays(device):
    found = [is_array(v) for v in (DeviceArray(X), X, X[0], 1.0, None, [X])]

    assert [True, True, True, False, False, False] == found


def test_the_type_of_a_device_array_has_its_dtype_and_shape(device):
    assert ArrayType("float32", (3,)) is type_of(DeviceArray(X.astype("float32")))


# ---- types ----


@pytest.mark.parametrize(
    "value, text",
    [
        (X, "float64[3]"),
        (np.zeros((2, 0), "int8"), "int8[2, 0]"),
        (np.float32(1), "float32[]"),
        (np.array(1j), "complex128[]"),
        (1, "int64*[]"),
        (1.0, "float64*[]"),
        (1j, "complex128*[]"),
        (True, "bool[]"),
        (X.astype(">f4"), "float32[3]"),
        (X.view(np.memmap), "float64[3]"),
    ],
)
def test_the_type_of_an_array_or_number(value, text):
    assert text == repr(type_of(value))


def pandas_like(name: str):
    """An object of a class with the name of one of pandas."""
    return type(name, (), {"__module__": "pandas"})()


@in_one_test
@pytest.mark.parametrize(
    "value, conversion",
    [
        (numpy.ma.masked_array(X, X > 1), r"x\.filled\(value\)"),
        (X[None].view(np.matrix), r"np\.asarray\(x\)"),
        (X.view(type("Mine", (np.ndarray,), {})), r"np\.asarray\(x\)"),
        (pandas_like("DataFrame"), r"df\.to_numpy\(\)"),
        (pandas_like("Series"), r"series\.to_numpy\(\)"),
        (pandas_like("Index"), r"index\.to_numpy\(\)"),
        (np.array([1, "a"], dtype=object), r"\.astype\(float\)"),
        (np.array(["a"]), r"np\.unique"),
        (np.array([b"a"]), r"np\.frombuffer"),
        (np.zeros(2, "i4,f8"), r"x\['field'\]"),
        (np.array(["2020-01-01"], "M8[D]"), r"\.astype\('int64'\)"),
        (np.zeros(2, "m8[s]"), r"\.astype\('int64'\)"),
        (np.zeros(2, np.longdouble), r"\.astype\('float64'\)"),
        ([1.0, 2.0], r"numpy\.array\(x\)"),
        ("text", "other values as static arguments"),
        (None, "pass NumPy arrays and numbers"),
    ],
)
def test_foreign_values_are_refused_with_their_conversion(value, conversion):
    """[B11]"""
    with pytest.raises(lt.DTypeError, match=conversion):
        type_of(value)


# ---- programs on the device ----


def same_on_the_device(f: lt.Lambda, args: list) -> None:
    """Assert that ``f`` gives the same on the host and on the device, in device arrays."""
    expected = run_flat(f, list(args))
    same(expected, run_flat(f, [moved(arg) for arg in args]))


def same(expected: list, found: list) -> None:
    """Assert that ``found`` are device arrays, or numbers, equal to ``expected``."""
    for a, b in zip(expected, found, strict=True):
        if a is Undef or isinstance(b, int | float | complex | np.generic):
            assert_same(a, b)
        else:
            assert_same(np.asarray(a), b.host)


def nearly(expected: list, found: list) -> None:
    """Assert that ``found`` are of the same types, and nearly equal."""
    for a, b in zip(expected, found, strict=True):
        assert np.asarray(a).dtype == b.dtype
        assert_close(a, b.host if isinstance(b, DeviceArray) else b)


# Computed by other operations than NumPy's, which round otherwise.
ROUNDED = words(
    """
    average cholesky corrcoef cov geomspace inner interp nanpercentile nanquantile pad percentile
    polydiv quantile ufunc_at vecdot vecmat
    """
)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_sample(among=lambda op: op.name not in (*LACKING, *ON_HOST), in_one_test=True)
def test_no_operation_calls_numpy_by_name(op, sample):
    """Every record's ``impl`` computes with the array module it is given."""
    f, args = applied_program(op, sample)
    if op.name in REAL_ONLY and any(np.iscomplexobj(arg) for arg in args):
        with imported_device(), pytest.raises(lt.DTypeError, match="complex128"):
            run_flat(f, list(map(moved, args)))
        return
    if op.name == "size" or not any(isinstance(arg, np.ndarray | np.generic) for arg in args):
        args = [X, *args]
        f = evolve(f, params=(*parse("lambda %0 { return () }").params, *f.params))
    with imported_device() as module:
        expected, found = (run_flat(f, given) for given in (list(args), list(map(moved, args))))
        if op.name == "size":  # sizes stay on the host
            assert_same(expected, found)
            return
        if "Philox4x3210" in module.calls:  # CuPy's generators draw other numbers, reproducibly
            assert [type_of(a) for a in expected] == [type_of(b) for b in found]
            expected = [b.host for b in run_flat(f, list(map(moved, args)))]
    (nearly if op.name in ROUNDED else same)(*in_one_order(op, sample, expected, found))


def test_numbers_are_computed_on_the_host(device):
    """A launch takes longer; a result with an array operand is on the device."""
    f = lt.trace(lambda x, s: (x * s, s * 2 + 1), X, 0.5)
    scaled, number = f(moved(X), 0.25)

    assert type(number) is float and number == 1.5
    assert_same(X * 0.25, scaled.host)


def is_first(op, sample) -> bool:
    """Whether this is the first sample of an operation that a device computes, without draws."""
    return not op.random and sample is SAMPLES[op.name][0]


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each_sample(
    is_first,
    among=lambda op: op.name not in (*LACKING, *DERIVATIVE_LACKING, *ON_HOST),
    in_one_test=True,
)
def test_derivatives_run_on_the_device_of_the_arguments(op, sample):
    f, args = applied_program(op, sample)
    expected = derivative(f, args)
    if expected is None or not any(isinstance(arg, np.ndarray) for arg in args):
        return
    with imported_device():
        found = derivative(f, args, moved)
    for a, b in zip(expected, found, strict=True):
        assert_close(a, b.host if isinstance(b, DeviceArray) else b)


def in_one_order(op, sample, expected: list, found: list) -> tuple[list, list]:
    """The results; without order, unique values are sorted, as CuPy sorts them."""
    if op.name != "unique" or sample.attrs.get("sorted", True):
        return expected, found
    return [np.sort(expected[0]), *expected[1:]], found


@in_one_test
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", LACKING)
def test_a_function_missing_on_the_device_is_an_error_with_the_remedy(device, name):
    f, args = applied_program(PRIMITIVES[name], SAMPLES[name][0])

    missing = r"CuPy has no (scipy|numpy)\..*\n.*pass cupy.asnumpy\(x\)"
    with pytest.raises(lt.LetirError, match=missing):
        run_flat(f, [moved(arg) for arg in args])


@pytest.mark.parametrize("name", ["linalg.vector_norm", "linalg.multi_dot", "matvec", "vecdot"])
def test_a_function_missing_in_the_module_is_computed_from_others(name, device):
    *module, name = name.split(".")
    assert name not in API[".".join(["cupy", *module])]
    f, args = applied_program(PRIMITIVES[name], SAMPLES[name][0])

    (found,) = run_flat(f, [moved(arg) for arg in args])

    assert_close(run_flat(f, list(args))[0], found.host)


def test_the_last_write_to_an_element_remains(device):
    """CuPy's own writes leave it open which of several remains."""
    places, new = np.array([1, 0, 1, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    f = lt.trace(_written, X, places, new)
    module, calls = array_module([DeviceArray(X)]), []
    original = DeviceArray.__setitem__

    def noted(x, item, value):
        calls.append(item)
        original(x, item, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeviceArray, "__setitem__", noted)
        (found,) = run_flat(f, [moved(arg) for arg in (X, places, new)])

    assert module.module is device
    assert_same(np.array([5.0, 4.0, 3.0]), found.host)
    assert all(len(np.unique(places[0].host)) == len(places[0].host) for places in calls[-1:])


def _written(x, places, new):
    x = x.copy()
    x[places] = new
    return x


def test_numbers_in_arrays_without_axes_are_operands(device):
    """CuPy's functions take NumPy's scalars, but not its arrays without axes."""
    f = lt.trace(lambda x, s: np.where(x > s, x * s, np.clip(x, s, 2.0)) + s, X, np.array(1.5))

    (found,) = run_flat(f, [moved(X), np.array(1.5)])
    assert_same(f(X, np.array(1.5)), found.host)


SHAPE_FREE = [
    lambda x: np.mean(x * x),
    lambda x: (x[1:, 0] * 2.0).sum() + x[0, 1],
    lambda x: np.where(x > 0, x, 0.0).max(axis=0).sum(),
    lambda x: (x / x.sum(axis=1, keepdims=True) * np.arange(3.0)).sum(),
]
SHAPED = [
    lambda x: np.tanh(x @ x.T + 1.0).sum(),
    lambda x: (np.concatenate([x, x], axis=1) ** 3).sum(),
    lambda x: np.cumsum(x, axis=1)[::-1].mean(axis=0).min(),
    lambda x: x.prod(axis=0).sum(),
]


@pytest.mark.parametrize("function", SHAPE_FREE + SHAPED)
def test_gradients_run_on_the_device(device, function):
    same_on_the_device(lt.grad(lt.trace(function, MATRIX)), [MATRIX])


@pytest.mark.parametrize("function", SHAPE_FREE)
def test_gradients_of_unknown_types_run_on_the_device(device, function):
    """[D14]"""
    same_on_the_device(lt.grad(lt.retype(lt.trace(function, MATRIX), None)), [MATRIX])


def test_a_program_without_arguments_runs_on_the_host(device):
    f = parse("lambda { %0 = ones(shape=(2,), dtype=float64); return %0 }")

    assert_same(np.ones(2), f())


def test_constants_are_moved_to_the_device(device):
    f = lt.trace(lambda x: x + np.arange(3.0), X)

    same_on_the_device(f, [X])


def test_mixed_arguments_of_a_program_are_refused(device):
    f = lt.trace(lambda x, y: x + y, X, X)

    with pytest.raises(lt.DTypeError, match="mix NumPy and CuPy"):
        f(DeviceArray(X), X)


def test_a_guard_holds_on_the_device(device):
    f = lt.trace(lambda x: x if x.sum() > 0 else -x, X)

    same_on_the_device(f, [X])
    with pytest.raises(lt.GuardError):
        f(DeviceArray(-X))


def test_nans_are_found_on_the_device(device):
    f = lt.trace(np.sqrt, X)

    same_on_the_device(f, [X])
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(FloatingPointError, match="sqrt made a nan"),
    ):
        lt.run_forward(f, DeviceArray(-X), debug_nans=True)
