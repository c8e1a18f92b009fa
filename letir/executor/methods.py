"""``jit`` for methods, callable objects and partials.

The arrays in an object's attributes are arguments of the program, as the arrays of a model are for
``jit_model``, and arrays that the method assigns are stored in the object. The bound arrays of a
partial are arguments too. A plan keeps none of them alive.
"""

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Generic

import optree
from attrs import define, evolve, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.pytrees import NAMESPACE
from letir.ast.signatures import P, R
from letir.eager.models.attributes import has_no_parts, mirror_value, places_by_path, put_part
from letir.eager.models.recorded_model import changed_places, distinct_arrays, value_token
from letir.errors import TraceError
from letir.executor.transformed_executors import transformed_method
from letir.tracing.trace_state import ACTIVE
from letir.transforms.jitted_functions import Transform

_INSTANCE: ContextVar = ContextVar("letir_jit_instance")  # the object whose method is called
_ROOT = "self"


@frozen
class _Held:
    """The state of an object besides its arrays: their places, and the other attributes."""

    kind: type
    places: tuple
    kept: tuple = field(eq=False, repr=False)  # objects compared by id, which must stay alive

    @classmethod
    def of(cls, instance, held: dict, arrays: Sequence) -> "_Held":
        """The state of an object with these attributes."""
        index = {id(array): i for i, array in enumerate(arrays)}
        found = [
            (p.path, index.get(id(p.value)), value_token(p.value))
            if has_no_parts(p.value)
            else (p.path, type(p.value))
            for p in held.values()
        ]
        # an array is an argument: a plan must not keep it alive
        kept = [
            p.value for p in held.values() if has_no_parts(p.value) and id(p.value) not in index
        ]
        kind = instance if isinstance(instance, type) else type(instance)
        return cls(kind, tuple(found), tuple(kept))


@define(eq=False)
class _Changed:
    """Arrays assigned by a method: their places (owner's path, attribute or item), and values."""

    places: tuple
    values: list


_register_node: Any = optree.register_pytree_node  # its types know collections only
_register_node(
    _Changed,
    lambda changed: (changed.values, changed.places, None),
    lambda places, values: _Changed(places, list(values)),
    namespace=NAMESPACE,
)


def mirrored_method(method: Callable) -> Callable:
    """``method`` as a function of the object's arrays, which returns (result, changed arrays)."""

    @functools.wraps(method)
    def function(held, arrays, *args, **kwargs):
        instance = _INSTANCE.get()
        originals = distinct_arrays(places_by_path(instance, _ROOT))
        stand_in = {id(a): t for a, t in zip(originals, arrays, strict=True)}
        mirror = mirror_value(instance, lambda array: stand_in[id(array)], {})
        before = places_by_path(mirror, _ROOT)
        out = method(mirror, *args, **kwargs)
        try:
            changed = changed_places(before, places_by_path(mirror, _ROOT))
        except TraceError as error:
            error.args = (str(error).replace("jit_model: forward", "jit: the method"),)
            raise
        where = tuple([(place.owner, place.key) for place in changed.values()])
        return out, _Changed(where, [place.value for place in changed.values()])

    del function.__wrapped__  # its own parameters are others
    return function


class BoundExecutor(Generic[P, R]):
    """An executor as a method of ``instance``."""

    def __init__(self, executor, on_arrays, instance):
        functools.update_wrapper(self, executor, updated=())
        self.executor, self.on_arrays, self.__self__ = executor, on_arrays, instance

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        instance = self.__self__
        if ACTIVE.get() is not None:
            return self.executor.f(instance, *args, **kwargs)
        held = places_by_path(instance, _ROOT)
        arrays = distinct_arrays(held)
        before = _INSTANCE.set(instance)
        try:
            found = self.on_arrays(_Held.of(instance, held, arrays), arrays, *args, **kwargs)
        finally:
            _INSTANCE.reset(before)
        out, changed = found
        for (owner, key), value in zip(changed.places, changed.values, strict=True):
            put_part(held[owner].value if owner in held else instance, key, value)
        return out

    def as_function(self, ask: Callable, *args: Any, **kwargs: Any) -> Any:
        """``ask(executor, ...)`` for the executor that takes the object's arrays as arguments."""
        instance = self.__self__
        held = places_by_path(instance, _ROOT)
        arrays = distinct_arrays(held)
        before = _INSTANCE.set(instance)
        try:
            return ask(self.on_arrays, _Held.of(instance, held, arrays), arrays, *args, **kwargs)
        finally:
            _INSTANCE.reset(before)

    def __letir_transformed__(self, transform: Transform) -> "BoundExecutor":
        """The executor of the transformed method, bound to the same object."""
        return transformed_method(self.executor, transform).__get__(self.__self__)

    def __getattr__(self, name):
        return getattr(self.on_arrays, name)  # counters, clear and so on

    def __repr__(self):
        return f"<{self.executor!r} bound to {type(self.__self__).__name__}>"


def options_of_method(options: Any) -> Any:
    """The options of a method, shifted for its function of (state, arrays, *arguments)."""
    return evolve(
        options,
        static_argnums=(0, *[n + 1 if n > 0 else n for n in options.static_argnums]),
        donate_argnums=tuple([n + 1 if n > 0 else n for n in options.donate_argnums]),
    )


def bound_executor(executor: Any, make: Callable, instance: object) -> BoundExecutor:
    """``executor`` as a method of ``instance``. ``make(function, options)`` is its class."""
    if executor.method is None:
        with executor.lock:
            if executor.method is None:
                executor.method = make(
                    mirrored_method(executor.f), options_of_method(executor.options)
                )
    return BoundExecutor(executor, executor.method, instance)


LATE_BOUND["bound_executor"] = bound_executor
