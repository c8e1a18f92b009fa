"""``ArrayMethods``: array methods that differ from the NumPy function of the same name, ``_Flat``,
the value of ``x.flat``, and the stand-ins for methods that copy ordinary arrays.

Methods that change an array compute a new one and ``replace`` the value by it.
"""

import ctypes
import functools
import gc
import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import DTypeError, ShapeError, mark_unrecorded_code, notify_watchers
from letir.tracing.callers import is_called_at_once, is_read_by_user, is_user_module
from letir.tracing.mutation.views import is_in_same_memory
from letir.tracing.numpy_functions.in_place import put, repeat_to_fit
from letir.tracing.operands import ARRAY_MAKERS, first_traced
from letir.tracing.refusals import with_hint
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import ACTIVE, active_trace


class _Flat:
    """The flat elements of an array: readable, writable and iterable."""

    __slots__ = ("base",)

    def __init__(self, base: "ArrayMethods"):
        self.base = base

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return iter(self.base.reshape(-1))

    def __getitem__(self, item):
        result = self.base.reshape(-1)[item]
        return result.copy() if isinstance(item, slice) else result  # NumPy gives a copy here

    def __setitem__(self, item, new):
        base = self.base
        places = item if isinstance(item, Value) else np.arange(base.size)[item]
        if isinstance(item, Value) and item.dtype.kind == "b":
            places = item.nonzero()[0]
        row = (
            base.reshape(-1)
            .at[places]
            .set(repeat_to_fit(new, places.size, base.dtype, places.shape))
        )
        base.replace(row.reshape(base.shape))

    def copy(self):
        """The elements as a new 1-d array."""
        return self.base.flatten()

    def __array__(self, dtype=None, copy=None):
        return self.base.__array__(dtype, copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return getattr(ufunc, method)(*map(_with_arrays, inputs), **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        named = {name: _with_arrays(value) for name, value in kwargs.items()}
        return function(*_with_arrays(args), **named)


def _with_arrays(operand: Any) -> Any:
    """An operand, or nested operands, with arrays in place of flat elements."""
    if type(operand) in (tuple, list):
        return type(operand)(map(_with_arrays, operand))
    return operand.copy() if type(operand) is _Flat else operand


ARRAY_MAKERS[_Flat] = _Flat.copy


def _is_array_class(asked: Any) -> bool:
    return isinstance(asked, type) and issubclass(asked, np.ndarray)


def _class_error(value: Value, kind: type) -> DTypeError:
    """The error for ``value.view(kind)``, where ``kind`` derives from ``numpy.ndarray``."""
    name = "numpy.matrix" if kind is np.matrix else f"the class {kind.__name__}"
    return DTypeError(
        f"{name} of a traced value of type {value.type} is not recorded: its methods would not run"
        f"{at_user()}\n  compute with arrays: numpy.asarray(x), x @ y for products, "
        "numpy.linalg.inv(x); jit calls such functions as Python"
    )


class ArrayMethods(Value):
    """Array methods for classes with ``numpy_call`` and ``replace``."""

    __slots__ = ()
    numpy_call: Callable[..., Any]
    __setitem__: Callable[[Any, Any], None]

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from an element to the next one along each axis; a guard fixes them."""
        return LATE_BOUND["layout_of"](self).strides

    @property
    def flags(self) -> Any:
        """NumPy's ``ndarray.flags``; a guard fixes the memory order."""
        return LATE_BOUND["flags_of"](self)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """NumPy's ``ndarray.setflags``, of ``write`` only."""
        if write is not None:
            self.flags.writeable = write

    @Value.shape.setter  # type: ignore[attr-defined]  # mypy does not know it as a property
    def shape(self, new: Any) -> None:
        """Give the array itself another shape, as an assignment to ``ndarray.shape`` does."""
        LATE_BOUND["set_shape"](self, new)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """NumPy's ``ndarray.resize``, recorded if the number of elements stays the same, and with
        ``refcheck=False`` for arrays of one axis.
        """
        shape = new_shape[0] if len(new_shape) == 1 else new_shape
        if shape is None or not new_shape:
            return
        shape = shape if isinstance(shape, tuple | list) else (shape,)
        if math.prod(shape) != self.size:
            if not refcheck and LATE_BOUND["resize"](self, shape):
                return
            raise LATE_BOUND["note_refusal"](
                AttributeError(
                    f"ndarray.resize from {self.size} to {math.prod(shape)} elements is not "
                    f"recorded{at_user()}\n  write y = numpy.resize(x, shape)"
                )
            )
        if tuple(shape) != self.shape:
            LATE_BOUND["set_shape"](self, shape)

    @property
    def mT(self) -> Value:
        """The transposed matrices."""
        return self.numpy_call(np.matrix_transpose, (self,), {})

    @property
    def flat(self) -> _Flat:
        """The elements as a flat sequence, which can be read and written."""
        return _Flat(self)

    @flat.setter
    def flat(self, new: Any) -> None:
        _Flat(self)[:] = new

    @property
    def device(self) -> str:
        """NumPy's name of the device; a replay runs on the device of its arguments."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Value:
        """NumPy's ``ndarray.to_device``."""
        if device != "cpu":
            raise ValueError(f"unsupported device {device!r}: only 'cpu' is allowed")
        return self

    def __dlpack__(self: Any, **options: Any) -> Any:
        """The memory of the ordinary array, if there is one. Raises TraceError while recording."""
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        """DLPack's numbers for the host; ``__dlpack__`` then raises the error."""
        return np.empty(0).__dlpack_device__()

    def round(self, decimals: int = 0, out: Any = None) -> Value:
        """NumPy's ``ndarray.round``."""
        return self.numpy_call(np.round, (self, decimals), {} if out is None else {"out": out})

    def view(self, dtype: Any = None, type: Any = None) -> Value:
        """NumPy's ``ndarray.view`` with the same dtype: a view of the whole array."""
        dtype, kind = (None, dtype) if _is_array_class(dtype) else (dtype, None)
        if isinstance(dtype, int) or not (type is None or _is_array_class(type)):
            raise DTypeError(
                f"view: its arguments are a dtype and a class of arrays, found {dtype!r}, {type!r}"
                f"{at_user()}\n  x.reshape(...) gives the array another shape"
            )
        if (asked := type or kind) not in (None, np.ndarray):
            raise notify_watchers(mark_unrecorded_code(_class_error(self, asked)))
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if is_static_shape(self.shape):
                np.empty(self.shape, self.dtype).view(dtype)  # may raise NumPy's error
            error = DTypeError(
                f"view: the bits of {self.type} as another type are not recorded{at_user()}\n"
                "  convert the numbers with .astype(dtype), or take .real and .imag"
            )
            raise notify_watchers(mark_unrecorded_code(error))
        return self if self.is_scalar() else self[...]

    # ---- in place ----

    def sort(
        self, axis: int = -1, kind: Any = None, order: str | None = None, *, stable: Any = None
    ) -> None:
        """NumPy's ``ndarray.sort``, in place."""
        options = {"axis": axis, "kind": kind, "order": order, "stable": stable}
        # sorts a copy: the derivative needs the original order, which a Variable would lose
        self.replace(self.numpy_call(np.sort, (self.copy(),), options))

    def partition(
        self, kth: Any, axis: int = -1, kind: str = "introselect", order: str | None = None
    ) -> None:
        """NumPy's ``ndarray.partition``, in place."""
        options = {"axis": axis, "kind": kind, "order": order}
        self.replace(self.numpy_call(np.partition, (self.copy(), kth), options))

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """NumPy's ``ndarray.put``, in place."""
        put(self, indices, values, mode)

    def __delitem__(self, item: Any) -> None:
        error = ValueError("cannot delete array elements")
        raise with_hint(error, "make an array without them: numpy.delete(x, item)")

    def fill(self, new: Any) -> None:
        """NumPy's ``ndarray.fill``, in place."""
        if type(new) is not Size and np.ndim(new):
            raise ShapeError(
                f"fill: one number is expected, found shape {np.shape(new)}{at_user()}\n"
                "  write x[...] = values"
            )
        self[...] = new


# ---- methods of ordinary arrays ----

# ``A = W.copy(); A[0] = s`` with an array ``W`` that the traced function has not made: the method
# is C code, and NumPy's class takes no attributes. So during a recording the dict of the class has
# descriptors that ask who reads them (library_stand_ins.watch_process): all other code gets NumPy's
# own method. Arrays that operators make, ``A = W + 0``, are left to mutation.adopted_arrays, and to
# mutation.operator_results if more than local variables refer to them.
_NAMES = ("copy", "astype", "flatten", "repeat", "take", "__copy__", "__deepcopy__")
_COPY_MODULE = "copy"  # its functions call the last two methods
METHODS: Any = gc.get_referents(np.ndarray.__dict__)[0]


class CopyingMethod:
    """A method of arrays that returns a copy: a user's call during a recording gives a buffer."""

    def __init__(self, name: str, original: Any):
        self.name, self.original = name, original

    def __get__(self, array: Any, owner: Any = None) -> Any:
        active = ACTIVE.get()
        if active is None or not active.intercepts:
            return self.original.__get__(array, owner)
        if array is None:  # copy.copy reads the method of the class
            return self._method_of_class if self.name.startswith("__") else self.original
        if type(array) is not np.ndarray or not _is_called_by_user(sys._getframe(1), self.name):
            return self.original.__get__(array, owner)
        return functools.partial(self._copy, array)

    def _method_of_class(self, array: Any, *args: Any) -> Any:
        """The method as a function of the class."""
        is_users = type(array) is np.ndarray and _is_called_by_user(sys._getframe(1), self.name)
        return self._copy(array, *args) if is_users else self.original(array, *args)

    def _copy(self, array: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        if self.name == "astype":
            if array.dtype.kind in "SUT":
                LATE_BOUND["refuse_texts"](array, *args[:1] or kwargs.values())
            # the warning of a cast would have this file as its place
            result = LATE_BOUND["call_at_user"](self.original, array, *args, **kwargs)
        else:
            result = self.original(array, *args, **kwargs)
        trace = active_trace() if first_traced((args, kwargs)) is None else None
        is_new = trace is not None and not is_in_same_memory(result, array)
        return LATE_BOUND["as_buffer"](trace, result) if is_new else result


def _is_called_by_user(frame: FrameType, name: str) -> bool:
    """Whether a user's code reads the method to call it; C code needs ordinary arrays."""
    if name.startswith("__") and frame.f_globals.get("__name__") == _COPY_MODULE:
        caller = frame.f_back  # or copy.py itself, for arrays in lists
        while caller is not None and caller.f_globals is frame.f_globals:
            caller = caller.f_back
        return caller is not None and is_user_module(caller.f_globals)
    return is_read_by_user(frame, name) and is_called_at_once(frame)


ORIGINALS = {name: METHODS[name] for name in _NAMES}
STAND_INS = {name: CopyingMethod(name, found) for name, found in ORIGINALS.items()}


forget_lookups = functools.partial(ctypes.pythonapi.PyType_Modified, ctypes.py_object(np.ndarray))
# these Pythons give a class 1,000 versions, after which its attributes are read slowly
STAY_IN_PLACE = sys.version_info >= (3, 13)
