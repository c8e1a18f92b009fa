"""Generators in known states, kept from one draw of a program to the next.

A draw takes a state and returns the next one. Making a generator and setting its state takes ten
times as long as a draw, and the next draw nearly always begins in the state that the last one
returned.
"""

from typing import Any

import numpy as np

from letir.ast.bounded_cache import BoundedCache
from letir.ops.random import generator_states

_MAX_GENERATORS = 16
# state -> a generator in this state, with no other reference
_ready: dict[bytes, Any] = BoundedCache(_MAX_GENERATORS)


def generator_of(words: Any) -> Any:
    """A generator in the state that ``words`` encode."""
    # removed: if two threads draw from one state, the second makes a new generator
    result = _ready.pop(np.asarray(words).tobytes(), None)
    return generator_states.generator_of(words) if result is None else result


def state_of(generator: Any) -> np.ndarray:
    """The state of a generator that the caller will not use again."""
    words: np.ndarray = generator_states.state_of(generator)
    _ready[words.tobytes()] = generator
    return words
