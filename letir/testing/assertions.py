"""``assert_same``, to the last bit, and ``assert_close``, within a tolerance, for nested arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import optree

from letir.ast.pytrees import NAMESPACE, flatten
from letir.ast.types import PYTHON_NUMBERS

_TOLERANCES = {2: 1e-2, 4: 1e-5, 8: 1e-9}  # by the size in bytes of the floating dtype


def assert_same(expected: Any, found: Any) -> None:
    """Raise AssertionError unless both are the same: nesting, kind, dtype, shape and bits.

    Kinds are Python number, NumPy scalar and array. All nans are equal; 0.0 and -0.0 differ.

    >>> assert_same((np.float64(0.0), [np.nan]), (np.float64(0.0), [np.nan]))
    >>> assert_same(np.zeros(2), np.array([0.0, 1.0]))
    Traceback (most recent call last):
    AssertionError: found: 1 of 2 elements differ, first at (1,): expected 0.0, found 1.0
    """
    for path, a, b in _leaf_pairs(expected, found):
        difference = _kind_difference(a, b) or _bit_difference(a, b)
        if difference:
            raise AssertionError(f"{path}: {difference}")


def assert_close(
    expected: Any, found: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Raise AssertionError unless nesting and shapes are equal, and values nearly equal.

    The allowed difference is ``atol + rtol * abs(expected)``. Both are by default what the coarser
    of the two dtypes allows: 1e-9 for float64, 1e-5 for float32, 1e-2 for float16. A nan is close
    to a nan. Kinds and dtypes may differ.

    >>> assert_close([1.0, np.float32(2.0)], [1.0, 2.000001])
    """
    for path, *leaves in _leaf_pairs(expected, found):
        a, b = (np.asarray(_host_array(leaf)) for leaf in leaves)
        difference = _shape_difference(a, b) or _value_difference(a, b, rtol, atol)
        if difference:
            raise AssertionError(f"{path}: {difference}")


def _leaf_pairs(expected, actual) -> Iterator[tuple]:
    """(path, expected leaf, found leaf) of trees. Raises AssertionError if these do not match."""
    expected_leaves, expected_spec = flatten(expected)
    found_leaves, found_spec = flatten(actual)
    if expected_spec != found_spec:
        raise AssertionError(f"found is nested as {found_spec}, expected {expected_spec}")
    # as in Python: found[0]['x']
    paths = [a.codify("found") for a in optree.tree_accessors(expected, namespace=NAMESPACE)]
    yield from zip(paths, expected_leaves, found_leaves, strict=True)


def _host_array(leaf):
    """An array on a device as a NumPy array; other values unchanged."""
    return leaf.get() if hasattr(leaf, "__cuda_array_interface__") else leaf


def _is_number(leaf) -> bool:
    """Whether ``value`` is an array, a NumPy scalar or a Python number."""
    return hasattr(leaf, "dtype") or type(leaf) in PYTHON_NUMBERS


def _kind_difference(expected, actual) -> str | None:
    """A description of different kinds, dtypes or shapes."""
    if not (_is_number(expected) and _is_number(actual)):
        same = expected is actual or (type(expected) is type(actual) and expected == actual)
        return None if same else f"expected {expected!r}, found {actual!r}"
    if _kind_of(expected) is not _kind_of(actual):
        return f"expected {_kind_text(expected)}, found {_kind_text(actual)}"
    if getattr(expected, "dtype", None) != getattr(actual, "dtype", None):
        return f"expected dtype {expected.dtype}, found {actual.dtype}"
    return _shape_difference(np.asarray(_host_array(expected)), np.asarray(_host_array(actual)))


def _kind_of(leaf) -> type:
    """The class of a number or array; for NumPy scalars the class of their dtype."""
    # C has two types of 64 bits, for which NumPy has two classes and one dtype
    return np.dtype(leaf.dtype.str).type if isinstance(leaf, np.generic) else type(leaf)


def _kind_text(leaf) -> str:
    """The kind of a value, and the value, as text."""
    if hasattr(leaf, "ndim") and not isinstance(leaf, np.generic):
        return f"an array {leaf.dtype}{list(leaf.shape)}"
    return f"the {'NumPy' if isinstance(leaf, np.generic) else 'Python'} scalar {leaf!r}"


def _shape_difference(expected, actual) -> str | None:
    """A description of different shapes."""
    if expected.shape != actual.shape:
        return f"expected shape {expected.shape}, found {actual.shape}"
    return None


def _bit_difference(expected, actual) -> str | None:
    """The number of elements that differ in a bit, and the first of them."""
    if not _is_number(expected):
        return None
    a, b = np.asarray(_host_array(expected)), np.asarray(_host_array(actual))
    differ = a != b if a.dtype == object else _differing_bits(a, b)
    return _differing_elements(differ, a, b)


def _differing_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """True where two arrays of one dtype and shape differ in a bit, unless both are nan."""
    part = a.real.dtype  # complex numbers are two of these
    x, y = (np.ascontiguousarray(v).reshape(a.size, 1).view(part) for v in (a, b))
    bits = np.dtype(f"u{part.itemsize}")
    differ = x.view(bits) != y.view(bits)
    if part.kind == "f":
        # the bits of a nan depend on the machine
        differ &= ~(np.isnan(x) & np.isnan(y))
    return differ.any(axis=1).reshape(a.shape)


def _value_difference(expected, actual, rtol, atol) -> str | None:
    """The number of elements that differ by more than the tolerance, and the first of them."""
    default = _coarsest_tolerance(expected, actual)
    rtol, atol = default if rtol is None else rtol, default if atol is None else atol
    with np.errstate(all="ignore"):
        differ = ~np.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
    text = _differing_elements(differ, expected, actual)
    return text and f"{text} (rtol={rtol:g}, atol={atol:g})"


def _coarsest_tolerance(*arrays: np.ndarray) -> float:
    """The tolerance for the coarsest floating dtype among the arrays; 0 for integers."""
    widths = [a.real.dtype.itemsize for a in arrays if a.dtype.kind in "fc"]
    return _TOLERANCES.get(min(widths), 1e-9) if widths else 0.0  # min: the coarsest dtype


def _differing_elements(differ: np.ndarray, expected: np.ndarray, actual: np.ndarray) -> str | None:
    """The message about the elements where ``differ`` holds."""
    if not differ.any():
        return None
    first = tuple(int(i) for i in np.argwhere(differ)[0])
    place = (
        f"{np.count_nonzero(differ)} of {differ.size} elements differ, first at {first}: "
        if first
        else ""
    )
    return f"{place}expected {expected[first].item()!r}, found {actual[first].item()!r}"
