"""The array module (NumPy, CuPy or Dask) and types of arrays: the only module that knows CuPy."""

import functools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.ast.terms import Local
from letir.ast.types import PYTHON_NUMBERS, WEAK, ArrayType, Size
from letir.errors import DTypeError, LetirError, mark_unrecorded_code

NDARRAY, _SCALAR = np.ndarray, np.generic  # attributes of the module are slow during a recording
_ARRAYS = (NDARRAY, _SCALAR)
# classes of arrays and numbers that are neither traced nor another module's
ARRAY_CLASSES = frozenset(
    [np.ndarray, *PYTHON_NUMBERS, *[np.dtype(code).type for code in "?bhilqBHILQefdFD"]]
)
_HOST_MEMORY = (1, 3, 11)  # DLPack's numbers of the host's memory: ordinary, and pinned by a driver
# By name, not class: none of these packages is imported just for a message.
_REFUSED = {
    "MaskedArray": "fill it first: x.filled(value)",
    "matrix": "convert it first: np.asarray(x)",
    "DataFrame": "convert it first: df.to_numpy()",
    "Series": "convert it first: series.to_numpy()",
    "Index": "convert it first: index.to_numpy()",
    "UndefType": "a missing cotangent is an argument of a gradient program: run_forward(df, Undef)",
    "Generator": "it draws itself: rng.normal(size=n); letir.random takes letir.random.key(seed)",
    "RandomState": "pass a numpy.random.Generator, or draw by a key: letir.random",
    "ArrayType": "the type of an argument without values is letir.ShapeDtype(shape, dtype)",
    "list": "make an array of it: numpy.array(x)",
    "tuple": "make an array of it: numpy.array(x)",
    "function": "pass functions as static arguments, see static_argnums",
}


def cupy_module() -> Any:
    """CuPy if it has been imported (CuPy arrays can exist only then), else None."""
    return sys.modules.get("cupy")


def device_array_class() -> type | None:
    """The class of CuPy's arrays if CuPy has been imported, else None."""
    cupy = cupy_module()
    return None if cupy is None else cupy.ndarray


def device_report() -> dict:
    """The version of CuPy and its device: for the report on a machine, imports CuPy."""
    try:
        import cupy
    except ImportError:
        return {"cupy": "missing"}
    report = {"cupy": cupy.__version__}
    try:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"]
        return {**report, "device": name.decode() if isinstance(name, bytes) else str(name)}
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return {**report, "device": "none", "advice": f"CuPy finds no device: {error}"}


def dask_module() -> Any:
    """``dask.array`` if it has been imported (Dask arrays can exist only then), else None."""
    return sys.modules.get("dask.array")


def is_lazy(value: Any) -> bool:
    """Whether a value is a Dask array, which is computed on demand."""
    dask = dask_module()
    return dask is not None and issubclass(type(value), dask.Array)


def array_module(arrays: Iterable, params: Sequence[Local] = ()) -> Any:
    """The array module of these arrays, Dask's if one of them is a Dask array; for CuPy arrays,
    the ``DeviceFunctions`` of CuPy.

    ``params``: the parameters of which they are the arguments, for messages. Raises DTypeError for
    a mix of NumPy and CuPy arrays, and for arrays of several devices.
    """
    cupy, dask = sys.modules.get("cupy"), sys.modules.get("dask.array")
    if dask is not None:
        arrays = list(arrays)
        if any(isinstance(array, dask.Array) for array in arrays):
            return dask
    if cupy is None:
        return np
    arrays = list(arrays)
    places = [_place_of(cupy, array) for array in arrays]
    devices = {place for place in places if type(place) is int}
    if not devices:
        return np
    if len(devices) > 1 or "the host" in places:
        raise _mixed_places(arrays, places, params)
    return LATE_BOUND["device_functions"](cupy, devices.pop())


def value_on_host(value: Any) -> Any:
    """A copy of an array of a device as a NumPy array, for which the host waits; other values
    themselves.
    """
    cupy = cupy_module()
    return value if cupy is None or not isinstance(value, cupy.ndarray) else value.get()


def _place_of(cupy: Any, array: Any) -> int | str | None:
    """The number of the array's device, "the host", or None for a value that both accept."""
    if isinstance(array, cupy.ndarray):
        return array.device.id
    # NumPy's scalars and 0-d arrays become parameters of kernels
    return "the host" if isinstance(array, np.ndarray) and array.ndim else None


def _mixed_places(arrays: Sequence, places: Sequence, params: Sequence[Local]) -> DTypeError:
    """The error for arguments on several devices, or on a device and on the host."""
    described = [
        f"{argument_text(i, params[i].name if params else None)}, {type_of(arrays[i])!r}, is on "
        f"{place if type(place) is str else f'device {place}'}"
        for i, place in enumerate(places)
        if place is not None and place not in places[:i]  # one of each
    ]
    is_host = "the host" in places
    return DTypeError(
        f"arguments {'mix NumPy and CuPy arrays' if is_host else 'are on several devices'}: "
        f"{', '.join(described)}\n  move them to one side: cupy.asarray(x) or cupy.asnumpy(x)"
    )


