"""The states of NumPy's random generators as arrays of words, on the host."""

from typing import Any

import numpy as np

from letir.errors import DTypeError


def state_of(generator: Any) -> np.ndarray:
    """The state of a generator as words: the number of its bit generator, then its fields."""
    if type(generator).__name__ == "RandomState":
        state: Any = generator.get_state(legacy=False)
        gauss = np.float64(state["gauss"]).view(np.uint64)
        inner = state["state"]
        rest = np.array([inner["pos"], state["has_gauss"], gauss], np.uint64)
        return np.concatenate([np.array([5], np.uint64), inner["key"].astype(np.uint64), rest])
    state = generator.bit_generator.state
    inner, words = state["state"], []
    for value in inner.values():
        if state["bit_generator"].startswith("PCG64"):  # an integer of 128 bits
            words += [value % 2**64, value >> 64]
        else:
            words += np.atleast_1d(value).tolist()
    words += np.asarray(state.get("buffer", ()), np.uint64).tolist()
    others = ("buffer_pos", "has_uint32", "uinteger")
    words += [int(state[name]) for name in others if name in state]
    kind = ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"].index(state["bit_generator"])
    return np.array([kind, *words], np.uint64)


def generator_of(words: Any) -> Any:
    """A generator in the state that ``words`` encode."""
    kind, *rest = np.asarray(words).tolist()
    if kind == 5:
        legacy, gauss = np.random.RandomState(), np.uint64(rest[626]).view(np.float64)
        key = np.array(rest[:624], np.uint32)
        legacy.set_state(("MT19937", key, rest[624], rest[625], gauss))
        return legacy
    name = ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"][kind]
    generator = np.random.Generator(getattr(np.random, name)())
    state: Any = generator.bit_generator.state
    if name.startswith("PCG64"):
        state["state"] = {"state": rest[0] + (rest[1] << 64), "inc": rest[2] + (rest[3] << 64)}
    elif name == "Philox":
        words = np.array(rest[:10], np.uint64)
        state["state"] = {"counter": words[:4], "key": words[4:6]}
        state["buffer"], state["buffer_pos"] = words[6:], rest[10]
    elif name == "SFC64":
        state["state"] = {"state": np.array(rest[:4], np.uint64)}
    else:
        state["state"] = {"key": np.array(rest[:624], np.uint32), "pos": rest[624]}
    if "has_uint32" in state:
        state["has_uint32"], state["uinteger"] = rest[-2:]
    generator.bit_generator.state = state
    return generator


class _StateArray(np.ndarray):
    """The state of a generator as an array: writing into it sets the state of the generator."""

    generator = None
    __letir_state__ = True  # looked up in the class itself: subclasses may behave differently

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        # a kernel that draws and computes has the state among its operands
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __setitem__(self, item: Any, new: Any) -> None:
        super().__setitem__(item, new)
        if self.generator is None:
            return
        source = generator_of(self)
        if self[0] == 5:
            self.generator.set_state(source.get_state())
        else:
            self.generator.bit_generator.state = source.bit_generator.state


def state_array(generator: Any) -> np.ndarray:
    """The state of a generator as an array that writes into the generator.

    Raises DTypeError for a bit generator that is not NumPy's.
    """
    try:
        state: Any = state_of(generator).view(_StateArray)
    except (KeyError, ValueError):
        name = type(generator.bit_generator).__name__
        raise DTypeError(
            f"the state of a generator of {name} cannot be recorded\n"
            "  make it with np.random.default_rng(seed)"
        ) from None
    state.generator = generator
    return state
