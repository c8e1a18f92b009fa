"""Detection of draws from hidden random state during a trace [semantics.md B2].

Such numbers would become constants of the program.

``Watch`` compares the states of ``numpy.random``, of ``random`` and of generators that the function
captures, before and after. Copying these states would cost more than a small trace, so a few bytes
of the two global states are read directly: each draw changes the position in the block of random
words, or the words.
"""

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext, suppress
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from letir.ast import LATE_BOUND, loaded_module
from letir.ast.process_state import is_being_forked, new_lock
from letir.ast.terms import Lambda
from letir.tracing.callers import attributes_of
from letir.tracing.stand_ins import add_loaded_modules
from letir.tracing.trace_state import DRAW_AT_ONCE, LIFT_STATES

_HEAD = object.__basicsize__  # the size of an object's header in CPython
_BLOCK = 624  # words of the Mersenne twister; the position follows them
_PLACE = 4 * _BLOCK
MAX_FUNCTIONS = 32  # functions searched for generators
_MAX_OBJECTS = 1 << 10  # containers and objects searched for them
_BOUND = (MethodType, BuiltinMethodType)
_WITHOUT_GENERATORS = frozenset(["builtins", "numpy", "functools", "types"])


def _numpy_state():
    """A fingerprint that changes with each draw from ``numpy.random``; None if not imported."""
    state = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    if state is None:
        return None
    bits = state._bit_generator
    if type(bits).__name__ != "MT19937":  # set_bit_generator
        return repr(bits.state)
    words, position, own = _state_windows(state, bits)
    return words.raw, position.raw, own.raw


@functools.cache
def _state_windows(state, bits) -> tuple:
    """The first words, the position, and the object, which stores the second number of a pair of
    normal numbers.
    """
    at, size = bits.ctypes.state_address, type(state).__basicsize__ - _HEAD
    kinds = ctypes.c_char * 16, ctypes.c_char * 4, ctypes.c_char * size
    places = (at, at + _PLACE, id(state) + _HEAD)
    return tuple([kind.from_address(place) for kind, place in zip(kinds, places, strict=True)])


def _python_state():
    """A fingerprint that changes with each draw from ``random``; None if it is not imported."""
    module = sys.modules.get("random")
    if module is None:
        return None
    state = module._inst
    return _window_of_python(state).raw, state.gauss_next


@functools.cache
def _window_of_python(state) -> ctypes.Array:
    """The position and the first words."""
    return (ctypes.c_char * 20).from_address(id(state) + _HEAD)


def _generators_of(f: Callable) -> list:
    """The generators captured by ``f``, or by functions of its module that it names.

    Includes generators in containers and attributes of objects, and generators of bound methods.
    """
    kinds = generator_types()
    if not kinds:
        return []
    generators: dict[int, Any] = {}
    todo: list[Any] = [f]
    visited: set[FunctionType] = set()
    while todo and len(visited) < MAX_FUNCTIONS:
        called = todo.pop()
        function = plain_function(called)
        if function is None or function in visited:
            continue
        visited.add(function)
        values = [*_values_of(function), getattr(called, "__self__", None)]
        for value in _nested_values(values):
            kind = type(value)
            # other objects may answer each name, such as dicts with attributes
            owner = value.__self__ if kind in _BOUND else value
            if type(owner) in kinds:  # a generator, or a method of one
                generators[id(owner)] = owner
            elif kind is FunctionType and value.__globals__ is function.__globals__:
                todo.append(value)
    # ``random``'s state is compared anyway
    hidden = getattr(sys.modules.get("random"), "_inst", None)
    return [generator for generator in generators.values() if generator is not hidden]


def _nested_values(values: list) -> list:
    """``values``, with the items of containers and the attributes of users' objects among them."""
    visited: set[int] = set()
    for value in values:  # the loop appends to the list
        kind = type(value)
        if len(visited) >= _MAX_OBJECTS:
            break
        if kind in (list, tuple, set, dict):
            inner: Any = value.values() if kind is dict else value
        elif kind is functools.partial:
            inner = (value.func, *value.args, *value.keywords.values())
        elif kind.__module__ in _WITHOUT_GENERATORS or issubclass(kind, type):
            continue
        else:
            inner = (attributes_of(value) or {}) if kind.__dictoffset__ else {}
            inner = inner.values() if type(inner) is dict else ()
        if id(value) not in visited:
            visited.add(id(value))
            values += inner
    return values