def argument_text(i: int, name: str | None) -> str:
    """An argument in a message: its position, and the name of its parameter."""
    return f"argument {i} ({name})" if name else f"argument {i}"


def evaluator_of(
    arrays: Iterable, observe: Callable | None = None, params: Sequence[Local] = ()
) -> Any:
    """The evaluator for these arrays: ``Evaluator``, or for Dask arrays the one that
    ``letir.dask.block_evaluator`` makes.
    """
    xp = array_module(arrays, params)
    name = "evaluator" if xp is np or xp is not dask_module() else "dask_evaluator"
    return LATE_BOUND[name](xp, observe)


@functools.cache
def scipy_function(xp: Any, part: str, name: str) -> Callable[..., Any]:
    """``scipy.part.name`` for NumPy, its counterpart in ``cupyx`` for CuPy.

    Raises LetirError if SciPy is not installed, or CuPy has no such function.
    """
    if xp is not np:
        result = _cupyx_function(part, name)
        return LATE_BOUND["apply_to_stacks"](result, xp) if name == "expm" else result
    try:
        import scipy

        # SciPy loads subpackages on first use
        module = functools.reduce(getattr, part.split("."), scipy)
    except (ImportError, AttributeError) as error:
        raise LetirError(
            f"scipy.{part} is needed to compute this, and cannot be imported: {error}\n"
            "  install it: pip install 'letir[scipy]'"
        ) from None
    return getattr(module, name)


def _cupyx_function(part: str, name: str):
    """CuPy's version of a SciPy function."""
    try:
        import cupyx.scipy.linalg
        import cupyx.scipy.special

        return getattr(getattr(cupyx.scipy, part), name)
    except (ImportError, AttributeError):
        raise LetirError(
            f"CuPy has no scipy.{part}.{name}\n"
            "  compute it on the host: pass cupy.asnumpy(x) in place of x"
        ) from None


LATE_BOUND["scipy"] = scipy_function


def is_array(value: Any) -> bool:
    """Whether a value is an array or a NumPy scalar."""
    if issubclass(type(value), _ARRAYS):  # not isinstance: a tracer claims to be an ndarray
        return True
    cupy = cupy_module()
    return cupy is not None and issubclass(type(value), cupy.ndarray)


_types = BoundedCache(1 << 14)  # (dtype, shape) -> ArrayType


def _is_ordinary(kind: type[np.ndarray]) -> bool:
    """Whether functions of arrays of this class return ordinary arrays, as for memmaps."""
    return kind.__module__.partition(".")[0] == "numpy" or "__letir_state__" in vars(kind)


def _view_of(value: Any) -> str:
    """The call that views another library's array, such as a tensor, without a copy."""
    is_on_host = value.__dlpack_device__()[0] in _HOST_MEMORY
    return f"view it first: {'np' if is_on_host else 'cupy'}.from_dlpack(x)"


def type_of(value: Any) -> ArrayType:
    """The type of an array or a Python number.

    Raises DTypeError for other values, with the conversion to use [semantics.md B11].
    """
    weak = WEAK.get(type(value))
    if weak is not None:
        return weak
    kind = type(value)
    # exactly: subclasses may be refused below
    if kind is NDARRAY or issubclass(kind, _SCALAR):
        key = value.dtype, value.shape
        result = _types.get(key)
        if result is None:
            result = _types[key] = ArrayType(*key)
        return result
    if issubclass(kind, Value):
        return value.type
    if kind is Size:
        int(value)  # raises the error with the remedy
    bases = [base.__name__ for base in kind.__mro__]  # subclasses are refused like their bases
    remedy = next((_REFUSED[name] for name in bases if name in _REFUSED), None)
    if remedy is None and issubclass(kind, np.ndarray) and not _is_ordinary(kind):
        remedy = (
            "results would be of this class, which is not recorded; convert it first: np.asarray(x)"
        )
    if remedy is None and is_lazy(value) and any(map(math.isnan, value.shape)):
        remedy = "its sizes are unknown: call x.compute_chunk_sizes() first"
    if remedy is None and not (is_array(value) or is_lazy(value)) and hasattr(kind, "__dlpack__"):
        remedy = _view_of(value)
    if remedy is None and (is_array(value) or is_lazy(value)):
        return ArrayType(value.dtype, value.shape)
    is_builtin = kind.__module__ == "builtins"
    found = (
        LATE_BOUND["describe_value"](value) if is_builtin else f"{kind.__module__}.{kind.__name__}"
    )
    error = DTypeError(
        f"{found} is not an array of numbers\n"
        f"  {remedy or 'pass NumPy arrays and numbers; other values as static arguments'}"
    )
    raise mark_unrecorded_code(error)
