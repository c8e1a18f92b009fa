"""NumPy or CuPy: which one runs, what is refused, and that no operation calls NumPy by name.

``DeviceArray`` and ``DeviceModule`` stand for CuPy's: they compute with NumPy, but NumPy itself
does not take a ``DeviceArray``, and the module does not take a NumPy array.
"""

import operator
import sys
import types

import numpy as np
import numpy.ma
import pytest
from attrs import evolve

import letir as lt
from letir.ast.parser import parse
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType, Undef
from letir.eval.arrays import array_module, is_array, type_of
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, applied, assert_close, assert_same

X = np.array([1.0, 2.0, 3.0])
MATRIX = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])


class DeviceArray:
    """An array that is not in the host's memory."""

    __array_ufunc__ = None  # NumPy's functions and operators refuse it
    __hash__ = None

    def __init__(self, host):
        self.host = np.asarray(host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"numpy.{func.__name__} was called by name")

    def __getattr__(self, name):
        found = getattr(self.host, name)
        return DeviceFunction(found) if callable(found) else to_device(found)

    def __len__(self):
        return len(self.host)

    def __getitem__(self, item):
        return to_device(self.host[to_host(item)])

    def __setitem__(self, item, new):
        self.host[to_host(item)] = to_host(new)


def _operator(name: str):
    def method(self, *others):
        return to_device(getattr(operator, name)(self.host, *map(to_host, others)))

    return method


def _reflected(name: str):
    def method(self, other):
        return to_device(getattr(operator, name)(to_host(other), self.host))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(DeviceArray, f"__r{_name}__", _reflected(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert", "and", "or", "xor"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
for _type in (bool, int, float, complex):
    setattr(DeviceArray, f"__{_type.__name__}__", lambda self, to=_type: to(self.host))


class DeviceFunction:
    """A function of NumPy's that takes and gives device arrays; scalars become 0-d arrays."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        args, kwargs = to_host(args), {name: to_host(arg) for name, arg in kwargs.items()}
        return to_device(self.function(*args, **kwargs))

    def __getattr__(self, name):
        return DeviceFunction(getattr(self.function, name))


class DeviceModule:
    """NumPy's functions on device arrays; ``calls`` collects their names."""

    ndarray = DeviceArray

    def __init__(self, module=np, calls=None):
        self.module, self.calls = module, [] if calls is None else calls

    def asarray(self, value, dtype=None):
        """A host array becomes one of the device."""
        return value if isinstance(value, DeviceArray) else DeviceArray(np.array(value, dtype))

    def prod(self, array, **kwargs):
        """CuPy's reductions call the method, also that of a host array of sizes."""
        on_host = isinstance(array, np.ndarray)
        return array.prod(**kwargs) if on_host else DeviceFunction(np.prod)(array, **kwargs)

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, types.ModuleType):
            return DeviceModule(found, self.calls)
        if isinstance(found, type) or not callable(found):
            return found
        self.calls.append(name)
        return DeviceFunction(found)


def to_device(value):
    """What NumPy gave, on the device."""
    if isinstance(value, tuple | list):
        make = getattr(type(value), "_make", type(value))  # named tuples, as np.linalg gives
        return make(map(to_device, value))
    if isinstance(value, np.ndarray | np.generic):
        return DeviceArray(value)
    return value


def to_host(value):
    """An operand for NumPy. Raises TypeError for a host array: CuPy would not take it."""
    if isinstance(value, tuple | list):
        return type(value)(map(to_host, value))
    if isinstance(value, DeviceArray):
        return value.host
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value


@pytest.fixture
def device(monkeypatch) -> DeviceModule:
    """A device: what has been imported as cupy."""
    module = DeviceModule()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


# ---- which module ----


def test_without_cupy_all_arrays_are_numpys(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)

    assert array_module([X, 1.0, None]) is np


def test_arrays_of_the_device_choose_its_module(device):
    assert array_module([1.0, DeviceArray(X), np.float64(2.0)]) is device


def test_host_arrays_and_numbers_choose_numpy(device):
    assert array_module([X, 1.0, np.float64(2.0)]) is np
    assert array_module([]) is np


def test_mixed_arrays_are_an_error_with_the_remedy(device):
    with pytest.raises(lt.DTypeError, match=r"mix NumPy and CuPy .*\n.*cupy.asarray\(x\) or"):
        array_module([DeviceArray(X), X])


def test_a_0d_host_array_is_a_number_beside_arrays_of_the_device(device):
    assert array_module([np.array(2.0), DeviceArray(X)]) is device


def test_arrays_of_the_device_are_arrays(device):
    found = [is_array(v) for v in (DeviceArray(X), X, X[0], 1.0, None, [X])]

    assert [True, True, True, False, False, False] == found


def test_the_type_of_an_array_of_the_device_is_its_dtype_and_shape(device):
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
        (X.view(type("Mine", (np.ndarray,), {})), "float64[3]"),
    ],
)
def test_the_type_of_an_array_or_number(value, text):
    assert text == repr(type_of(value))


