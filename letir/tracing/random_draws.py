"""Draws from random generators during a recording, wherever the function finds the generator.

A recording replaces the methods of NumPy's generators and of ``random.Random``, and the functions
of ``numpy.random`` and ``random``. In threads that do not record, and for generators that the
function has made and seeded itself, these call the originals. Others depend on the recording:

- ``REFUSE_DRAWS``: an error, because the program would repeat the numbers;
- ``DRAW_AT_ONCE``: the generator draws, because the program runs only once, as in eager ``grad``;
- ``LIFT_STATES``: the state of the generator becomes a parameter, which ``jit`` fills in.
"""

import ctypes
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from letir.ast import LATE_BOUND, loaded_module
from letir.ast.builder import Value
from letir.ast.process_state import new_lock
from letir.ast.types import ArrayType
from letir.ops import LateModule
from letir.tracing import callers, entry
from letir.tracing.checks.draw_errors import hidden_draw_error, refused_draw_error
from letir.tracing.checks.hidden_random_state import draw_elsewhere
from letir.tracing.checks.own_generators import (
    is_seed_given,
    note_first_seed,
    note_own_generator,
    note_seed,
    note_unseeded,
    ownership,
    seed_numbers,
    states_after_draws,
)
from letir.tracing.checks.system_randomness import RANDOM_FILE, is_importing, system_bytes
from letir.tracing.operands import first_traced
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import is_user_file
from letir.tracing.trace_state import ABSENT, ACTIVE, DRAW_AT_ONCE, LIFT_STATES, REFUSE_DRAWS, Trace

# loaded by the first draw that is recorded: they need the operations of generators
_captured_generators: Any = LateModule("letir.ops.random.captured_generators")
_generator_states: Any = LateModule("letir.ops.random.generator_states")
_lock = new_lock(threading.RLock)
# methods of generators that do not draw, but read or set the state
_STATE = ("__reduce__", "get_state", "set_state", "seed", "spawn", "getstate", "setstate")
_LETIR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_COPY = os.path.join(os.path.dirname(os.__file__), "copy.py")
_modified = ctypes.pythonapi.PyType_Modified


class _Place:
    """A dict whose functions have stand-ins while a recording is under way."""

    def __init__(self, space: dict, stand_ins: dict[str, Any], kind: type | None = None):
        self.space, self.stand_ins = space, stand_ins
        self.users: set[DrawWatch] = set()
        self.originals = {name: space[name] for name in stand_ins}
        self.kind = None if kind is None else ctypes.py_object(kind)

    def exchange(self, functions: dict[str, Any]) -> None:
        """Put functions in place."""
        self.space.update(functions)
        if self.kind is not None:  # invalidates the methods that CPython has cached
            _modified(self.kind)


class DrawWatch:
    """The stand-ins during one recording, whose mode is ``draws`` (see the module's docstring)."""

    __slots__ = ("draws", "places")

    def __init__(self, draws: str) -> None:
        self.draws = draws
        self.places: tuple[_Place, ...] = ()

    def start(self) -> None:
        """Put the stand-ins in place."""
        places: tuple[_Place, ...] = _python_places() if "random" in sys.modules else ()
        if "numpy.random" in sys.modules:
            places += _numpy_places(self.draws)
        with _lock:
            self.places = places
            for place in places:
                place.users.add(self)
                if len(place.users) == 1:
                    place.exchange(place.stand_ins)

    def end(self) -> None:
        """Put the originals in place again where no other recording needs the stand-ins."""
        with _lock:
            for place in self.places:
                if place.users == {self}:
                    place.exchange(place.originals)
                place.users.discard(self)
            self.places = ()


@functools.cache
def _numpy_places(draws: str) -> tuple[_Place, ...]:
    """The dicts with the methods and functions of NumPy's generators."""
    if draws in (LIFT_STATES, DRAW_AT_ONCE):
        return (*_numpy_places(REFUSE_DRAWS), _hidden_functions("numpy.random"))
    module = loaded_module("numpy.random")
    bits: Any = sys.modules["numpy.random.bit_generator"]
    # a generator whose lock is made during the recording is the function's own; randbits: no seed
    lock = "RLock" if hasattr(bits, "RLock") else "Lock"
    notes = {lock: note_own_generator, "randbits": note_unseeded}
    makers = {name: _noting_stand_in(getattr(bits, name), note) for name, note in notes.items()}
    return (
        _methods_of(module.Generator),
        _methods_of(module.RandomState),
        _hidden_functions("numpy.random", _STATE),
        *_states_of_bits(module, bits.BitGenerator),
        _Place(vars(bits), makers),
    )


def _states_of_bits(module: Any, base: type) -> list[_Place]:
    """The dicts with the property ``state`` of NumPy's bit generators."""
    kinds = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, base)]
    spaces = [(_space_of(aval), aval) for aval in kinds if "state" in vars(aval)]
    return [_Place(s, {"state": _state_property(s["state"])}, aval) for s, aval in spaces]