def generator_types() -> tuple[type, ...]:
    """The classes of random generators, as far as they are loaded."""
    numpy, python = loaded_module("numpy.random"), sys.modules.get("random")
    result = () if numpy is None else (numpy.Generator, numpy.RandomState, numpy.SeedSequence)
    return result if python is None else (*result, python.Random)


def plain_function(f: Any) -> FunctionType | None:
    """The Python function in a method, a partial or a wrapper; None if there is none."""
    for _ in range(MAX_FUNCTIONS):
        if type(f) is FunctionType:
            return f
        f = f.__func__ if type(f) is MethodType else getattr(f, "func", None)
    return None


def _values_of(function: FunctionType) -> Iterator:
    """The objects in a function's closure, its defaults, and the globals that it names."""
    if function.__closure__:
        yield from closure_of(function).values()
    yield from function.__defaults__ or ()
    names = function.__globals__
    for name in function.__code__.co_names:
        if name in names:
            yield names[name]


def closure_of(function: FunctionType) -> dict:
    """The closure variables of a function that are set."""
    result = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            result[name] = cell.cell_contents
    return result


def _generator_state(generator):
    """The comparable state of a generator, or of seeds for further ones."""
    kind = type(generator).__name__
    if kind == "SeedSequence":
        return generator.n_children_spawned
    if kind == "Random":
        return generator.getstate()
    return repr(
        generator.bit_generator.state if kind == "Generator" else generator.get_state(legacy=False)
    )


_MODULES = ("numpy.random", "random")  # with a hidden generator each
_started: list["Watch"] = []
_told: list["Watch"] = []  # that take note of the draw under way
_drawing = new_lock(threading.RLock)  # held while states are compared with those before a draw


def watch_numpy_random(trace: Any) -> None:
    """Watch the draws of ``numpy.random``, which the function that ``trace`` records reads.

    NumPy imports that module when it is first read: recordings under way watch it from now on.
    """
    if "numpy.random" not in sys.modules:
        getattr(sys.modules["numpy"], "random")  # noqa: B009  imports the module
        add_loaded_modules()
        for watch in list(_started):
            watch.end()
            watch.start()
    if trace.watch is None:
        trace.watch = Watch(None, trace.draws)
        trace.watch.start()


def needs_watch(f: Callable, draws: str) -> bool:
    """Whether a recording of ``f`` has to watch for draws of random numbers."""
    if draws != DRAW_AT_ONCE:
        return True
    return "numpy.random" in sys.modules and LATE_BOUND["reaches_draws"](f)


