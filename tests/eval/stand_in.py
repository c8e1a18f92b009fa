"""A stand-in for CuPy: ``DeviceModule`` offers CuPy's functions on arrays that NumPy refuses.

``DeviceArray`` and ``DeviceModule`` compute with NumPy, but NumPy itself does not take a
``DeviceArray``, and the module does not take a NumPy array.
"""

import operator
import types

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


# The functions recorded by letir that cupyx.scipy.special 14.2 has.
SPECIAL = words(
    """
    i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e y0 y1 yn ndtr log_ndtr ndtri logit expit log_expit entr huber
    kl_div pseudo_huber rel_entr gamma gammaln loggamma gammasgn gammainc gammaincinv gammaincc
    gammainccinv beta betaln betainc betaincinv psi rgamma polygamma digamma poch erf erfc erfcx
    erfinv erfcinv binom exp1 expi expn zeta zetac cbrt exp10 exp2 log1p expm1 exprel cosm1 round
    xlogy xlog1py
    """
)
# Functions that CuPy lacks and that are not composed of others.
LACKING = words(
    """
    beta_logsf beta_sf betaincc dawsn erfi iv ive jv kn kv kve ndtri_exp odeint riemann_zeta spence
    sqrtm stdtr stdtrit t_cdf t_isf t_logcdf t_logsf t_ppf t_sf wofz wrightomega yv
    """
)
# Reads the state of a NumPy generator, which lives on the host.
ON_HOST = ["generator_draw"]
LINALG = ["expm", "solve_triangular", "lu", "lu_factor", "lu_solve"]
# The methods of CuPy's random generators.
DRAWS = ["integers", "random", "standard_exponential", "standard_gamma", "standard_normal"]


class DeviceArray:
    """An array outside the host's memory."""

    __array_ufunc__ = None  # NumPy's functions and operators refuse it
    __hash__ = None
    device = types.SimpleNamespace(id=0)

    def __init__(self, host):
        self.host = np.asarray(host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(f"numpy.{func.__name__} was called by name")

    def get(self):
        """A copy on the host."""
        return self.host.copy()

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
for _name in ("and", "or", "xor"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(DeviceArray, f"__r{_name}__", _reflected(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert"):
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))
for _type in (bool, int, float, complex):
    setattr(DeviceArray, f"__{_type.__name__}__", lambda self, to=_type: to(self.host))


class DeviceFunction:
    """A NumPy function that takes and returns device arrays; scalars become 0-d arrays."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        args, kwargs = to_host(args), {name: to_host(arg) for name, arg in kwargs.items()}
        return to_device(self.function(*args, **kwargs))

    def __getattr__(self, name):
        found = getattr(self.function, name)
        return DeviceFunction(found) if callable(found) else found


class DeviceModule:
    """NumPy's functions on device arrays; ``calls`` collects the names of those called."""

    ndarray = DeviceArray

    def __init__(self, module=np, calls=None):
        self.module, self.calls = module, [] if calls is None else calls

    def asarray(self, value, dtype=None):
        """A device copy of a host array; a device array of the same dtype itself."""
        if isinstance(value, DeviceArray):
            return DeviceArray(np.asarray(value.host, dtype)) if dtype else value
        return DeviceArray(np.array(value, dtype))

    def prod(self, array, **kwargs):
        """CuPy's reductions call the array's method, also for a host array of sizes."""
        on_host = isinstance(array, np.ndarray)
        return array.prod(**kwargs) if on_host else DeviceFunction(np.prod)(array, **kwargs)

    @property
    def random(self):
        """CuPy's bit generator takes one word; its generators have fewer methods than NumPy's."""

        def device_bits(seed: int):
            self.calls.append("Philox4x3210")
            return np.random.Philox(seed)

        return types.SimpleNamespace(Philox4x3210=device_bits, Generator=device_generator)

    def __getattr__(self, name):
        found = getattr(self.module, name)
        if isinstance(found, types.ModuleType):
            return DeviceModule(found, self.calls)
        if isinstance(found, type) or not callable(found):
            return found
        self.calls.append(name)
        return DeviceFunction(found)


def device_generator(bits):
    """A random generator of the device."""
    generator = np.random.Generator(bits)
    draws = {name: DeviceFunction(getattr(generator, name)) for name in DRAWS}
    return types.SimpleNamespace(**draws)


def offered(module, names) -> types.SimpleNamespace:
    """A module with the named functions of another."""
    return types.SimpleNamespace(**{name: DeviceFunction(getattr(module, name)) for name in names})


def modules(numpy: DeviceModule) -> dict:
    """The modules imported as cupy and importable as cupyx."""
    parts = types.SimpleNamespace(
        special=offered(scipy.special, SPECIAL),
        linalg=offered(scipy.linalg, LINALG),
        signal=offered(scipy.signal, ["lfilter"]),
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
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value
