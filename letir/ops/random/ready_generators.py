"""Generators in known states, kept from one draw of a program to the next.

A draw takes a state and gives the next one. To make a generator and to set its state takes ten
times as long as a draw, and the next draw nearly always begins in the state that this one left.
"""

from typing import Any

import numpy as np

from letir.ops.random import generator_states

_MOST = 16
_ready: dict[bytes, Any] = {}  # state -> a generator in this state, which nobody else holds


def generator_of(words: Any) -> Any:
    """A generator in the state that ``words`` encode."""
    # taken out: of two threads in one state the second makes a generator of its own
    found = _ready.pop(np.asarray(words).tobytes(), None)
    return generator_states.generator_of(words) if found is None else found


def state_of(generator: Any) -> np.ndarray:
    """The state of a generator that the caller will not use again."""
    words: np.ndarray = generator_states.state_of(generator)
    if len(_ready) >= _MOST:
        _ready.clear()
    _ready[words.tobytes()] = generator
    return words