def pandas_like(name: str):
    """An object of a class that is called like one of pandas'."""
    return type(name, (), {"__module__": "pandas"})()


@pytest.mark.parametrize(
    "value, conversion",
    [
        (numpy.ma.masked_array(X, X > 1), r"x\.filled\(value\)"),
        (X[None].view(np.matrix), r"np\.asarray\(x\)"),
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
        ([1.0, 2.0], "pass NumPy arrays and numbers"),
        ("text", "other values as static arguments"),
        (None, "pass NumPy arrays and numbers"),
    ],
)
def test_foreign_values_are_refused_with_the_conversion(value, conversion):
    """[B11]"""
    with pytest.raises(lt.DTypeError, match=conversion):
        type_of(value)


# ---- programs on the device ----


def cases() -> list:
    """(op, sample) for all records, with Python numbers as parameters."""
    return [
        pytest.param(PRIMITIVES[name], sample, id=f"{name}-{i}")
        for name, samples in SAMPLES.items()
        for i, sample in enumerate(samples)
    ]


def same_on_the_device(f: lt.Lambda, args: list) -> None:
    """Assert that ``f`` gives the same on the host and on the device, and stays there."""
    expected = run_flat(f, list(args))
    found = run_flat(f, [to_device(arg) for arg in args])
    for a, b in zip(expected, found, strict=True):
        if a is Undef or type(b) in (int, float, complex, bool):
            assert_same(a, b)
        else:
            assert_same(np.asarray(a), b.host)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("op, sample", cases())
def test_no_operation_calls_numpy_by_name(device, op, sample):
    """Every record's ``impl`` computes with the array module that it gets."""
    f, args = applied(op, sample)
    if op.name == "size" or not any(isinstance(arg, np.ndarray | np.generic) for arg in args):
        args = [X, *args]
        f = evolve(f, params=(*parse("lambda %0 { return () }").params, *f.params))
    if op.name == "size":  # sizes stay on the host
        assert_same(run_flat(f, list(args)), run_flat(f, [to_device(arg) for arg in args]))
        return
    same_on_the_device(f, args)


class WithoutNorms(DeviceModule):
    """A module that lacks what CuPy lacks of numpy.linalg."""

    def __getattr__(self, name):
        if name in ("vector_norm", "multi_dot", "matvec"):
            raise AttributeError(name)
        found = super().__getattr__(name)
        return WithoutNorms(found.module, self.calls) if type(found) is DeviceModule else found


@pytest.mark.parametrize("name", ["vector_norm", "multi_dot", "matvec"])
def test_what_the_module_lacks_is_computed_from_its_parts(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", WithoutNorms())
    f, args = applied(PRIMITIVES[name], SAMPLES[name][0])

    (found,) = run_flat(f, [to_device(arg) for arg in args])

    assert_close(run_flat(f, list(args))[0], found.host)


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