def _state_property(original: Any) -> property:
    """The stand-in for the property ``state``, which neither draws nor is recorded."""

    def ask(bits: Any, method: Callable, *args: Any) -> Any:
        active = ACTIVE.get()
        if type(active) is Trace and not _is_internal(sys._getframe(2)):
            _refuse_unless_own(active, bits)
        return method(bits, *args)

    return property(
        lambda bits: ask(bits, original.__get__),
        lambda bits, state: ask(bits, original.__set__, state),
    )


def _refuse_unless_own(active: Trace, bits: Any) -> None:
    """Raise TraceError unless the recorded function has made the bit generator itself."""
    trace, is_own, has_seed = ownership(active, bits, bits.lock)
    is_known = is_own and has_seed and bits.lock not in states_after_draws(trace)
    if trace.draws != DRAW_AT_ONCE and not is_known:
        raise note_refusal(refused_draw_error(bits, "state", is_own))


@functools.cache
def _python_places() -> tuple[_Place, ...]:
    """The dicts with the methods of Python's generators, which all call two methods in C."""
    module: Any = sys.modules["random"]
    system = {"_urandom": system_bytes(module._urandom)}  # SystemRandom and secrets call it
    return (
        _methods_of(module.Random.__base__),
        _hidden_functions("random", ("random", "getrandbits")),
        _Place(vars(module), system),
        _Place(vars(os), {"urandom": system_bytes(os.urandom)}),
    )


@functools.cache  # one place for all modes: only the first one finds the originals
def _hidden_functions(name: str, only: tuple[str, ...] = ()) -> _Place:
    """The functions of a module that are bound methods of its hidden generator."""
    space: Any = vars(sys.modules[name])
    hidden = space["_inst"] if name == "random" else space["mtrand"]._rand
    names = [
        key
        for key, value in space.items()
        if getattr(value, "__self__", None) is hidden and (key in only or not only)
    ]
    others = () if only or name == "random" else _STATE  # ``random``'s are replaced elsewhere
    return _Place(space, {n: _draw_function(hidden, space[n]) for n in names if n not in others})


def _methods_of(kind: type) -> _Place:
    """The methods of a C class."""
    space = _space_of(kind)
    names = [n for n, v in space.items() if callable(v) and (n[0] != "_" or n in _STATE)]
    return _Place(space, {name: _method_stand_in(name, space[name]) for name in names}, kind)


def _space_of(kind: type) -> dict:
    """The dict of a C class, which only ``gc.get_referents`` returns."""
    (space,) = [x for x in gc.get_referents(kind.__dict__) if type(x) is dict]
    return space


def _method_stand_in(name: str, original: Callable) -> Callable:
    """The stand-in for a method of generators."""

    @functools.wraps(original, updated=())
    def stand_in(self, *args, **kwargs):
        active = ACTIVE.get()
        if type(active) is not Trace or _is_internal(sys._getframe(1)):
            return draw_elsewhere(original, (self, *args), kwargs)
        return _run_draw(active, self, name, functools.partial(original, self), args, kwargs)

    return stand_in


