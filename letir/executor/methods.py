"""``jit`` for methods, callable objects and partials.

The arrays in an object's attributes are arguments of the program, as the arrays of a model are for
``jit_model``, and arrays that the method assigns are stored in the object. The bound arrays of a
partial are arguments too. A plan keeps none of them alive.
"""

import copyreg
import functools
import inspect
import types
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import numpy as np
import optree
from attrs import define, evolve, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.pytrees import NAMESPACE
from letir.ast.signatures import P, R
from letir.eager.models.attributes import has_no_parts, mirror_value, places_by_path, put_part
from letir.eager.models.recorded_model import changed_places, distinct_arrays, value_token
from letir.errors import DTypeError, TraceError
from letir.eval.float_warnings import leave_out_of_warnings
from letir.executor.argument_spec import token_of_static
from letir.executor.calls import general_call, run_python_function, runs_python_alone
from letir.executor.calls_without_plan import count_call_without_plan, skips_plan_search
from letir.executor.executor import Executor
from letir.executor.jit_api import Jitted
from letir.executor.transformed_executors import transformed_method
from letir.plan.plan import Miss
from letir.tracing.checks.container_arguments import PartsSnapshot
from letir.tracing.refusals import mark_outside_state
from letir.tracing.trace_state import ACTIVE, active_trace
from letir.transforms.jitted_functions import Transform

_INSTANCE: ContextVar = ContextVar("letir_jit_instance")  # the object whose method is called
_ROOT = "self"
_PLAIN = frozenset([int, float, bool, str, type(None)])
_MAX_STATES = 256


@frozen
class _ObjectState:
    """The state of an object besides its arrays: their places, and the other attributes."""

    kind: type
    places: tuple
    kept: tuple = field(eq=False, repr=False)  # objects compared by id, which must stay alive

    @classmethod
    def from_object(cls, instance, places: dict, arrays: Sequence) -> "_ObjectState":
        """The state of an object with these attributes."""
        index = {id(array): i for i, array in enumerate(arrays)}
        parts, objects = list[Any](), list[Any]()
        for path, place in places.items():
            value = place.value
            if not has_no_parts(value):
                parts.append((path, type(value)))
                continue
            number = index.get(id(value))
            parts.append((path, number, _token_of(value)))
            if number is None:  # an array is an argument: a plan must not keep it alive
                objects.append(value)
        kind = instance if isinstance(instance, type) else type(instance)
        return cls(kind, tuple(parts), tuple(objects))

    @property
    def reached(self) -> tuple:
        """The objects and classes in which a method may find state."""
        return (*self.kept, self.kind, *[part[1] for part in self.places if len(part) == 2])

    def __letir_difference__(self, other: "_ObjectState") -> str:
        """A readable description of how the state differs from an earlier one."""
        now, before = self._values(), other._values()
        differences = [
            f"{path} is {now.get(path, 'missing')}, was {before.get(path, 'missing')}"
            for path in (*now, *[path for path in before if path not in now])
            if now.get(path) != before.get(path)
        ]
        return "; ".join(differences) or "an attribute holds another object"

    def _values(self) -> dict[str, str]:
        """The plain values, the classes of other objects, and the arrays, by path."""
        objects = iter(self.kept)
        result = {}
        for path, *rest in self.places:
            if len(rest) == 1:
                result[path] = f"an object of type {rest[0].__name__}"
            elif rest[0] is not None:
                result[path] = "an array"
            else:
                result[path] = repr(next(objects))
        return result


@define(eq=False)
class _ChangedArrays:
    """Arrays assigned by a method: their places (owner's path, attribute or item), and values."""

    __letir_constant__ = "places", "values"  # the constant and the results
    places: tuple
    values: list


_register_node: Any = optree.register_pytree_node  # its annotations allow collections only
_register_node(
    _ChangedArrays,
    lambda changed: (changed.values, changed.places, None),
    lambda places, values: _ChangedArrays(places, list(values)),
    namespace=NAMESPACE,
)
_AS_PYTHON = _ChangedArrays((), [])  # of a call of the Python function, which stores them itself


