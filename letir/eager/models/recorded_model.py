"""``jit_model``: a model with ``forward`` and ``parameters()`` as a recorded program."""

import weakref
from collections.abc import Collection, Sequence
from typing import Any

from attrs import frozen

from letir.ast import entry_point
from letir.ast.attrs import token
from letir.ast.builder import Value
from letir.ast.liveness import has_effect
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda, Ret
from letir.ast.tree_nodes.stored_results import Place
from letir.eager.models.attributes import (
    AttributeValue,
    has_no_parts,
    holds_numbers,
    mirror_value,
    places_by_path,
    put_part,
)
from letir.errors import DTypeError, GuardError, TraceError
from letir.eval.arguments import mark_static
from letir.eval.array_modules import type_of
from letir.passes.dead_code_elimination import dead_code
from letir.tracing.checks.container_arguments import NotedParts, PartsSnapshot
from letir.tracing.entry import WRITE_BACK, record
from letir.tracing.source_locations import error_at_user_line
from letir.tracing.trace_state import LAZY
from letir.tracing.tracer import Tracer

_MAX_PROGRAMS = (
    16  # programs for the same argument types: branches could otherwise add more without end
)


@frozen(eq=False)
class _RecordedForward:
    """One recorded program of a model: from its arrays and the arguments to (result, new values).

    ``changed``: (path of the owner, attribute or item) for each new value.
    """

    program: Lambda
    changed: tuple[tuple[str, object], ...]