class Watch:
    """The random states before ``f`` is traced; ``check`` compares them afterwards.

    Until ``end``, the stand-ins of ``random_draws`` notice draws. The comparison also finds draws
    by bound methods that were made before the recording. Draws of other threads do not count.
    """

    __slots__ = (
        "after",
        "before",
        "draws",
        "elsewhere",
        "f",
        "generators",
        "seeded",
        "stand_ins",
        "thread",
    )

    def __init__(self, f: Callable | None, draws: str):
        self.draws: str = draws
        self.stand_ins: Any = None
        self.f, self.generators = f, [] if draws == DRAW_AT_ONCE else _generators_of(f)
        if draws == LIFT_STATES:  # ``jit`` finds by itself which seeds were spawned
            self.generators = [g for g in self.generators if type(g).__name__ != "SeedSequence"]
        self.thread = threading.get_ident()
        self.before = self.after = ()
        # (states before, states after) draws of other threads
        self.elsewhere: list[tuple[tuple, tuple]] = []
        self.seeded: set[int] = set()  # the positions among ``states``

    def states(self) -> tuple:
        """The states of the two global generators and of those that the function captures."""
        return _numpy_state(), _python_state(), *map(_generator_state, self.generators)

    def fresh_positions(self) -> tuple:
        """The positions of the generators among ``states`` before their first draws."""
        return _fresh_position(), _BLOCK, *[0] * len(self.generators)

    def add_elsewhere(self, before: tuple, after: tuple) -> None:
        """Note that a draw of another thread changed the states."""
        if self.elsewhere and self.elsewhere[-1][1] == before:
            before = self.elsewhere.pop()[0]
        self.elsewhere.append((before, after))

    def note_seed(self, generator: Any) -> None:
        """Let ``generator`` draw unless it has drawn before: the function gives it a seed."""
        hidden = [_hidden_generators({name} & sys.modules.keys()) for name in _MODULES]
        watched = [*(reference[0] if reference else None for reference in hidden), *self.generators]
        states: Any = zip(watched, self.before, self.states(), self.fresh_positions(), strict=True)
        for i, (watched_generator, before, now, fresh) in enumerate(states):
            if watched_generator is generator and not _was_drawn(before, now, fresh):
                self.seeded.add(i)
        self.stand_ins.end()
        self.stand_ins = LATE_BOUND["draw_watch"](DRAW_AT_ONCE)  # for the functions of modules too
        self.stand_ins.start()

    def start(self) -> None:
        """Put stand-ins for the methods that draw in place."""
        if "numpy.random" in sys.modules or "random" in sys.modules:
            self.stand_ins = LATE_BOUND["draw_watch"](self.draws)
            self.stand_ins.start()
        # a draw of another thread that began before there were stand-ins holds NumPy's lock
        hidden = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
        with _drawing, nullcontext() if hidden is None else hidden._bit_generator.lock:
            _started.append(self)
            self.before = self.before or self.states()

    def end(self) -> None:
        """Put the originals of the methods that draw in place again."""
        try:
            with _drawing:
                if self in _started:
                    _started.remove(self)
                    self.after = self.states()
        finally:
            if self.stand_ins is not None:
                self.stand_ins.end()

    def check(self, fn: Lambda) -> None:
        """Raise TraceError if there were draws, except by user-defined operations, which draw again
        in every replay.
        """
        if self.draws == DRAW_AT_ONCE:
            return
        if self.before == self.after and not self.elsewhere:
            return
        captured = "a generator that is not an argument of the function"
        names = (*_MODULES, *[captured] * len(self.generators))
        fresh = self.fresh_positions()
        used: dict[str, None] = {}
        last_states = self.before
        for before, after in (*self.elsewhere, (self.after, ())):
            for i, (name, *states) in enumerate(
                zip(names, last_states, before, fresh, strict=True)
            ):
                if i not in self.seeded and _was_drawn(*states):
                    used[name] = None
            last_states = after
        if used and not any(bind.op.is_user_defined for bind in fn.binds):
            error = LATE_BOUND["draws_in_code_error"](" and ".join(used), self.f)
            # drawn already: ``jit`` sets back generators that it knows
            error.letir_set_back = _hidden_generators(used)  # type: ignore[attr-defined]
            raise error


def _hidden_generators(modules: Collection[str]) -> list:
    """The generators of the modules ``numpy.random`` and ``random``, if they are among these."""
    result = []
    if "numpy.random" in modules:
        result.append(sys.modules["numpy.random.mtrand"]._rand)  # type: ignore[attr-defined]
    if "random" in modules:
        result.append(sys.modules["random"]._inst)  # type: ignore[attr-defined]
    return result


def draw_elsewhere(draw: Callable, args: tuple, kwargs: dict) -> Any:
    """``draw(*args, **kwargs)``; the watches of other threads note that the draw is not theirs."""
    if is_being_forked():
        return draw(*args, **kwargs)
    with _drawing:
        thread = threading.get_ident()
        watches = [watch for watch in _started if watch.thread != thread]
        if _told or not watches:  # a draw that another one calls, or nothing to take note of
            return draw(*args, **kwargs)
        _told[:] = watches
        try:
            before = [watch.states() for watch in watches]
            try:
                return draw(*args, **kwargs)
            finally:
                for watch, states in zip(watches, before, strict=True):
                    watch.add_elsewhere(states, watch.states())
        finally:
            _told.clear()


def _fresh_position() -> int:
    """The position of NumPy's global state before the first draw."""
    module = loaded_module("numpy.random")
    return (
        _BLOCK if module is None else module.RandomState().get_state(legacy=False)["state"]["pos"]
    )


def _was_drawn(before, after, fresh: int) -> bool:
    """Whether a state has changed; a module that was imported in between starts at ``fresh``."""
    if before is not None or after is None:
        return before != after
    position = after[1] if len(after) == 3 else after[0][:4]
    return int.from_bytes(position, sys.byteorder) != fresh


LATE_BOUND["watch_numpy_random"] = watch_numpy_random