def _token_of(value: Any) -> Any:
    """The part of a cache key for a value without parts.

    Raises DTypeError for a function that uses arrays or objects, whose changes a plan would miss.
    """
    return (token_of_static if type(value) is types.FunctionType else value_token)(value)


def _not_recorded(instance: np.ndarray) -> str:
    """Why methods of an object that is an array itself are not recorded."""
    return (
        f"the object of the method is an array, of class {type(instance).__name__}\n"
        "  write a function of np.asarray(x), and of its attributes that are needed"
    )


def _mirrored_method(method: Callable) -> Callable:
    """``method`` as a function of the object's state; returns (result, changed arrays)."""

    @functools.wraps(method)
    def function(state, arrays, *args, **kwargs):
        instance = _INSTANCE.get()
        if ACTIVE.get() is None:  # called as Python
            return method(instance, *args, **kwargs), _AS_PYTHON
        if isinstance(instance, np.ndarray):
            raise TraceError(_not_recorded(instance))
        originals = distinct_arrays(places_by_path(instance, _ROOT))
        stand_in = {id(a): t for a, t in zip(originals, arrays, strict=True)}
        mirror = mirror_value(instance, lambda array: stand_in[id(array)], {})
        before, snapshot = places_by_path(mirror, _ROOT), PartsSnapshot(mirror, _ROOT)
        out = method(mirror, *args, **kwargs)
        after = places_by_path(mirror, _ROOT)
        try:
            changed = changed_places(before, after, snapshot)
        except TraceError as error:
            error.args = (str(error).replace("jit_model: forward", "jit: the method"),)
            raise mark_outside_state(error) from None
        where = tuple([(place.owner, place.key) for place in changed.values()])
        return out, _ChangedArrays(where, [place.value for place in changed.values()])

    del function.__wrapped__  # signatures of the wrapped method would be wrong
    vars(function)["letir_reaches"] = lambda: (method, _INSTANCE.get())
    return function


@functools.lru_cache(_MAX_STATES)
def holds_attributes_only(kind: type) -> bool:
    """Whether the parts of an object of this class are the items of its ``__dict__``."""
    slots = {name for cls in kind.__mro__ for name in cls.__dict__.get("__slots__", ())}
    is_container = issubclass(kind, dict | list | tuple | types.MethodType | np.ndarray | type)
    is_plain = slots <= {"__dict__", "__weakref__"} and not hasattr(kind, "__letir_run__")
    return is_plain and not is_container and kind.__dictoffset__ != 0


def _plain_state(instance: Any) -> tuple[tuple, list] | None:
    """(key, arrays) of an object whose attributes are arrays, numbers and strings alone.

    Objects with equal keys have equal states besides their arrays. None for other objects.
    """
    kind: Any = type(instance)
    if not holds_attributes_only(kind):
        return None
    attributes = instance.__dict__
    key: list = [kind, *attributes]
    arrays = []
    for value in attributes.values():
        if type(value) is np.ndarray:
            arrays.append(value)
            key += (value.dtype, value.shape)
        elif type(value) in _PLAIN and value == value:
            # 0.0 and -0.0 are equal, but as constants they give different programs
            key += (type(value), value if value or type(value) is not float else str(value))
        else:
            return None
    return (tuple(key), arrays) if len({*map(id, arrays)}) == len(arrays) else None


