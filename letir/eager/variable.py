"""``Variable``: a NumPy array that records how it was computed, so that it has a gradient."""

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.eager.backward_pass.entry_points import backward
from letir.eager.call_cache import numpy_call
from letir.eager.grad_mode import RECORDS, is_grad_enabled
from letir.eager.hooks import Handle, add_hook
from letir.eager.mutation import add_view, is_item, write_variable
from letir.eager.op_cache import forget_kernels
from letir.eager.recorder import RECORDER, Recorder, array_of_nested
from letir.eager.replay import replay_program
from letir.eager.tape import Constant, GradEdge, Leaf, leaf_edge
from letir.eager.unrecorded_calls import (
    DISCRETE,
    call_on_arrays,
    exported_array,
    is_tracer,
    lost_history_error,
    must_be_recorded,
    writes_into_array,
)
from letir.errors import DTypeError, TraceError
from letir.eval.array_modules import is_lazy, type_of
from letir.eval.memory_checks import copy_in_order
from letir.ops.indexing.index_expressions import item_with_places
from letir.tracing.numpy_functions.registry import PLAIN
from letir.tracing.numpy_protocols.array_value import ArrayValue
from letir.tracing.numpy_protocols.dispatch import recorder_of, ufunc_records
from letir.tracing.numpy_protocols.ufunc_calls import call_ufunc
from letir.tracing.operands import stack_traced
from letir.tracing.refusals import convert_with_hint
from letir.tracing.source_locations import at_user, error_at_user_line, is_item_write
from letir.tracing.tracer import Tracer

INDEX = PRIMITIVES["index"]
_TRUTH_HINT = "choose for each element with numpy.where(condition, a, b)"
_NUMBER_HINT = "convert an element, x[i], or reduce the array: x.sum()"
_INDEX_HINT = "pass an int, or round it: x.astype(int)"


