"""Further traced generators: a ``RandomState``, and generators that a recorded function uses
although they are not arguments.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.errors import DTypeError, TraceError
from letir.ops.random.draws_from_lists import array_of_list
from letir.ops.random.generator_states import state_array, state_of
from letir.ops.random.numpy_generator import (
    TracedGenerator,
    as_number,
    elements_at,
    generator_draw,
)
from letir.ops.shape.shape_and_creation import as_size


class TracedRandomState(TracedGenerator):
    """A ``numpy.random.RandomState`` in a trace, with the names that only it has."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.random.RandomState

    def random(self, size: Any = None) -> Any:
        """Numbers in [0, 1)."""
        return as_number(self.draw("random", (), () if size is None else size), size)

    random_sample = random

    def rand(self, *shape: Any) -> Any:
        """Numbers in [0, 1), of a shape that is given size by size."""
        return self.random(shape or None)

    def randn(self, *shape: Any) -> Any:
        """Standard normal numbers, of a shape that is given size by size."""
        return self.standard_normal(shape or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers from ``low`` up to, but not including, ``high``."""
        low, high = (0, low) if high is None else (low, high)
        result = self.draw("randint", (low, high), size, dtype)
        return as_number(result, size) if dtype is int else result

    @property  # type: ignore[override]
    def integers(self) -> Any:  # hasattr(x, "integers") is False, as for a RandomState
        """Not a method of RandomState."""
        raise AttributeError("'RandomState' object has no attribute 'integers'")

    def choice(  # type: ignore[override]
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None
    ) -> Any:
        """Random elements of the array ``a``, or numbers below the int ``a``."""
        a = array_of_list(a)
        n = as_size(a) if np.ndim(a) == 0 else np.shape(a)[0]
        weights = () if p is None else (p,)
        places = self.draw("choice", weights, size or (), np.int64, a=n, replace=bool(replace))
        if np.ndim(a) == 0:
            return as_number(places, size)
        return elements_at(a if isinstance(a, Value) else np.asarray(a), places, 0)

    def permutation(self, x: Any) -> Any:  # type: ignore[override]
        """``x`` in random order along its first axis; for an int n, the numbers below n."""
        return super().permutation(x)

    def shuffle(self, x: Any) -> None:  # type: ignore[override]
        """Put the traced array or the list ``x`` in random order along its first axis, in place."""
        if isinstance(x, list):
            super().shuffle(x)
        else:
            x[...] = self.permutation(x)

    def seed(self, seed: Any = None) -> None:
        """Set the state that NumPy derives from this number."""
        if seed is None:
            raise DTypeError(
                "seed() without a number: the program would repeat one state\n  pass a number"
            )
        seed = int(seed) if isinstance(seed, Value) else seed  # with a guard
        self.put_state(state_of(np.random.RandomState(seed)))

    def put_state(self, words: np.ndarray) -> None:
        """Replace the state by these words."""
        self.state[...] = words


def traced_class(cls: type) -> type:
    """The class of the traced generators that stand for generators of the class ``cls``."""
    return TracedRandomState if cls.__name__ == "RandomState" else TracedGenerator


LATE_BOUND["traced_class"] = traced_class


def lift_generator(
    generator: Any, state: Any, within: Callable[[Callable], Any]
) -> TracedGenerator:
    """The traced generator with the parameter ``state``; the trace ``within`` records its draws."""

    class LiftedGenerator(traced_class(type(generator))):  # type: ignore[misc]
        """A generator whose state is a parameter of an enclosing trace."""

        def next_numbers(self, operands: tuple, attrs: Attrs) -> Any:
            return within(lambda: super(LiftedGenerator, self).next_numbers(operands, attrs))

        def put_state(self, words: np.ndarray) -> None:
            within(lambda: super(LiftedGenerator, self).put_state(words))

    return LiftedGenerator(state)


def generator_drawing_now(generator: Any, mark: Any, states: MutableMapping) -> TracedGenerator:
    """The generator for calls with traced parameters. It draws now, and the draw is recorded.

    How many random bits a draw takes may depend on the parameters, and so does the state after it:
    ``states[mark]`` is then (the traced state, its words now). The next draw starts from the traced
    state, unless the generator has been given another one.
    """

    class GeneratorDrawingNow(traced_class(type(generator))):  # type: ignore[misc]
        """A generator that draws while the function is recorded."""

        def next_numbers(self, operands: tuple, attrs: Attrs) -> Any:
            words = np.array(state_of(generator))
            before, known = states.get(mark, (words, words))
            before = before if np.array_equal(known, words) else words
            traced = next((x for x in (*operands, before) if isinstance(x, Value)), None)
            inputs = (before, *operands)
            if traced is None:
                result, state = LATE_BOUND["compute"](generator_draw, inputs, attrs)
            else:
                result, new = traced.emitter.apply(generator_draw, inputs, attrs)
                state = new.concrete_value()
                if not isinstance(state, np.ndarray):
                    raise TraceError(
                        "a generator that is not an argument draws with an unknown parameter\n"
                        "  make the generator an argument of the recorded function"
                    )
                states[mark] = new, np.array(state)
            state_array(generator)[...] = state
            return result

        def seed(self, seed: Any = None) -> None:
            """Seed the generator itself; a traced number is guarded."""
            states.pop(mark, None)
            generator.seed(int(seed) if isinstance(seed, Value) else seed)

    return GeneratorDrawingNow(None)
