"""A stand-in for CuPy: ``DeviceModule`` offers CuPy's functions on arrays that NumPy refuses.

``DeviceArray`` and ``DeviceModule`` compute with NumPy, but NumPy itself does not take a
``DeviceArray``, and the module does not take a NumPy array. What CuPy has - functions, parameters,
dtypes and methods - stands in ``tests/data/cupy_api.json``, which ``make_cupy_api.py`` reads from
CuPy's wheel. All else is refused, as CuPy refuses it.
"""

import contextlib
import functools
import inspect
import json
import operator
import types
import weakref
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special

API = json.loads((Path(__file__).parents[1] / "data" / "cupy_api.json").read_text())
ARRAY = API["cupy.ndarray"]


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


# Operations on functions that CuPy lacks and that are not composed of others.
LACKING = words(
    """
    beta_isf beta_logcdf beta_logsf beta_sf betaincc betainccinv dawsn erfi generalized_eigh iv ive
    logm jv kn kv kve ndtri_exp odeint riemann_zeta solve_sylvester spence sqrtm stdtr stdtrit t_cdf
    t_isf t_logcdf t_logsf t_ppf t_sf vector_integral wofz wrightomega yv bin_count scipy_solve
    """
)
# Operations whose derivatives need such a function.
DERIVATIVE_LACKING = words("i1 i1e j1 y1")
# CuPy's functions take real numbers only.
REAL_ONLY = words("erf erfc erfcx exp1 expi log_ndtr ndtr")
# Reads the state of a NumPy generator, which lives on the host.
ON_HOST = ["generator_draw"]
# Functions written in Python that read attributes of an operand, which a number does not have: seen
# on a device.
TAKE_ARRAYS = words("broadcast_to concatenate dot inner interp polygamma")


_arrays: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # id of host -> array