class RecordedModel:
    """A model whose ``forward`` is recorded by the first call and replayed by later ones."""

    def __init__(self, model):
        if isinstance(model, type):
            raise TraceError(
                f"jit_model: a model is expected, found the class {model.__name__}\n"
                f"  make an instance: letir.jit_model({model.__name__}(...))"
            )
        for name in ("forward", "parameters"):
            if not callable(getattr(model, name, None)):
                raise TraceError(
                    f"jit_model: a model needs the methods forward and parameters, "
                    f"{type(model).__name__} has no {name}\n"
                    "  give its class forward(self, x) and parameters(self), which "
                    "returns Variables"
                )
        self.model = model
        self._recorded: dict[tuple, tuple[_RecordedForward, ...]] = {}  # most recently used first

    @property
    def programs(self) -> list[Lambda]:
        """The recorded programs, one for each outcome of the model's Python branches: at most 16
        for each combination of argument types.
        """
        return [
            recording.program for recordings in self._recorded.values() for recording in recordings
        ]

    def has_trace_for(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a call with these arguments would replay a program, and not record a new one."""
        return self._trace_for(args, kwargs) is not None

    def graph_for(self, *args: Any, **kwargs: Any) -> Lambda:
        """The program that a call with these arguments would replay. Raises TraceError if there is
        none yet.
        """
        result = self._trace_for(args, kwargs)
        if result is None:
            raise error_at_user_line(
                TraceError(
                    "jit_model: there is no program for these arguments and attributes\n"
                    "  call the model with them once, which records it"
                )
            )
        return result.program

    def _trace_for(self, args: tuple, kwargs: dict) -> _RecordedForward | None:
        """The recorded program whose guards hold for these arguments."""
        places = places_by_path(self.model, "model")
        arrays = distinct_arrays(places)
        for result in self._recorded.get(_program_key(places, arrays, args, kwargs), ()):
            try:
                result.program.memo(_guards_of)(arrays, *args, **kwargs)
            except GuardError:
                continue
            return result
        return None

    def parameters(self) -> Any:
        """The parameters of the model."""
        return self.model.parameters()

    @entry_point
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the model's ``forward``; arrays that it replaces go into the model."""
        places = places_by_path(self.model, "model")
        arrays = distinct_arrays(places)
        # searched in every call: attributes may have changed
        key = _program_key(places, arrays, args, kwargs)
        recording, (out, changed) = self._replay_first(key, arrays, args, kwargs)
        for (owner, name), value in zip(recording.changed, changed, strict=True):
            put_part(places[owner].value if owner in places else self.model, name, value)
        return out

    __call__ = forward

    def _replay_first(self, key: tuple, arrays: list, args: tuple, kwargs: dict):
        """(program, results) of the first recorded program whose guards hold."""
        # a tuple, replaced as a whole: forward itself and other threads may call the model
        recordings = self._recorded.get(key, ())
        for result in recordings:
            try:
                results = result.program(arrays, *args, **kwargs)
            except GuardError:  # recorded for another outcome of a Python branch
                continue
            # move it to the front: the same branch is likely to run again
            if result is not recordings[0]:
                self._recorded[key] = (
                    result,
                    *[recording for recording in recordings if recording is not result],
                )
            return result, results
        result = self._record(arrays, args, kwargs)
        self._recorded[key] = (result, *recordings[: _MAX_PROGRAMS - 1])
        return result, result.program(arrays, *args, **kwargs)

    def _record(self, arrays: list, args: tuple, kwargs: dict) -> _RecordedForward:
        """``forward`` as a program of the model's arrays."""
        _check_reached(self.model.parameters(), arrays)
        changed: dict[str, AttributeValue] = {}

        def forward(traced, *args, **kwargs):
            # arrays are compared by identity: one that the model holds twice is one argument
            stand_in = {id(a): t for a, t in zip(arrays, traced, strict=True)}
            model = mirror_value(self.model, lambda array: stand_in[id(array)], {})
            # forward runs on a copy, so that the model never holds a traced value
            before, snapshot = places_by_path(model, "model"), PartsSnapshot(model, "model")
            out = model.forward(*args, **kwargs)
            after = places_by_path(model, "model")
            changed.update(changed_places(before, after, snapshot))
            return out, [place.value for place in changed.values()]

        marked = mark_static(forward, (arrays, *args), kwargs, (), ())
        fn = record(forward, *marked, LAZY, WRITE_BACK).fn
        return _RecordedForward(fn, tuple((p.owner, p.key) for p in changed.values()))


def _guards_of(program: Lambda) -> Lambda:
    """The part of a program that its guards need, without other effects and results."""
    binds = [b for b in program.binds if b.op.role == "guard" or not has_effect(b)]
    return dead_code(Lambda(program.params, binds, Ret(()), program.in_tree))


_NOTHING = AttributeValue("", "", None, object())


def changed_places(
    before: dict[str, AttributeValue], after: dict[str, AttributeValue], snapshot: PartsSnapshot
) -> dict[str, AttributeValue]:
    """The places in existing objects that hold another array than before, by path.

    ``snapshot``: all parts of the object, made before. Raises TraceError if a part that is not an
    array changed, or was deleted: a replay would not change it.
    """
    result = {}
    for path, place in after.items():
        old = before.get(path, _NOTHING)
        if old.value is place.value or not has_no_parts(place.value):
            continue
        if not isinstance(place.value, Tracer):
            _check_attributes(old, place)
            continue
        known_place = _known_place(place, before, after)
        result[known_place.path] = known_place
    owners = {path: place.value for path, place in before.items()}
    stored = {(id(owners.get(p.owner, snapshot.value)), p.key) for p in result.values()}
    for container in snapshot.containers.values():
        for change in container.changes():
            _check_stored(container, *change, stored)
    return result


def _known_place(
    place: AttributeValue, before: dict[str, AttributeValue], after: dict[str, AttributeValue]
) -> AttributeValue:
    """The place, in an object that existed before, through which ``place`` is reached."""
    while place.owner in after:
        owner = after[place.owner]
        if place.owner in before and before[place.owner].value is owner.value:
            break
        place = owner  # an object made by forward
    return place


def _check_stored(container: NotedParts, place: Place, value: Any, stored: Collection) -> None:
    """Raise TraceError unless a replay stores the new ``value`` of a part of ``container``, or the
    part is equal to what it was: it was deleted or moved, or another part holds the same list.
    """
    owner, key = id(container.value), place.steps[-1][1]
    is_new = place.action == "extend" and key >= len(container.items)
    keys = range(key, key + len(value)) if is_new else [key] if place.action == "set" else ()
    if keys and all((owner, key) in stored for key in keys):
        return
    old = container.part(*place.steps[-1], _NOTHING)
    if place.action == "set" and _is_equal_plain(old, value):
        return
    raise TraceError(
        f"jit_model: forward changes {place}, which a replay would not repeat\n"
        "  keep arrays in attributes that exist from the start: arrays that forward assigns are "
        "stored in the model"
    )


def _is_equal_plain(old: Any, value: Any) -> bool:
    """Whether two values without parts, neither of them traced, are equal."""
    if isinstance(value, Tracer) or not (has_no_parts(old) and has_no_parts(value)):
        return False
    return value_token(old) == value_token(value)


def distinct_arrays(places: dict[str, AttributeValue]) -> list:
    """The distinct arrays at these places."""
    return list({id(p.value): p.value for p in places.values() if holds_numbers(p.value)}.values())


def _check_attributes(old: AttributeValue, new: AttributeValue) -> None:
    """Raise TraceError if an attribute that is not an array changed."""
    if old is _NOTHING or value_token(old.value) != value_token(new.value):
        was = "absent" if old is _NOTHING else repr(old.value)
        raise TraceError(
            f"jit_model: forward changes {new.path} from {was} to {new.value!r}, "
            "which a replay would not repeat\n"
            "  keep it in an array, numpy.array(...), from the start: "
            "a replay stores the arrays that forward assigns"
        )


def _check_reached(parameters, arrays: Sequence) -> None:
    """Raise TraceError for a parameter that is not found in the model's attributes."""
    array_ids = {id(array) for array in arrays}
    for i, parameter in enumerate(parameters):
        if id(parameter) not in array_ids:
            raise TraceError(
                f"jit_model: parameter {i} is not in any attribute of the model, "
                "so the program could not take it as an argument\n"
                "  keep it in an attribute, a list or a dict of the model"
            )


def _program_key(
    places: dict[str, AttributeValue], arrays: Sequence, args: tuple, kwargs: dict
) -> tuple:
    """The cache key of a program: places and types of arrays, other attributes, and arguments."""
    index = {id(array): i for i, array in enumerate(arrays)}
    where = tuple(
        (p.path, index.get(id(p.value)), value_token(p.value))
        for p in places.values()
        if has_no_parts(p.value)
    )
    leaves, spec = flatten((args, kwargs))
    return where, spec, tuple(map(value_token, leaves))


def value_token(value: Any) -> Any:
    """The part of a cache key for one value: the type of an array, any other value itself."""
    if holds_numbers(value):
        return value.type if isinstance(value, Value) else type_of(value)
    if type(value) in weakref.ProxyTypes:  # not hashable, if its object is gone not even that
        return id(value)
    if isinstance(value, dict | list):  # an empty one
        return type(value)
    try:
        return token(value)
    except DTypeError:  # not hashable
        return id(value)


@entry_point
def jit_model(model: Any) -> RecordedModel:
    """``model``, an object with ``forward`` and ``parameters()``, as a callable that records at the
    first call and replays at later ones.

    All arrays in the model's attributes (in nested lists, dicts and objects too) are arguments of
    the program, so it sees every change of them; arrays that ``forward`` assigns to attributes are
    results, which are stored in the model after each call. Another type of argument, another value
    of a plain attribute (``self.training``) or a failing guard records again. The callable keeps no
    outputs alive. ``has_trace_for(*args)`` says whether a call replays, ``graph_for(*args)`` gives
    the program. Raises TraceError if ``forward`` changes an attribute that is not an array.

    >>> import numpy as np
    >>> class Scale:
    ...     def __init__(self):
    ...         self.weight = np.array([2.0, 3.0])
    ...
    ...     def parameters(self):
    ...         return [self.weight]
    ...
    ...     def forward(self, x):
    ...         return self.weight * x
    >>> fast = jit_model(Scale())
    >>> fast(np.ones(2)), len(fast.programs)
    (array([2., 3.]), 1)
    """
    return RecordedModel(model)