class Variable(ArrayValue):
    """An array whose operations are recorded if it requires grad.

    In expressions, NumPy's functions and methods it behaves as ``array``, of which it holds a copy.
    ``requires_grad``: whether ``backward`` of a result gives it a ``.grad``. In-place changes of
    the Variable are recorded. With ``copy=False`` it shares the memory of ``array``: a later change
    of that array is not noticed, and changes gradients that need the old values.
    Raises DTypeError unless ``array`` holds numbers, floating ones if it requires grad.

    >>> x = Variable(np.array([1.0, 2.0]), requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    Variable([2., 4.])
    """

    __slots__ = ("__weakref__", "array", "sharing")
    array: Any
    sharing: Any
    __letir_variable__ = True  # how ``jit`` knows this class, without loading it
    emitter = RECORDER
    called = "a Variable"

    @entry_point
    def __init__(
        self,
        array,
        requires_grad: bool = False,
        name: str | None = None,
        copy: bool = True,
    ):
        if isinstance(array, Variable):
            array = array.array
        elif isinstance(array, Value):
            raise error_at_user_line(
                DTypeError(
                    f"{array!r} is traced: a Variable holds an array\n"
                    "  make Variables outside of the traced function, and pass them in"
                )
            )
        elif type(array) in (bool, int, float, complex, list, tuple):
            array, copy = array_of_nested(array), False  # it is new already
        elif is_lazy(array):
            raise DTypeError("a Variable holds values, found a Dask array\n  use letir.grad")
        self.arg = leaf_edge(type_of(array), requires_grad, name)
        self.array, self.sharing = copy_in_order(array) if copy else array, None
        if not isinstance(array, np.ndarray | np.generic):  # an array on a device
            forget_kernels()

    # ---- properties ----

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient flows to this Variable."""
        return self.arg.requires_grad

    @requires_grad.setter
    def requires_grad(self, requires: bool) -> None:
        self.requires_grad_(requires)

    @entry_point
    def requires_grad_(self, requires_grad: bool = True) -> "Variable":
        """Set whether this leaf requires grad. Returns itself."""
        if requires_grad != self.requires_grad:
            if not self.is_leaf:
                raise TraceError(
                    f"requires_grad can be changed for leaves only{at_user()}\n"
                    "  x.detach() is a leaf with the same array"
                )
            self.arg = leaf_edge(self.type, requires_grad, None)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this Variable."""
        return self.arg.is_leaf

    @property
    def grad_fn(self) -> GradEdge | None:
        """The recorded operation that made this Variable, None for a leaf."""
        return None if self.arg.is_leaf else getattr(self.arg, "node", self.arg)

    @property
    def data(self) -> Any:
        """The array. Assigning to it replaces the array, without a record."""
        return self.array

    @data.setter
    @entry_point
    def data(self, array: Any) -> None:
        array = array.array if isinstance(array, Variable) else array
        if type_of(array) is not self.type:
            raise error_at_user_line(
                DTypeError(
                    f"data must keep the type {self.type}, found {type_of(array)}\n"
                    "  convert it with .astype, or make a new Variable"
                )
            )
        self.array = array

    def numpy(self) -> Any:
        """The array, without its history."""
        return self.array

    def concrete_value(self) -> Any:
        """The array, read by a trace that has this Variable as an argument."""
        return self.array

    def is_scalar(self) -> bool:
        """Whether the array is a NumPy scalar, which ``+=`` replaces instead of changing it."""
        return not isinstance(self.array, np.ndarray) and not self.shape

    def snapshot(self) -> Value:
        """A recorded copy, which later writes do not change."""
        return self.copy(order="K")

    def detach(self) -> "Variable":
        """A leaf with the same array that does not require grad."""
        result = RECORDER.new_variable(self.array, Constant(self.type))
        if not self.is_scalar():
            add_view(result, self, detached=True)
        return result

    def plain(self) -> "Variable":
        """This Variable; for an instance of a subclass, as an instance of ``Variable`` itself."""
        result = RECORDER.new_variable(self.array, self.arg)
        # both have the same memory: changes must be visible through both
        result.sharing = self.sharing
        return result

    @property
    def version(self) -> int:
        """The number of in-place changes of the value."""
        notes = self.arg.notes
        return 0 if notes is None or notes.changed is None else notes.changed.count

    # ---- gradients ----

    @property
    def grad(self) -> "Variable | None":
        """The gradient accumulated by ``backward``, None before the first one."""
        if type(self.arg) is Leaf:
            return self.arg.grad
        return None if self.arg.notes is None else self.arg.notes.grad

    @grad.setter
    @entry_point
    def grad(self, value: Any) -> None:
        if value is not None and not isinstance(value, Variable):
            value = Variable(value)
        if value is not None and (value.type is not self.type or not self.requires_grad):
            raise error_at_user_line(
                DTypeError(
                    f"a gradient of type {value.type} does not fit a Variable of type {self.type}\n"
                    "  a gradient has the type of its Variable: convert it with .astype"
                )
            )
        if type(self.arg) is Leaf:
            self.arg.grad = value
        elif value is not None or self.arg.notes is not None:
            self.arg.own_notes().grad = value

    @entry_point
    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        *,
        workers: int = 1,
    ) -> None:
        """Add the gradients with respect to the leaves that require grad to their ``.grad``.

        ``gradient``: the cotangent of this Variable, of its type; 1 by default for a scalar. With
        ``create_graph`` the gradients have a history themselves. Saved values are freed unless
        ``retain_graph`` (default: ``create_graph``). Independent nodes run side by side in
        ``workers`` threads, with bitwise the same results.
        """
        backward(self, gradient, retain_graph, create_graph, workers=workers)

    def zero_grad(self) -> None:
        """Set ``.grad`` to None."""
        self.grad = None

    @entry_point
    def retain_grad(self) -> None:
        """Let ``backward`` set ``.grad`` although this is not a leaf."""
        self.check_requires_grad("retain_grad")
        if not self.is_leaf:
            self.arg.own_notes().keeps_grad = True

    @entry_point
    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad)`` when backward has the full gradient of this Variable.

        A result of the hook that is not None replaces the gradient.

        >>> x = Variable(2.0, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: 10 * grad)
        >>> (x * x).backward()
        >>> x.grad
        Variable(40.)
        """
        self.check_requires_grad("register_hook")
        return add_hook(self.arg.own_notes().hooks, hook)

    def check_requires_grad(self, caller: str) -> None:
        """Raise TraceError unless this Variable requires grad."""
        if not self.requires_grad:
            raise TraceError(
                f"{caller}: the Variable does not require grad{at_user()}\n"
                "  make it with requires_grad=True"
            )

    # ---- as an array ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        record = ufunc_records.get(ufunc)
        if record is not None and method == "__call__" and not kwargs:  # the common case
            return RECORDER.apply(record, inputs)
        unknown = record is None or writes_into_array(kwargs)
        if unknown and not must_be_recorded([*inputs, kwargs.get("out")]):
            return call_on_arrays(getattr(ufunc, method), inputs, kwargs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def numpy_call(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """The result of NumPy's function ``func``; this Variable is one of the arguments."""
        try:
            unknown = recorder_of(func) is None and func not in PLAIN
            if unknown or "out" in kwargs:
                history = is_tracer if func in DISCRETE else must_be_recorded
                if not history([*args, *kwargs.values()]):
                    return call_on_arrays(func, args, kwargs)
            return numpy_call(self, func, args, kwargs)
        except BaseException as error:
            del args, kwargs  # a stored exception would keep them alive
            LATE_BOUND["shorten_traceback"](error, within=True)
            raise

    def knows(self, function: Any) -> bool:
        """Whether a NumPy function can be recorded or computed on this Variable."""
        return callable(function)

    def __getitem__(self, item):
        return numpy_call(self, INDEX, (self, item), {})

    def reshape(self, *shape: Any, **options: Any) -> "Variable":
        """NumPy's ``ndarray.reshape``: sizes one by one or in a tuple."""
        return numpy_call(self, np.reshape, (self, shape[0] if len(shape) == 1 else shape), options)

    def __repr__(self):
        text = np.array2string(np.asarray(self.array), separator=", ", prefix="Variable(")
        return f"Variable({text}{', requires_grad=True' if self.requires_grad else ''})"

    def _repr_html_(self):
        return LATE_BOUND["variable_html"](self)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad and (RECORDS.get() or is_grad_enabled()):
            raise lost_history_error()
        return np.array(self.array, dtype, copy=copy)

    def __dlpack__(self, **options):
        if self.requires_grad and (RECORDS.get() or is_grad_enabled()):
            raise lost_history_error()
        return exported_array(self.array).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return exported_array(self.array).__dlpack_device__()

    def __letir_run__(self, f: Lambda, leaves: list) -> tuple:
        """Run and record a program that is called on Variables."""
        tracer = next((leaf for leaf in leaves if isinstance(leaf, Tracer)), None)
        if tracer is not None:
            return tracer.__letir_run__(f, leaves)
        return replay_program(f, leaves)

    def __bool__(self):
        return convert_with_hint(bool, self.array, ValueError, _TRUTH_HINT)

    def __int__(self):
        return convert_with_hint(int, self.array, TypeError, _NUMBER_HINT)

    def __float__(self):
        self.refuse_write_into_array()
        return convert_with_hint(float, self.array, TypeError, _NUMBER_HINT)

    def __complex__(self):
        self.refuse_write_into_array()
        return complex(self.array)

    def refuse_write_into_array(self) -> None:
        """Raise TraceError if NumPy asks for a number to store, as in ``buffer[i] = x``."""
        frame = sys._getframe(2)  # the user's statement, as NumPy calls float(x) from C
        if is_item_write(frame) and self.requires_grad and (RECORDS.get() or is_grad_enabled()):
            raise lost_history_error("be written into", "write into Variable(buffer)")

    def __index__(self):
        return convert_with_hint(operator.index, self.array, TypeError, _INDEX_HINT)

    def __format__(self, spec):
        return format(self.array, spec) if spec else repr(self)

    def item(self, *args: Any) -> Any:
        """NumPy's ``ndarray.item``."""
        return self.array.item(*args)

    def tolist(self) -> Any:
        """NumPy's ``ndarray.tolist``."""
        return self.array.tolist()

    # by identity, unlike Values: Variables are keys in the state of optimisers
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __reduce_ex__(self, protocol):
        if not self.is_leaf:
            raise TraceError(
                f"a Variable with a history cannot be pickled or copied deeply{at_user()}\n"
                "  x.detach() has the same array and no history"
            )
        return _restored, (type(self), self.array, self.requires_grad, self.grad)

    def __deepcopy__(self, memo):
        rebuild, (kind, array, requires_grad, grad) = self.__reduce_ex__(2)
        grad = None if grad is None else grad.detach().__deepcopy__(memo)  # it may have a history
        return rebuild(kind, array.copy(), requires_grad, grad)

    # ---- in place ----

    def replace(self, new: "Variable") -> "Variable":
        """Write ``new``, a value of the same type, into the array."""
        write_variable(self, new)
        return self

    def __setitem__(self, item, new):
        if isinstance(new, Variable) and is_item(new, self, item_with_places(item)[1]):
            return  # x[item] += y ends with this call: the view has been written already
        # the new value is computed first and then written in place, so that views stay views
        self.replace(self.at[item].set(stack_traced(new)))


def _restored(kind: type, array, requires_grad: bool, grad) -> Variable:
    """A leaf restored from a pickle."""
    result = kind(array, requires_grad)
    if grad is not None:
        result.grad = grad
    return result


# set here, because the modules that Variable imports need the recorder first
Recorder.variable = Variable