class DeviceArray:
    """An array outside the host's memory."""

    __array_ufunc__ = None  # NumPy's functions and operators refuse it
    __hash__ = None
    device = types.SimpleNamespace(id=0)

    def __init__(self, host):
        self.host = np.asarray(host)
        # as of CuPy's arrays: a view refers to the array whose memory it views
        self.owner = _arrays.get(id(self.host.base))
        _arrays[id(self.host)] = self

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"numpy.{func.__name__} was called by name")

    def get(self):
        """A copy on the host."""
        return self.host.copy()

    @property
    def flags(self):
        """The flags that CuPy's arrays have."""
        found = {name: getattr(self.host.flags, name) for name in API["cupy.ndarray.flags"]}
        return types.SimpleNamespace(**found)

    @property
    def base(self):
        """The array whose memory this one views: an existing one, so that references count."""
        return to_device(self.host.base) if self.owner is None else self.owner

    def __getattr__(self, name):
        if name not in ARRAY:
            raise AttributeError(f"'ndarray' object has no attribute '{name}'")
        found = getattr(self.host, name)
        return DeviceFunction(found, name, ARRAY[name]) if callable(found) else to_device(found)

    def __dlpack__(self, **options):
        raise BufferError("this memory is not the host's")

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
for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(DeviceArray, f"__r{_name}__", _reflected(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
for _type in (bool, int, float, complex):
    setattr(DeviceArray, f"__{_type.__name__}__", lambda self, to=_type: to(self.host))


@functools.cache
def signature_of(text: str) -> inspect.Signature:
    """The signature that a text of the list stands for."""
    return inspect.signature(eval(f"lambda {text[1:-1]}: None"))


class DeviceFunction:
    """A NumPy function that takes and returns device arrays; scalars become 0-d arrays.

    ``signature``: the parameters that CuPy's function takes, None if they are not known.
    """

    def __init__(self, function, name=None, signature=None):
        self.function, self.name, self.signature = function, name, signature

    def __call__(self, *args, **kwargs):
        if self.signature is not None:
            try:
                signature_of(self.signature).bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}() {error}") from None
        if self.name in TAKE_ARRAYS:
            for arg in args[0] if self.name == "concatenate" else args[:2]:
                if isinstance(arg, bool | int | float | complex):
                    raise AttributeError(f"'{type(arg).__name__}' object has no attribute 'ndim'")
        if self.name in REFUSALS:
            REFUSALS[self.name](*args, **kwargs)
        args, kwargs = to_host(args), {name: to_host(arg) for name, arg in kwargs.items()}
        return to_device(self.function(*args, **kwargs))


def refuse_stacks(x):
    """Of ``cupyx.scipy.linalg.expm``."""
    if x.ndim > 2:
        raise ValueError("Input must be 1- or 2-d.")


def refuse_axis(a, axis=None, bitorder="big"):
    """Of ``cupy.packbits``."""
    if axis is not None:
        raise NotImplementedError("axis option is not supported yet")


def refuse_unequal_stacks(a, b):
    """Of ``cupy.linalg.solve``."""
    if b.ndim != 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")


def broadcast_to(array, shape):
    """CuPy's: its arrays have no flag that makes them read-only."""
    found = np.broadcast_to(array, shape)
    return np.lib.stride_tricks.as_strided(found, found.shape, found.strides)


# What CuPy refuses by the values of arguments, as seen on a device.
REFUSALS = {"expm": refuse_stacks, "packbits": refuse_axis, "solve": refuse_unequal_stacks}
_OPTIONS = {"out", "dtype", "casting"}


class DeviceUfunc:
    """A ufunc of CuPy: NumPy's, for the dtypes and with the methods that CuPy's has."""

    def __init__(self, function, name, facts):
        self.function, self.name, self.facts = function, name, facts

    def __call__(self, *args, **kwargs):
        if not kwargs.keys() <= _OPTIONS:
            raise TypeError(f"Wrong arguments {sorted(kwargs.keys() - _OPTIONS)}")
        given = [*args, *[None] * (len(self.facts["loops"][0].split("->")[0]) - len(args))]
        hosts = to_host(tuple(args))
        kinds = None if "dtype" in kwargs else self.result_kinds(hosts[: len(given)])
        found = self.function(*hosts, **{name: to_host(arg) for name, arg in kwargs.items()})
        if kinds is None or "out" in kwargs or len(args) > len(given):
            return to_device(found)
        several = isinstance(found, tuple)
        found = [x.astype(k) for x, k in zip(found if several else [found], kinds, strict=True)]
        return to_device(tuple(found) if several else found[0])

    def result_kinds(self, operands) -> str:
        """The dtypes of the results. Raises TypeError if CuPy has no loop for the operands."""
        strong = [x.dtype for x in operands if type(x) not in _KINDS]
        for loop in self.facts["loops"]:
            ins, outs = loop.split("->")
            if all(takes(kind, x, strong) for kind, x in zip(ins, operands, strict=True)):
                return outs
        kinds = tuple([np.asarray(x).dtype for x in operands])
        raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{self.name}")

    def __getattr__(self, name):
        if name in ("reduce", "accumulate", "reduceat", "at", "outer"):
            if name not in self.facts["methods"]:
                raise NotImplementedError(f"`cupy_{self.name}.{name}` is not supported yet")
            return DeviceFunction(getattr(self.function, name), name, METHODS[name])
        return getattr(self.function, name)


METHODS = {
    "reduce": "(array, axis=0, dtype=None, out=None, keepdims=False)",
    "accumulate": "(array, axis=0, dtype=None, out=None)",
    "reduceat": "(array, indices, axis=0, dtype=None, out=None)",
    "at": "(a, indices, b=None)",
    "outer": "(A, B, **kwargs)",
}


_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
_ORDER = "biufc"  # of the kinds of dtypes


def takes(kind: str, operand, strong: list) -> bool:
    """Whether a loop takes an operand for this dtype. A Python number takes the dtype of operands
    that have one, if they can hold numbers of its kind.
    """
    own = _KINDS.get(type(operand))
    if own is None:
        return np.can_cast(operand.dtype, kind)
    if any(_ORDER.find(x.kind) >= _ORDER.find(own) for x in strong):
        return _ORDER.find(np.dtype(kind).kind) >= _ORDER.find(own)
    return np.can_cast(np.result_type(*strong, operand), kind)


class DeviceModule:
    """NumPy's functions on device arrays; ``calls`` collects the names of those called.

    ``path``: the module of CuPy in whose place it stands.
    """

    ndarray = DeviceArray

    def __init__(self, module=np, calls=None, path="cupy"):
        self.module, self.calls, self.path = module, [] if calls is None else calls, path
        self.__name__ = path
        stream = types.SimpleNamespace(synchronize=lambda: None)
        self.cuda = types.SimpleNamespace(
            get_current_stream=lambda: stream, Device=lambda number: contextlib.nullcontext()
        )

    def asarray(self, value, dtype=None):
        """A device copy of a host array; a device array of the same dtype itself."""
        if isinstance(value, DeviceArray):
            return DeviceArray(np.asarray(value.host, dtype)) if dtype else value
        return DeviceArray(np.array(value, dtype))

    @property
    def random(self):
        """CuPy's bit generator takes one word; its generators have fewer methods than NumPy's."""

        def device_bits(seed: int):
            self.calls.append("Philox4x3210")
            return np.random.Philox(seed)

        return types.SimpleNamespace(Philox4x3210=device_bits, Generator=device_generator)

    def __getattr__(self, name):
        found, path = getattr(self.module, name, None), f"{self.path}.{name}"
        if isinstance(found, types.ModuleType) and any(known.startswith(path) for known in API):
            return DeviceModule(found, self.calls, path)
        if found is None or name not in API.get(self.path, ()):
            raise AttributeError(f"module '{self.path}' has no attribute '{name}'")
        facts = API[self.path][name]
        if isinstance(found, type) or not callable(found):
            return found
        self.calls.append(name)
        return device_function(broadcast_to if name == "broadcast_to" else found, name, facts)


def device_function(function, name: str, facts):
    """A function or a ufunc of CuPy that computes by NumPy's ``function``."""
    if isinstance(facts, dict):
        return DeviceUfunc(function, name, facts)
    return DeviceFunction(function, name, facts)


def device_generator(bits):
    """A random generator of the device."""
    generator = np.random.Generator(bits)
    draws = {
        name: DeviceFunction(getattr(generator, name), name, facts.replace("self, ", ""))
        for name, facts in API["cupy.random.Generator"].items()
        if facts is not None and hasattr(generator, name)
    }
    return types.SimpleNamespace(**draws)


def offered(module, path: str) -> types.SimpleNamespace:
    """The functions of a module of SciPy that CuPy's module at ``path`` has."""
    return types.SimpleNamespace(
        **{
            name: device_function(getattr(module, name), name, facts)
            for name, facts in API[path].items()
            if callable(getattr(module, name, None))
        }
    )


def modules(numpy: DeviceModule) -> dict:
    """The modules imported as cupy and importable as cupyx."""
    parts = types.SimpleNamespace(
        special=offered(scipy.special, "cupyx.scipy.special"),
        linalg=offered(scipy.linalg, "cupyx.scipy.linalg"),
        signal=offered(scipy.signal, "cupyx.scipy.signal"),
    )
    parts_by_name = {f"cupyx.scipy.{name}": part for name, part in vars(parts).items()}
    cupyx = types.SimpleNamespace(scipy=parts)
    return {"cupy": numpy, "cupyx": cupyx, "cupyx.scipy": parts, **parts_by_name}


def moved(value):
    """A device copy of an array or NumPy scalar; other operands unchanged."""
    return to_device(np.array(value) if isinstance(value, np.ndarray | np.generic) else value)


def to_device(value):
    """A NumPy result as device arrays."""
    if isinstance(value, tuple | list):
        make = getattr(type(value), "_make", type(value))  # named tuples, as np.linalg returns
        return make(map(to_device, value))
    if isinstance(value, np.ndarray | np.generic):
        return DeviceArray(value)
    return value


def to_host(value):
    """An operand for NumPy. Raises TypeError for a host array, which CuPy would refuse."""
    if isinstance(value, tuple | list):
        return type(value)(map(to_host, value))
    if isinstance(value, DeviceArray):
        return value.host
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value
