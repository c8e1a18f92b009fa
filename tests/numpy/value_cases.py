"""Expressions, and inputs of every kind, for the law that recorded functions compute as NumPy does.

``EXPRESSIONS`` are functions of one value; counts and sizes in them are small constants, never
values. ``INPUTS`` make a fresh value at each call: all dtypes in all layouts, special numbers,
NumPy scalars and Python numbers.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")


class PlainSubclass(np.ndarray):
    """A subclass without functions of its own."""


def special_numbers(dtype: np.dtype) -> np.ndarray:
    """Extreme and exceptional numbers of a dtype, and a few ordinary ones."""
    if dtype.kind == "b":
        return np.array([True, False, True, True], dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([limits.min, limits.max, 0, 1, 2, limits.max // 3], dtype)
    part = np.finfo(dtype)
    real = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -2.5, part.smallest_subnormal, part.max]
    numbers = np.array([*real, 0.1], part.dtype)
    if dtype.kind == "f":
        return numbers
    return np.array([complex(a, b) for a, b in zip(numbers, numbers[::-1], strict=True)], dtype)


def ordinary_numbers(dtype: np.dtype, shape: tuple[int, ...] = (2, 3)) -> np.ndarray:
    """Small numbers of a dtype, negative ones and zero among them where it has them."""
    count = math.prod(shape)
    numbers = (np.arange(count) * 7 + 3) % 5 - (1 if dtype.kind in "ifc" else 0)
    if dtype.kind in "fc":
        numbers = numbers * 0.7
    if dtype.kind == "c":
        numbers = numbers + 0.3j * numbers[::-1]
    return numbers.astype(dtype).reshape(shape)


def unaligned(array: np.ndarray) -> np.ndarray:
    """A copy whose first element is at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    copy = memory[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def read_only(array: np.ndarray) -> np.ndarray:
    """The array itself, not writable."""
    array.setflags(write=False)
    return array


def swapped(array: np.ndarray) -> np.ndarray:
    """A copy in the other byte order."""
    return array.astype(array.dtype.newbyteorder("S"))


def spaced(array: np.ndarray) -> np.ndarray:
    """A view with gaps between the elements."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


LAYOUTS: dict[str, Callable[[np.dtype], Any]] = {
    "C order": ordinary_numbers,
    "special numbers": special_numbers,
    "one axis": partial(ordinary_numbers, shape=(4,)),
    "square": partial(ordinary_numbers, shape=(3, 3)),
    "three axes": lambda dtype: ordinary_numbers(dtype, (2, 3, 2)).transpose(2, 0, 1),
    "Fortran order": lambda dtype: np.asfortranarray(ordinary_numbers(dtype)),
    "spaced": lambda dtype: spaced(ordinary_numbers(dtype)),
    "reversed": lambda dtype: ordinary_numbers(dtype)[::-1, ::-1],
    "reversed special numbers": lambda dtype: special_numbers(dtype)[::-1],
    "broadcast": lambda dtype: np.broadcast_to(ordinary_numbers(dtype, (3,)), (2, 3)),
    "read-only": lambda dtype: read_only(ordinary_numbers(dtype)),
    "unaligned": lambda dtype: unaligned(ordinary_numbers(dtype)),
    "the other byte order": lambda dtype: swapped(ordinary_numbers(dtype)),
    "plain subclass": lambda dtype: ordinary_numbers(dtype).view(PlainSubclass),
    "empty": lambda dtype: np.zeros((0, 3), dtype),
    "one element": lambda dtype: ordinary_numbers(dtype, (1,)),
    "0-d": lambda dtype: ordinary_numbers(dtype, ())[...],
    "scalar": lambda dtype: ordinary_numbers(dtype)[1, 0],
    "scalar zero": lambda dtype: dtype.type(0),
    "largest scalar": lambda dtype: special_numbers(dtype)[1 if dtype.kind in "biu" else -2],
    "exceptional scalar": lambda dtype: special_numbers(dtype)[0],
}
NUMBERS = (
    *(True, False, 0, 1, 3, -2, 2**31, -(2**63), 2**63 - 1),
    *(0.0, -0.0, 0.1, 1.5, -2.5, math.nan, math.inf, -math.inf, 1.7e308, 5e-324),
    *(0j, 1 + 2j, complex(-0.0, 0.5), complex(math.nan, math.inf)),
)
INPUTS: dict[str, Callable[[], Any]] = {
    f"{np.dtype(code)}, {layout}": partial(make, np.dtype(code))
    for code in DTYPES
    for layout, make in LAYOUTS.items()
} | {f"the Python number {number!r}": lambda number=number: number for number in NUMBERS}


def _write(item, value):
    def call(x):
        x[item] = value
        return x

    return call


def _write_copy(item, value):
    def call(x):
        y = np.array(x)
        y[item] = value
        return y

    return call


def _add_in_place(x):
    y = x
    y += 1
    return x, y


def _multiply_in_place(x):
    y = x
    y *= 0.5
    return x, y


def _add_into_itself(x):
    return np.add(x, x, out=x)


_UFUNC_NAMES = """
exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh
arcsinh arccosh arctanh sqrt cbrt square reciprocal sign floor ceil rint trunc fix
isnan isinf isfinite signbit conj angle absolute fabs positive negative logical_not
invert deg2rad rad2deg spacing frexp modf sinc i0 nan_to_num real_if_close
bitwise_count isreal iscomplex
"""
_REDUCTION_NAMES = """
sum prod mean std var max min argmax argmin any all median ptp cumsum cumprod nansum
nanprod nanmean nanstd nanmax nanmin nanargmax nanmedian nancumsum count_nonzero
average
"""
_AXIS_NAMES = """
sum prod mean var max argmin any median cumsum nanmax count_nonzero
"""
OPERATORS = {
    "+x": lambda x: +x,
    "-x": lambda x: -x,
    "abs(x)": abs,
    "~x": lambda x: ~x,
    "x + x": lambda x: x + x,
    "x - x": lambda x: x - x,
    "x * x": lambda x: x * x,
    "x * x * x": lambda x: x * x * x,
    "x / x": lambda x: x / x,
    "x // 2": lambda x: x // 2,
    "x % 3": lambda x: x % 3,
    "divmod(x, 2)": lambda x: divmod(x, 2),
    "x ** 2": lambda x: x**2,
    "x ** 3": lambda x: x**3,
    "x ** 0.5": lambda x: x**0.5,
    "x ** -1": lambda x: x**-1,
    "x ** x": lambda x: x**x if abs(np.max(x, initial=0)) < 9 else x,
    "2 ** (x % 7)": lambda x: 2 ** (x % 7),
    "x << 1": lambda x: x << 1,
    "x >> 1": lambda x: x >> 1,
    "x & 1": lambda x: x & 1,
    "x | 3": lambda x: x | 3,
    "x ^ 5": lambda x: x ^ 5,
    "x < 2": lambda x: x < 2,
    "x == x": lambda x: x == x,
    "x != 0": lambda x: x != 0,
    "x >= 1.5": lambda x: x >= 1.5,
    "x + 1": lambda x: x + 1,
    "x + 1.5": lambda x: x + 1.5,
    "x * 1j": lambda x: x * 1j,
    "1 - x": lambda x: 1 - x,
    "1 / x": lambda x: 1 / x,
    "x / 3": lambda x: x / 3,
    "x * np.float32(1.1)": lambda x: x * np.float32(1.1),
    "x + np.int8(3)": lambda x: x + np.int8(3),
    "x - np.float16(2)": lambda x: x - np.float16(2),
    "np.uint64(3) * x": lambda x: np.uint64(3) * x,
    "x / np.complex64(1+2j)": lambda x: x / np.complex64(1 + 2j),
    "x + True": lambda x: x + True,
    "x + [1.5]": lambda x: x + np.array([1.5], np.float32),
    "round(x, 1)": lambda x: round(x, 1),
    "float(x)": float,
    "int(x)": int,
    "complex(x)": complex,
    "bool(x)": bool,
    "x.item()": lambda x: x.item(),
    "len(x)": len,
    "list(x)": list,
    "x @ x": lambda x: x @ x,
    "x @ x.T": lambda x: x @ x.T,
    "x and 5": lambda x: x and 5,
    "x += 1": _add_in_place,
    "x *= 0.5": _multiply_in_place,
    "add into x": _add_into_itself,
    "x[...] = 1": _write(..., 1),
    "x[0] = 2.5": _write(0, 2.5),
    "copy[..., 0] = 7": _write_copy((..., 0), 7),
    "copy[copy > 0] = 1": lambda x: _write_copy(np.array(x) > 0, 1)(x),
}
UFUNCS = {f"np.{name}": getattr(np, name) for name in _UFUNC_NAMES.split()}
PAIRS = {
    f"np.{name}(x, {second!r})": lambda x, name=name, second=second: getattr(np, name)(x, second)
    for name, second in (
        *(("ldexp", 2), ("nextafter", 1.0), ("copysign", -1.0), ("hypot", 3), ("arctan2", 2)),
        *(("maximum", 1), ("minimum", 0.5), ("fmax", 1), ("fmin", 1.5), ("fmod", 3)),
        *(("remainder", -3), ("floor_divide", 2.5), ("float_power", 2), ("logaddexp", 1)),
        *(("heaviside", 0.5), ("gcd", 6), ("lcm", 4), ("power", 2), ("power", 0.5)),
        *(("power", -1), ("divide", 2), ("true_divide", 0), ("logical_and", 1), ("equal", 1)),
        *(("bitwise_and", 6), ("left_shift", 2), ("multiply", 3), ("isclose", 1)),
    )
}
REDUCTIONS = {
    **{f"np.{name}": getattr(np, name) for name in _REDUCTION_NAMES.split()},
    **{f"np.{name}(axis=0)": partial(getattr(np, name), axis=0) for name in _AXIS_NAMES.split()},
    "x.sum(-1, keepdims)": lambda x: x.sum(-1, keepdims=True),
    "x.mean(dtype='f4')": lambda x: x.mean(dtype="f4"),
    "x.sum(initial=3)": lambda x: x.sum(initial=3),
    "x.max(where=)": lambda x: x.max(where=x > 0, initial=0),
    "np.add.reduce": np.add.reduce,
    "np.multiply.accumulate": np.multiply.accumulate,
    "np.quantile(x, 0.3)": lambda x: np.quantile(x, 0.3),
    "np.percentile(x, [10, 50])": lambda x: np.percentile(x, [10, 50], axis=0),
    "np.linalg.norm": np.linalg.norm,
    "np.diff": np.diff,
    "np.gradient": np.gradient,
    "np.trapezoid": np.trapezoid,
    "np.cov": np.cov,
}
SHAPES = {
    "x.reshape(-1)": lambda x: x.reshape(-1),
    "np.ravel": np.ravel,
    "x.ravel('F')": lambda x: x.ravel("F"),
    "x.flatten()": lambda x: x.flatten(),
    "x.T": lambda x: x.T,
    "np.transpose": np.transpose,
    "np.swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "np.flip": np.flip,
    "np.roll": lambda x: np.roll(x, 1),
    "np.concatenate": lambda x: np.concatenate([x, x]),
    "np.concatenate of int8": lambda x: np.concatenate([np.ravel(x), np.ones(2, "i1")]),
    "np.stack": lambda x: np.stack([x, x], axis=-1),
    "np.hstack": lambda x: np.hstack([x, 1]),
    "np.tile": lambda x: np.tile(x, 2),
    "np.repeat": lambda x: np.repeat(x, 2),
    "np.expand_dims": lambda x: np.expand_dims(x, -1),
    "np.squeeze": np.squeeze,
    "np.broadcast_to": lambda x: np.broadcast_to(x, (2, *np.shape(x))),
    "np.atleast_2d": np.atleast_2d,
    "np.array_split": lambda x: np.array_split(x, 2),
    "np.pad": lambda x: np.pad(x, 1),
    "np.triu": np.triu,
    "np.diag": np.diag,
    "np.moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "np.rot90": np.rot90,
    "np.meshgrid": lambda x: np.meshgrid(x, [1, 2]),
    "np.vander": lambda x: np.vander(x, 3),
}
ITEMS = {
    "x[0]": lambda x: x[0],
    "x[..., -1]": lambda x: x[..., -1],
    "x[::-1]": lambda x: x[::-1],
    "x[None]": lambda x: x[None],
    "x[...]": lambda x: x[...],
    "x[()]": lambda x: x[()],
    "x[x > 1]": lambda x: x[x > 1],
    "x[[0, -1]]": lambda x: x[[0, -1]],
    "x.flat[0]": lambda x: x.flat[0],
    "np.take": lambda x: np.take(x, [0, -1]),
    "np.where": lambda x: np.where(x > 1, x, 0),
    "np.where of floats": lambda x: np.where(x != 0, 1.5, x),
    "np.where of one": np.where,
    "np.select": lambda x: np.select([x > 1, x < 0], [x, 2 * x], 1),
    "np.clip": lambda x: np.clip(x, 0, 3),
    "np.clip below": lambda x: np.clip(x, None, 1.5),
    "x.clip(min=1)": lambda x: x.clip(min=1),
    "np.searchsorted": lambda x: np.searchsorted([0.0, 1.0, 2.0], x),
    "np.digitize": lambda x: np.digitize(x, [0, 1, 2]),
    "np.interp": lambda x: np.interp(x, [0.0, 1.0, 2.0], [3.0, 5.0, 4.0]),
    "np.histogram": lambda x: np.histogram(x, bins=3, range=(0, 3)),
    "np.sort": np.sort,
    "np.sort of all": lambda x: np.sort(x, axis=None),
    "np.argsort": lambda x: np.argsort(x, kind="stable"),
    "np.unique": np.unique,
    "np.nonzero": np.nonzero,
    "np.isin": lambda x: np.isin(x, [0, 1, 2]),
    "np.put_along_axis": lambda x: np.take_along_axis(x, np.argmax(x, -1, keepdims=True), -1),
    "np.compress": lambda x: np.compress([True, False], x),
    "np.choose": lambda x: np.choose([0, 1], [x, x]),
}
CONVERSIONS = {
    "x.astype('f4')": lambda x: x.astype("f4"),
    "x.astype(int)": lambda x: x.astype(int),
    "x.astype(bool)": lambda x: x.astype(bool),
    "x.astype('u1')": lambda x: x.astype("u1"),
    "x.astype(complex)": lambda x: x.astype(complex),
    "x.astype('>f8')": lambda x: x.astype(">f8"),
    "np.float32(x)": lambda x: np.float32(x),  # noqa: PLW0108  the class is replaced in user code
    "np.int64(x)": lambda x: np.int64(x),  # noqa: PLW0108
    "np.asarray": np.asarray,
    "np.array": np.array,
    "np.array in Fortran order": lambda x: np.array(x, order="F"),
    "np.ascontiguousarray": np.ascontiguousarray,
    "np.array of a list": lambda x: np.array([x, x]),
    "np.asarray('f2')": lambda x: np.asarray(x, "f2"),
    "np.copy": np.copy,
    "x.copy()": lambda x: x.copy(),
    "x.copy('F')": lambda x: x.copy("F"),
    "x.real": lambda x: x.real,
    "x.imag": lambda x: x.imag,
    "np.real": np.real,
    "np.imag": np.imag,
    "x.conjugate()": lambda x: x.conjugate(),
    "np.zeros_like": np.zeros_like,
    "np.ones_like": np.ones_like,
    "np.full_like": lambda x: np.full_like(x, 3),
    "np.full": lambda x: np.full((2,), x),
    "np.round": np.round,
    "np.round(x, 2)": lambda x: np.round(x, 2),
    "np.round(x, -1)": lambda x: np.round(x, -1),
    "x.tolist()": lambda x: x.tolist(),
    "x.dtype": lambda x: (x.dtype.kind, x.dtype.itemsize),
    "x.nbytes": lambda x: (x.nbytes, x.size, x.ndim, x.shape),
    "x.strides": lambda x: x.strides,
    "np.result_type": lambda x: str(np.result_type(x, "f4")),
    "np.can_cast": lambda x: np.can_cast(np.asarray(x).dtype, "f4"),
    "x itself": lambda x: x,
    "(x, [x])": lambda x: (x, [x]),
}
PRODUCTS = {
    "np.dot(x, x)": lambda x: np.dot(x, x),
    "np.dot(x, 2)": lambda x: np.dot(x, 2),
    "np.matmul(x, x.T)": lambda x: np.matmul(x, np.transpose(x)),
    "np.outer": lambda x: np.outer(x, x),
    "np.inner": lambda x: np.inner(x, x),
    "np.vdot": lambda x: np.vdot(x, x),
    "np.kron": lambda x: np.kron(x, x),
    "np.tensordot": lambda x: np.tensordot(x, x, 0),
    "np.einsum(...i->...)": lambda x: np.einsum("...i->...", x),
    "np.einsum(ij,ij)": lambda x: np.einsum("ij,ij", x, x),
    "np.trace": np.trace,
    "np.cross": lambda x: np.cross(x, x),
    "np.convolve": lambda x: np.convolve(x, [1, 2]),
    "np.polyval": lambda x: np.polyval([1, 2, 3], x),
    "np.fft.fft": np.fft.fft,
    "np.linalg.det": np.linalg.det,
    "np.linalg.inv": np.linalg.inv,
    "np.add.outer": lambda x: np.add.outer(x, x),
    "np.allclose": lambda x: np.allclose(x, x),
    "np.array_equal": lambda x: np.array_equal(x, x),
}
EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    **OPERATORS,
    **UFUNCS,
    **PAIRS,
    **REDUCTIONS,
    **SHAPES,
    **ITEMS,
    **CONVERSIONS,
    **PRODUCTS,
}