def _quick_call_on_object(on_arrays: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a method by one of its quick calls; Miss if there is none for these arguments.

    ``args``: the object and the other arguments. The function of a quick call does not run inside a
    trace.
    """
    for quick in on_arrays.quick:
        if quick.of_object:
            try:
                out = quick.of_object(*args, **kwargs)
            except Exception:  # made again in another way, which raises the same error if any
                if quick.object_is_python:
                    raise
                quick.note_failure_on_object()
            else:
                if out is not Miss:
                    if on_arrays.calls_without_plan:
                        on_arrays.calls_without_plan.pop(type(args[0]), None)
                    return out
    return Miss


def call_of_objects(executor: Any) -> Callable:
    """The function of an executor that has been called with an object as the first argument."""
    method, general, f = executor.method, general_call(executor), executor.f
    calls, unplanned = executor.calls, method.calls_without_plan

    def call(*args: Any, **kwargs: Any) -> Any:
        out = _quick_call_on_object(method, args, kwargs) if method.quick else Miss
        if out is Miss and not (unplanned and args and skips_plan_search(method, type(args[0]))):
            return general(*args, **kwargs)
        next(calls)
        return f(*args, **kwargs) if out is Miss else out

    return call


def _add_calls_on_object(on_arrays: Any, method: tuple, args: tuple, kwargs: dict) -> None:
    """Give the quick calls that take the object's arrays a call that takes the object itself."""
    for quick in on_arrays.quick:
        if quick.of_object is None:
            quick.of_object = LATE_BOUND["object_call"](on_arrays, quick, method, args, kwargs)


def _call_on_object(executor: Any, on_arrays: Any, instance: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a method of ``instance``; arrays that it assigns are stored in the object."""
    if ACTIVE.get() is not None and active_trace() is not None:
        return executor.f(instance, *args, **kwargs)
    if isinstance(instance, np.ndarray):
        executor.why_python = _not_recorded(instance)
        return run_python_function(executor, (instance, *args), kwargs)
    if runs_python_alone(on_arrays):  # a search of the object would find no plan
        next(on_arrays.calls), next(on_arrays.missed)
        return executor.f(instance, *args, **kwargs)
    places: dict = {}  # containers and objects, by path
    plain, state = _plain_state(instance), None
    if plain is not None:
        key, arrays = plain
        state = on_arrays.states.get(key)
    if state is None:
        places = places_by_path(instance, _ROOT)
        arrays = distinct_arrays(places)
        try:
            state = _ObjectState.from_object(instance, places, arrays)
        except DTypeError as error:
            executor.why_python = str(error)
            count_call_without_plan(on_arrays, type(instance), len(places))
            return run_python_function(executor, (instance, *args), kwargs)
        if plain is not None:
            on_arrays.states[key] = state
    on_arrays.objects = on_arrays.objects[1], (id(instance), state)
    _add_calls_on_object(on_arrays, (executor.f, instance), (state, arrays, *args), kwargs)
    compiles = on_arrays.cache.compiles
    before = _INSTANCE.set(instance)
    try:
        out, changed = on_arrays(state, arrays, *args, **kwargs)
    finally:
        _INSTANCE.reset(before)
    if changed is _AS_PYTHON or compiles != on_arrays.cache.compiles:
        count_call_without_plan(on_arrays, type(instance), len(places))
    elif on_arrays.calls_without_plan:
        on_arrays.calls_without_plan.pop(type(instance), None)
    for (owner, key), value in zip(changed.places, changed.values, strict=True):
        put_part(places[owner].value if owner in places else instance, key, value)
    return out


def call_on_first(executor: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a call whose first argument is an object, after others with its class."""
    return _call_on_object(executor, executor_on_arrays(executor), args[0], args[1:], kwargs)


def _call_of_method(executor: Any, on_arrays: Any, instance: Any) -> Callable:
    """The call of a jitted method."""
    f, kind = executor.f, type(instance)

    def call(*args: Any, **kwargs: Any) -> Any:
        if on_arrays.quick:
            out = _quick_call_on_object(on_arrays, (instance, *args), kwargs)
            if out is not Miss:
                return out
        if on_arrays.calls_without_plan and skips_plan_search(on_arrays, kind):
            return f(instance, *args, **kwargs)
        return _call_on_object(executor, on_arrays, instance, args, kwargs)

    return call


class JittedMethod(Jitted[P, R]):
    """A jitted function as a method of ``__self__``; other attributes are those of the function.

    ``__letir_executor__`` takes the state and the arrays of the object before other arguments.
    """

    __slots__ = ("__func__", "__self__")

    def __init__(self, function, instance):
        executor = function.__letir_executor__
        on_arrays = executor_on_arrays(executor)
        self.__func__, self.__self__, self.__letir_executor__ = function, instance, on_arrays
        self.__dict__ = on_arrays.wrapped_names  # one dict for all of them: it is made in each call
        self.__call__ = _call_of_method(executor, on_arrays, instance)  # type: ignore[method-assign]

    def as_function(self, ask: Callable, *args: Any, **kwargs: Any) -> Any:
        """``ask(executor, ...)`` for the executor that takes the object's arrays as arguments."""
        instance, places = self.__self__, places_by_path(self.__self__, _ROOT)
        arrays = distinct_arrays(places)
        state = _ObjectState.from_object(instance, places, arrays)
        before = _INSTANCE.set(instance)
        try:
            return ask(self.__letir_executor__, state, arrays, *args, **kwargs)
        finally:
            _INSTANCE.reset(before)

    def __letir_transformed__(self, transform: Transform) -> "JittedMethod":
        """The transformed method, jitted and bound to the same object."""
        executor = self.__func__.__letir_executor__
        return transformed_method(executor, transform).__get__(self.__self__)

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature without the object: ``inspect.signature`` reads it."""
        return inspect.signature(types.MethodType(self.__func__.__wrapped__, self.__self__))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JittedMethod) or self.__func__ is not other.__func__:
            return False
        return self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    @property
    def __letir_held__(self) -> Any:
        """The object, whose arrays are arguments."""
        return self.__self__

    def __letir_with_held__(self, instance: Any) -> "JittedMethod":
        """The jitted function as a method of another object."""
        return self.__func__.__get__(instance)

    def __getattr__(self, name):
        return getattr(self.__func__, name)

    def __reduce__(self) -> tuple:
        # the object may hold this method: it is a state, which is pickled afterwards
        return copyreg.__newobj__, (JittedMethod,), (self.__func__, self.__self__)  # type: ignore[attr-defined]

    def __setstate__(self, state: tuple) -> None:
        JittedMethod.__init__(self, *state)

    def __repr__(self):
        return f"<{self.__func__!r} bound to {type(self.__self__).__name__}>"


def executor_on_arrays(executor: Any) -> Any:
    """The executor of a method's function of (state of the object, its arrays, *arguments)."""
    if executor.method is None:
        with executor.lock:
            if executor.method is None:
                given = executor.options
                static = 0, *[n + 1 if n > 0 else n for n in given.static_argnums]
                donated = tuple([n + 1 if n > 0 else n for n in given.donate_argnums])
                options = evolve(given, static_argnums=static, donate_argnums=donated)
                method: Any = Executor(_mirrored_method(executor.f), options)
                method.states = BoundedCache(_MAX_STATES)  # of plain objects, by key
                method.calls_without_plan = {}  # their number in a row, by class of the object
                method.missed_calls = zip(method.calls, method.missed, strict=True)
                holder: Any = SimpleNamespace()
                functools.update_wrapper(holder, executor.f, updated=())
                method.wrapped_names = vars(holder)
                executor.method = method
    return executor.method


_OF_OBJECTS = call_of_objects, _call_on_object, call_on_first, _call_of_method
leave_out_of_warnings(_mirrored_method, _quick_call_on_object, *_OF_OBJECTS)
LATE_BOUND.update(
    call_of_objects=call_of_objects,
    call_on_first=call_on_first,
    executor_on_arrays=executor_on_arrays,
    holds_attributes_only=holds_attributes_only,
    jitted_method=JittedMethod,
)