def _draw_function(generator: Any, original: Callable) -> Callable:
    """The stand-in for a function of a module, a method of its hidden generator."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        active = ACTIVE.get()
        if type(active) is not Trace or _is_internal(sys._getframe(1)):
            return draw_elsewhere(original, args, kwargs)
        return _run_draw(active, generator, original.__name__, original, args, kwargs)

    return stand_in


def _is_internal(frame: Any) -> bool:
    """Whether a draw is not the recorded function's.

    letir draws to compute an operation, or copies a generator; or a module draws while it is
    imported.
    """
    if is_importing(frame):
        return True
    while frame.f_code.co_filename in (RANDOM_FILE, _COPY) and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename
    if file == entry.__file__:  # the traced function itself is a method such as rng.normal
        return False
    return file.startswith(_LETIR) and not is_user_file(file)


def _noting_stand_in(original: Callable, note: Callable) -> Callable:
    """The stand-in for a function that makes generators, or their seeds, which are noted."""

    def stand_in(*args):
        result = original(*args)
        active, caller = ACTIVE.get(), sys._getframe(1)
        is_remade = caller.f_globals.get("__name__") == "letir.ops.random.generator_states"
        if type(active) is Trace and not (is_remade or is_importing(caller)):
            note(active, result)
        return result

    return stand_in


# ---- one draw ----


def _run_draw(active: Trace, generator: Any, name: str, original: Callable, args, kwargs) -> Any:
    """A draw while ``active`` records."""
    if name == "seed":
        args, kwargs = seed_numbers(args, kwargs)
        if note_first_seed(active, generator, args, sys._getframe(2)):
            return original(*args, **kwargs)
    bits = getattr(generator, "bit_generator", getattr(generator, "_bit_generator", None))
    mark = generator if bits is None else bits.lock
    trace, is_own, has_seed = ownership(active, bits, mark)
    has_given = name == "seed" and is_seed_given(args, kwargs)
    if has_given and trace.draws == REFUSE_DRAWS:
        note_seed(trace, generator, mark)
        return original(*args, **kwargs)
    if name == "seed" and not has_given and is_own and trace.draws != DRAW_AT_ONCE:
        raise note_refusal(refused_draw_error(generator, name, is_own))
    if trace.draws == DRAW_AT_ONCE or (is_own and has_seed):
        draw = functools.partial(draw_elsewhere, original, args, kwargs)
        states = {} if trace.draws == DRAW_AT_ONCE else states_after_draws(trace)
        if mark in states and name in _STATE and name != "seed":
            raise note_refusal(refused_draw_error(generator, name, is_own))
        if mark in states or first_traced((*args, *kwargs.values())) is not None:
            recorder = _captured_generators.generator_drawing_now(generator, mark, states)
            draw = functools.partial(getattr(recorder, name), *args, **kwargs)
        return _drawn_at_once(active, draw)
    if trace.draws == LIFT_STATES and not is_own and (name == "seed" or name not in _STATE):
        captured = _captured_generator(trace, generator)
        if captured is not None:
            return getattr(captured, name)(*args, **kwargs)
    raise note_refusal(refused_draw_error(generator, name, is_own))


def _drawn_at_once(active: Trace, draw: Callable) -> Any:
    """The drawn numbers; users' code gets an array as a buffer, into which it may write.

    Methods in C that call other methods, as ``choice`` calls ``integers``, get ordinary arrays.
    """
    if "is_drawing" in active.__dict__ or not active.intercepts:
        return draw()
    if not callers.is_user_module(sys._getframe(3).f_globals):
        return draw()
    active.__dict__["is_drawing"] = True
    try:
        return LATE_BOUND["as_buffer"](active, draw())
    finally:
        del active.__dict__["is_drawing"]


# ---- lifted generators ----


class _CapturedState(Value):
    """The state of a generator that is not an argument, to be lifted into a parameter."""

    __slots__ = ("generator", "kind")

    def __init__(self, generator: Any) -> None:
        super().__init__(None, self)
        self.generator = generator
        state = _generator_states.state_array(generator)
        self.kind = ArrayType(state.dtype, state.shape)

    __hash__ = object.__hash__  # type: ignore[assignment]

    @property
    def type(self) -> ArrayType:
        return self.kind

    def concrete_value(self) -> Any:
        """The state now."""
        return _generator_states.state_array(self.generator)


def _captured_generator(root: Trace, generator: Any) -> Any:
    """The traced generator for one that is not an argument; None if it draws immediately."""
    lifted = root.__dict__.setdefault("lifted_generators", {})
    if id(generator) not in lifted:
        try:
            outer: Any = _CapturedState(generator)
        except (AttributeError, TypeError, ValueError):
            return None
        local = root.parameter_for(outer)
        root.note_argument(local, outer.concrete_value())
        state = root.make_tracer(root, local, ABSENT)
        record_within = functools.partial(_record_within, root)
        lifted[id(generator)] = (
            generator,
            _captured_generators.lift_generator(generator, state, record_within),
        )
    return lifted[id(generator)][1]


def record_draw(root: Any, record: Callable) -> Any:
    """The result of ``record``, a draw from a generator that is an argument of the trace ``root``.

    Inside a derivative within ``root``, whose own program runs once, ``root`` records the draw, so
    that the generator advances.
    """
    active = ACTIVE.get()
    inner: Any = active
    while type(inner) is Trace and inner is not root and inner.draws == DRAW_AT_ONCE:
        inner = inner.parent
    if inner is root and active is not root:
        return _record_within(root, record)
    return record()


def _record_within(root: Trace, record: Callable) -> Any:
    """The result of ``record``, recorded by ``root`` while a trace inside it is active.

    Arrays are copied: the active trace's function may write into them.
    """
    before = ACTIVE.get()
    ACTIVE.set(root)
    try:
        result = record()
    finally:
        ACTIVE.set(before)
    return (
        result.copy()
        if isinstance(result, Value) and result.shape and before is not root
        else result
    )


def generators_of(lifted: tuple, is_possible: bool) -> tuple:
    """The generators among the values that a recording has lifted.

    Raises TraceError if there are some, but the plan cannot fill in their states.
    """
    result = tuple([x.generator for x in lifted if type(x) is _CapturedState])
    if result and not is_possible:
        source = "a generator that is not an argument of a function of Variables"
        raise hidden_draw_error(source, ["random"])
    return result


def generator_states(generators: tuple) -> list:
    """The states of generators, as arrays that write into them."""
    return [_generator_states.state_array(generator) for generator in generators]


LATE_BOUND.update(
    draw_watch=DrawWatch,
    generator_states=generator_states,
    generators_of=generators_of,
    record_draw=record_draw,
)
