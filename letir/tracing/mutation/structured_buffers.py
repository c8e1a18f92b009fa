"""``StructuredBuffer``: a structured array that the traced function makes, as one buffer per field.

``Z = np.zeros(n, [("position", float, 2), ("age", int)])`` is read and written field by field. As
long as it contains no traced value, NumPy's functions get it as a read-only copy.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.errors import TraceError
from letir.tracing.mutation.buffers import Buffer, new_buffer
from letir.tracing.trace_state import Trace

_SIZES = (np.shape, np.ndim, np.size)


class StructuredBuffer:
    """The fields of a structured array, or of a part of it.

    ``fields``: {name: a Buffer, a traced array, or a StructuredBuffer}. Each has the shape of the
    whole array, followed by the field's own axes. ``item``: the basic index of the part, None for
    the whole array.
    """

    __slots__ = ("dtype", "fields", "item", "shape")

    def __init__(self, dtype: np.dtype, shape: tuple, fields: dict, item: Any = None) -> None:
        self.dtype, self.shape, self.fields, self.item = dtype, shape, fields, item

    ndim = property(lambda self: len(self.shape), doc="The number of axes.")
    size = property(lambda self: int(np.prod(self.shape)), doc="The number of elements.")
    itemsize = property(lambda self: self.dtype.itemsize, doc="The bytes of an element.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="The bytes of all elements.")
    letir_example = property(lambda self: np.empty(self.shape, self.dtype), doc="For errors.")
    __class__ = property(lambda self: np.ndarray if self.item is None else np.void)  # as in NumPy
    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        if self._is_element():
            return len(self.dtype.names or ())
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            result = self._field(item)
            return result if self.item is None else result[self.item]
        names = list(self.dtype.names or ())
        if type(item) is list and item and all(isinstance(name, str) for name in item):
            dtype = self.dtype[item]
            return StructuredBuffer(dtype, self.shape, {n: self[n] for n in item})
        if self._is_element() and isinstance(item, int | np.integer):
            return self[names[item]]  # an element: its fields by position
        place, shape, is_basic = self._place(item)
        if not is_basic:  # a copy
            return StructuredBuffer(self.dtype, shape, {n: self[n][place] for n in names})
        fields = self.fields if self.item is None else {n: self[n] for n in names}
        return StructuredBuffer(self.dtype, shape, fields, place)

    def __setitem__(self, item: Any, new: Any) -> None:
        if isinstance(item, str):
            whole = ... if self.item is None else self.item
            self._field(item)[whole] = new
            return
        place, _, is_basic = self._place(item)
        if self.item is not None and not is_basic:
            raise _unsupported_error(f"writing a selection of a part with dtype {self.dtype}")
        target = self[item] if self.item is not None else self
        place = ... if self.item is not None else place
        for name, value in self._values(new).items():
            target._field(name)[place if target.item is None else target.item] = value

    def _is_element(self) -> bool:
        """Whether this is one element, which is an ``np.void`` in NumPy."""
        return not self.shape and self.item is not None

    def _values(self, new: Any) -> dict[str, Any]:
        """{name: what is written into the field}, as NumPy assigns to structured arrays."""
        names = self.dtype.names or ()
        if isinstance(new, tuple):
            if len(new) != len(names):
                raise ValueError(f"could not assign tuple of length {len(new)} to structure")
            return dict(zip(names, new, strict=True))
        new_names = getattr(getattr(new, "dtype", None), "names", None)
        if new_names:
            # by position, like NumPy; read all before any is written
            return {a: new[b].copy() for a, b in zip(names, new_names, strict=True)}
        if isinstance(new, list):
            raise _unsupported_error("writing a list into a structured array")
        return dict.fromkeys(names, new)

    def _field(self, name: str) -> Any:
        """A field of the whole array."""
        if name not in self.fields:
            raise ValueError(f"no field of name {name}")
        return self.fields[name]

    def _place(self, item: Any) -> tuple[Any, tuple, bool]:
        """(``item`` without ``...``, the shape of the part, whether it is a basic index).

        A field may have axes of its own, which no ``...`` may reach.
        """
        entries = item if isinstance(item, tuple) else (item,)
        basic = (int, slice, type(None), type(...), np.integer)
        is_basic = all(isinstance(e, basic) and type(e) is not bool for e in entries)
        if is_basic and any(e is ... for e in entries):
            at = entries.index(...)
            count = self.ndim - sum(e is not None and e is not ... for e in entries)
            entries = (*entries[:at], *(slice(None),) * count, *entries[at + 1 :])
            item = entries
        shape = np.empty(self.shape, bool)[item].shape if is_basic else None
        if shape is None:
            shape = self._selected_shape(item)
        return item, shape, is_basic

    def _selected_shape(self, item: Any) -> tuple:
        """The shape of a selection by arrays, which may be traced."""
        name = (self.dtype.names or ())[0]
        own = self.dtype[name].ndim
        result = self[name][item].shape
        return result[: len(result) - own]

    def fill(self, value: Any) -> None:
        """Write ``value`` into all elements."""
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Sort the elements in place, by the fields ``order`` first."""
        self[...] = self[self.argsort(axis, kind, order)]

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None) -> Any:
        """The places of the sorted elements: traced, or an array if no traced value is among them.

        As in NumPy, elements that are equal in the fields ``order`` are compared by the others.
        """
        names = self.dtype.names or ()
        first = [order] if isinstance(order, str) else list(order or ())
        keys = [self[name] for name in [*first, *[n for n in names if n not in first]]]
        if all(map(_is_known, keys)):
            return np.argsort(self.__array__(), axis, kind, order)
        if self.ndim != 1 or any(isinstance(key, StructuredBuffer) or key.ndim > 1 for key in keys):
            raise _unsupported_error("sorting other than one axis of records of numbers")
        return np.lexsort(tuple([np.positive(key) for key in reversed(keys)]))

    def __array_function__(self, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        if func is np.argsort and args[0] is self:
            return self.argsort(*args[1:], **kwargs)
        if func is np.sort and args[0] is self:
            result = self.copy()
            result.sort(*args[1:], **kwargs)
            return result
        if func in _SIZES and args[0] is self and len(args) == 1 and not kwargs:
            return getattr(self, func.__name__)
        return func(*_as_arrays(args), **_as_arrays(kwargs))

    def copy(self) -> "StructuredBuffer":
        """A copy of all fields."""
        names = self.dtype.names or ()
        fields = {name: self[name].copy() for name in names}
        return StructuredBuffer(self.dtype, self.shape, fields)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        result = np.empty(self.shape, self.dtype)
        for name in self.dtype.names or ():
            field = self[name]
            if _is_known(field):
                result[name] = field
            else:
                raise _unsupported_error("a structured array with traced fields as one array")
        result.flags.writeable = False  # writes into the copy would be lost
        return result if dtype is None else result.astype(dtype)

    def __eq__(self, other: Any) -> Any:
        return self.__array__() == np.asarray(other)

    def __ne__(self, other: Any) -> Any:
        return self.__array__() != np.asarray(other)

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return getattr(self.__array__(), name)

    def __repr__(self) -> str:
        return f"<structured array of shape {self.shape} and dtype {self.dtype}>"


def _is_known(field: Any) -> bool:
    """Whether no traced value is in a field."""
    return isinstance(field, Buffer | StructuredBuffer | np.generic)


def _as_arrays(tree: Any) -> Any:
    """Nested arguments with ordinary arrays in place of structured ones."""
    if type(tree) is StructuredBuffer:
        return tree.__array__()
    if type(tree) is dict:
        return {name: _as_arrays(item) for name, item in tree.items()}
    return type(tree)(map(_as_arrays, tree)) if type(tree) in (list, tuple) else tree


def _unsupported_error(operation: str) -> TraceError:
    """The error for an operation on structured arrays that cannot be recorded."""
    return TraceError(
        f"{operation} is not recorded\n"
        "  read and write the fields: z['field'][i] = x, or make an array for each field"
    )


def structured_buffer(trace: Trace, array: np.ndarray) -> StructuredBuffer:
    """A new structured array as one buffer a field."""
    fields: dict[str, Any] = {}
    for name in array.dtype.names or ():
        part = np.array(array[name])
        maker = structured_buffer if part.dtype.names else new_buffer
        fields[name] = maker(trace, part)
    return StructuredBuffer(array.dtype, array.shape, fields)


def structured_rows(trace: Trace, rows: Any, dtype: np.dtype) -> StructuredBuffer:
    """``np.array(rows, dtype)`` of a list of tuples with traced values."""
    if type(rows) is not list or not all(type(row) is tuple for row in rows):
        raise _unsupported_error(f"an array of dtype {dtype} of anything but a list of tuples")
    names = dtype.names or ()
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"could not assign tuples to structure: it has {len(names)} fields")
    result = structured_buffer(trace, np.zeros(len(rows), dtype))
    for place, name in enumerate(names):
        result[name] = [row[place] for row in rows]
    return result


LATE_BOUND["structured_buffer"] = structured_buffer
LATE_BOUND["structured_rows"] = structured_rows
