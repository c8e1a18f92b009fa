"""Random generators that a recorded function makes itself, or gives a seed.

Draws from them are constants of the program if the function has given them a seed. A generator that
outlives the function is found by its next call, which then draws other numbers.
"""

import gc
import weakref
from collections.abc import MutableMapping
from types import FrameType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.checks.system_randomness import RANDOM_FILE
from letir.tracing.trace_state import DRAW_AT_ONCE, Trace


def note_own_generator(active: Trace, generator: Any) -> None:
    """Note a generator (or its lock) that the recorded function makes.

    The note shows later that it is the function's own, and whether it is still in use."""
    reference = weakref.ref(generator)
    active.__dict__.setdefault("own_generators", []).append(reference)
    while active.parent is not None:
        active = active.parent
    active.__dict__.setdefault("made_generators", []).append(reference)


def states_after_draws(trace: Trace) -> MutableMapping:
    """The states of the function's own generators that depend on traced parameters of draws.

    The keys are weak references to the locks of the generators, or to generators of ``random``.
    """
    return trace.__dict__.setdefault("states_after_draws", weakref.WeakKeyDictionary())


def note_seed(trace: Trace, generator: Any, mark: Any) -> None:
    """Note that the recorded function gives ``generator`` a seed.

    Its draws are constants of the program from now on. ``mark``: the generator or its lock.
    """
    if trace.watch is not None:
        trace.watch.note_seed(generator)
    trace.__dict__.setdefault("own_generators", []).append(weakref.ref(mark))


def seed_numbers(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of ``seed`` with numbers in place of traced numbers, which get guards.

    C would take the hash of a traced value, which differs from the number if it is negative.
    """
    named = {key: _seed_number(x) for key, x in kwargs.items()}
    return tuple(map(_seed_number, args)), named


def _seed_number(seed: Any) -> Any:
    """A traced seed as an int, with a guard; other seeds as they are."""
    if not isinstance(seed, Value) or seed.shape:
        return seed
    traced: Any = seed
    return int(traced) if traced.is_integer_scalar() else traced.known_number("a seed")


def is_seed_given(args: tuple, kwargs: dict) -> bool:
    """Whether ``seed`` has these arguments: without one the operating system gives the seed."""
    return any(x is not None for x in (*args, *kwargs.values()))


def note_unseeded(active: Trace, number: int) -> None:
    """Note a number of the operating system, from which a seed is made."""
    active.__dict__.setdefault("unseeded_generators", []).append(number)


def keeps_generator(root: Trace) -> bool:
    """Whether a generator that the recorded function has made is still in use after its end.

    Then the function will find it at the next call, and does not make it again.
    """
    references = root.__dict__["made_generators"]
    if all(reference() is None for reference in references):
        return False
    gc.collect()  # the generator of an object that refers to itself
    return any(reference() is not None for reference in references)


def ownership(active: Trace, bits: Any, mark: Any) -> tuple[Trace, bool, bool]:
    """(the trace whose treatment of draws applies, whether the recorded function has made the
    generator or given it a seed, whether it has a seed that the operating system has not given).

    ``bits``: the bit generator, if it is one of NumPy's; ``mark``: its lock, or the generator of
    ``random``.
    """
    trace, own, unseeded = active, [], []
    while True:
        own += trace.__dict__.get("own_generators", ())
        unseeded += trace.__dict__.get("unseeded_generators", ())
        if trace.draws != DRAW_AT_ONCE or trace.parent is None:
            break
        trace = trace.parent
    is_own = any(mark is reference() for reference in own)
    return trace, is_own, not _is_among(getattr(bits, "seed_seq", None), unseeded)


def note_first_seed(active: Trace, generator: Any, seed: tuple, frame: FrameType) -> bool:
    """Whether ``Random.__init__`` is calling ``seed`` for a generator that was given a seed: the
    generator is then noted as the function's own.

    ``frame``: of ``Random.seed``.
    """
    caller = frame.f_back
    is_init = caller is not None and caller.f_code.co_name == "__init__"
    result = is_init and frame.f_code.co_filename == RANDOM_FILE and seed not in ((), (None,))
    if result:
        note_own_generator(active, generator)
    return result


def _is_among(sequence: Any, numbers: list) -> bool:
    """Whether a seed sequence was made from one of these numbers of the operating system."""
    entropy = getattr(sequence, "entropy", None)
    return any(entropy == number for number in numbers)


LATE_BOUND["keeps_generator"] = keeps_generator
