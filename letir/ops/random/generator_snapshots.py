"""Snapshots of NumPy's generators, for programs that fail after they have drawn.

NumPy gives the state of a generator as a dict, which takes as long as several draws. The state is
in the memory of the bit generator behind ``state_address``, and is copied from there. At the first
snapshot of each class a trial draw tests whether such a copy restores the state; if not, the dict
is used.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from letir.ops.random.generator_states import generator_of, state_array, state_of

_CLASSES = ("Generator", "RandomState")
_BITS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
_HEAD = object.__basicsize__
_bytes_at = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)


def take_snapshot(generator: Any) -> Any:
    """The current state of a generator, for ``restore_snapshot``."""
    bits = generator._bit_generator
    place = _place_of_state((type(generator), type(bits)))
    if place is None:
        return state_of(generator)
    start, size, rest = place
    state = _bytes_at(id(bits) + start, size)
    # a RandomState stores every second normal number in its own object
    return (state, _bytes_at(id(generator) + _HEAD, rest)) if rest else state


def snapshot_text(generator: Any, text: str) -> tuple[str, dict[str, Any]]:
    """The expression for the snapshot of a generator of the same classes, which is called ``text``.

    The second result has the values of the names in the expression.
    """
    place = _place_of_state((type(generator), type(generator._bit_generator)))
    if place is None or place[2]:
        return f"snapshot({text})", {"snapshot": take_snapshot}
    start, size, _ = place
    memory = f"bytes{size}"
    return f"{memory}.from_address(id({text}._bit_generator) + {start}).raw", {
        memory: ctypes.c_char * size
    }


def restore_snapshot(generator: Any, saved: Any) -> None:
    """Put a generator into the state of a snapshot."""
    bits = generator._bit_generator
    place = _place_of_state((type(generator), type(bits)))
    if place is None:
        source = generator_of(saved)
        if saved[0] == 5:
            generator.set_state(source.get_state())
        else:
            generator.bit_generator.state = source.bit_generator.state
        return
    state, rest = saved if type(saved) is tuple else (saved, b"")
    with bits.lock:
        ctypes.memmove(id(bits) + place[0], state, len(state))
        ctypes.memmove(id(generator) + _HEAD, rest, len(rest))


def set_words(generator: Any, words: np.ndarray) -> None:
    """Put a generator into the state that an array of words encodes."""
    state_setter(words)(generator)


def state_setter(words: np.ndarray) -> Callable[[Any], None]:
    """The function that puts a generator into the state that an array of words encodes.

    A program sets the same words in each call: the memory of a state is made once.
    """
    words = words.copy()
    by_classes: dict[tuple[type, type], tuple | None] = {}

    def set_state(generator: Any) -> None:
        bits = generator._bit_generator
        classes = type(generator), type(bits)
        if classes not in by_classes:
            by_classes[classes] = _memory_to_write(classes, words)
        writers = by_classes[classes]
        if writers is None:
            state_array(generator)[...] = words
            return
        start, memory, state, second, normal = writers
        with bits.lock:
            # faster than ctypes.memmove
            memory.from_address(id(bits) + start).raw = state
            if second:
                normal.from_address(id(generator) + second).raw = bytes(normal._length_)

    return set_state


def _memory_to_write(classes: tuple[type, type], words: np.ndarray) -> tuple | None:
    """The place in generators of these classes where their state is; None if unknown.

    (offset in the bit generator, ctypes array, its bytes as ``words`` encode them, offset in the
    generator of the second normal number or 0, ctypes array)
    """
    state, place = _memory_of_state(classes, words), _place_of_state(classes)
    if state is None or place is None:
        return None
    second, size = _place_of_second_normal() if place[2] else (0, 0)
    return place[0], ctypes.c_char * len(state), state, second, ctypes.c_char * size


def _memory_of_state(classes: tuple[type, type], words: np.ndarray) -> bytes | None:
    """The memory of a bit generator in the state that words encode; None if it is not all of it."""
    example, place = generator_of(words), _place_of_state(classes)
    bits = example._bit_generator
    has_second_normal = place is not None and place[2] > 0 and example.get_state()[3] != 0
    if place is None or (type(example), type(bits)) != classes or has_second_normal:
        return None
    return _bytes_at(id(bits) + place[0], place[1])


@cache
def _place_of_second_normal() -> tuple[int, int]:
    """The place and the size, in a RandomState, of its second normal number and of its flag."""
    example: Any = np.random.RandomState(0)
    bodies = []
    for state in [(0, 0.0), (1, float.fromhex("0x1.23456789abcdep+9"))]:
        example.set_state((*example.get_state()[:3], *state))
        bodies.append(_bytes_at(id(example) + _HEAD, type(example).__basicsize__ - _HEAD))
    places = [n for n, (a, b) in enumerate(zip(*bodies, strict=True)) if a != b]
    return _HEAD + places[0], places[-1] + 1 - places[0]


@cache
def _place_of_state(classes: tuple[type, type]) -> tuple[int, int, int] | None:
    """The place of a generator's state in memory; None if it cannot be copied from there.

    (offset in the object of the bit generator, size, bytes of the generator's object, without its
    head, that belong to the state)
    """
    kind, bits = classes
    if kind.__name__ not in _CLASSES or bits.__name__ not in _BITS:
        return None
    example: Any = kind(bits(0))
    _change_whole_state(example)
    inner, before = example._bit_generator, state_of(example).tolist()
    start = inner.ctypes.state_address - id(inner)
    size = bits.__basicsize__ - start
    if not _HEAD <= start < bits.__basicsize__:
        return None
    rest = 0 if kind.__name__ == "Generator" else kind.__basicsize__ - _HEAD
    state, body = _bytes_at(id(inner) + start, size), _bytes_at(id(example) + _HEAD, rest)
    for _ in range(3):
        _change_whole_state(example)
    ctypes.memmove(id(inner) + start, state, size)
    ctypes.memmove(id(example) + _HEAD, body, rest)
    return (start, size, rest) if state_of(example).tolist() == before else None


def _change_whole_state(generator: Any) -> None:
    """Change all parts of the state: the buffer of 32 bits, and the second normal number."""
    draw_integer = getattr(generator, "integers", None) or generator.randint
    draw_integer(9, dtype="int32")
    generator.normal()
