"""Positions of iterators outside of a function, from which it may take values, and of random
generators. A value cannot be put back into an iterator.
"""

import functools
import gc
import io
import itertools
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, TypeVar

import numpy as np

from letir.ast import LATE_BOUND
from letir.eval.float_warnings import leave_out_of_warnings

T = TypeVar("T")
_REFERENTS = 8  # the deepest nesting of iterators, as in zip(a, enumerate(b))


class ReadsOwnChanges(Exception):  # a message inside the executor
    """Raised for a function whose results depend on state that it changes: it runs as Python."""

    letir_runs_python = True


def run_watching_iterators(iterators: list, do: Callable[[], T]) -> tuple[T, bool]:
    """The result of ``do()``, and whether it took values from one of these iterators."""
    before = [_iterator_position(iterator) for iterator in iterators]

    def has_taken() -> bool:
        return any(
            not is_same(old, _iterator_position(iterator))
            for old, iterator in zip(before, iterators, strict=True)
        )

    try:
        done = do()
    except Exception as error:
        if has_taken():  # a value cannot be put back into an iterator: Python would get the next
            vars(error).pop("letir_changes_outside", None)
            error.letir_is_final = True  # type: ignore[attr-defined]
        raise
    return done, has_taken()


def watch_iterators(executor: Any, iterators: list) -> None:
    """Make ``executor`` call its function once, and note whether this takes values of these
    iterators: values that a recording has taken could not be put back if it fails.
    """
    executor.iterators = iterators
    raise ReadsOwnChanges


def call_watching(executor: Any, args: tuple, kwargs: dict) -> Any:
    """The results of the function, which is called as Python from now on if this call takes values
    of the iterators that ``watch_iterators`` has noted.
    """
    iterators, executor.iterators = executor.iterators, []
    has_taken = True
    try:
        results, has_taken = run_watching_iterators(
            iterators, functools.partial(executor.f, *args, **kwargs)
        )
    except Exception as error:
        has_taken = hasattr(error, "letir_is_final")
        raise
    finally:
        executor.runs_python |= has_taken
    return results


def is_same(old: list, new: list) -> bool:
    """Whether two lists have the same objects, or equal numbers and strings."""
    return len(old) == len(new) and all(
        a is b or (type(a) in (int, str) and a == b) for a, b in zip(old, new, strict=True)
    )


def _iterator_position(iterator: Any, depth: int = 0) -> list:
    """The position of an iterator: objects, some of which differ after its next value."""
    if isinstance(iterator, itertools.count):
        return [repr(iterator)]
    if isinstance(iterator, io.IOBase):  # a file, which the function may write
        return [_position_in_file(iterator)]
    if hasattr(iterator, "n_children_spawned"):  # the numbers of its children's seeds
        return [iterator.n_children_spawned]
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return [None] if frame is None else [frame.f_lasti, *frame.f_locals.values()]
    if isinstance(iterator, np.flatiter | np.nditer):
        return [iterator.index if isinstance(iterator, np.flatiter) else iterator.iterindex]
    state = [*getattr(iterator, "__dict__", {}).values()]
    if hasattr(iterator, "__length_hint__"):
        state.append(iterator.__length_hint__())
    if depth < _REFERENTS:
        parts = gc.get_referents(iterator)
        for part in parts:  # map and zip hold a tuple of iterators
            parts += part if type(part) is tuple else ()
        inner = [part for part in parts if isinstance(part, Iterator)]
        state += [item for part in inner for item in _iterator_position(part, depth + 1)]
    # of others, such as the parts of itertools.tee, the position is unknown: it may have changed
    return state or [object()]


def _position_in_file(file: io.IOBase) -> int:
    """The position in an open file; a number that never differs if it has none."""
    try:
        return file.tell()
    except (OSError, ValueError):  # it cannot be positioned, or is closed
        return 0


class GeneratorPosition:
    """The state of a random generator."""

    def __init__(self, generator: Any) -> None:
        kind = type(generator).__name__
        if kind == "Generator":
            self.state = generator.bit_generator.state
        else:
            self.state = (
                generator.getstate() if kind == "Random" else generator.get_state(legacy=False)
            )

    def put_back(self, generator: Any) -> None:
        """Give a random generator this state."""
        kind = type(generator).__name__
        if kind == "Generator":
            generator.bit_generator.state = self.state
        else:
            (generator.setstate if kind == "Random" else generator.set_state)(self.state)


leave_out_of_warnings(run_watching_iterators, call_watching)
LATE_BOUND.update(
    generator_position=GeneratorPosition,
    call_watching=call_watching,
    run_watching_iterators=run_watching_iterators,
    watch_iterators=watch_iterators,
)
