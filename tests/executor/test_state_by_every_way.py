"""Jitted methods that change their object, reached in every way: results and state as in Python."""

import copy
import functools

import numpy as np
import pytest

from letir import jit


class Recorder:
    def __init__(self):
        self.w, self.cache, self.history, self.n = np.eye(2), {}, [], 0
        self.rng, self.best, self.seen = np.random.default_rng(1), None, set()

    def keep_input(self, x):
        self.n += 1
        self.cache["x"] = x
        y = x @ self.w
        if self.best is None or y.sum() > self.best:
            self.best = float(y.sum())
        return y

    def assign_array(self, x):
        self.w = self.w + np.outer(x, x)
        return self.w.sum()

    def write_row(self, x):
        self.w[0] = x
        return self.w @ x

    def shorten_list(self, x):
        self.history.append(x.sum())
        self.history = self.history[-2:]
        return sum(self.history)

    def draw(self, x):
        self.rng.shuffle(self.w[0])
        return x + self.rng.normal(size=2) + self.w[0]

    def difference(self, x):
        self.last, before = x, getattr(self, "last", None)
        return x if before is None else x - before

    def count_distinct(self, x):
        self.seen.add(int(np.round(x[0])))
        return len(self.seen)

    def name_by_size(self, x):
        self.cache[f"k{int(x[0] > 0)}"] = 1.0
        return len(self.cache) * x

    def go_through(self, x):
        if self.n % 2 == 0:
            self.numbers = iter([float(v) for v in x])
        self.n += 1
        return next(self.numbers)

    def raise_late(self, x):
        self.n += 1
        if x.sum() > 0.3:
            raise ValueError(f"{self.n}")
        self.w[0, self.n % 2] = x[0]
        return self.w.sum()

    def catch_own(self, x):
        try:
            self.history.append(x[0])
            if x[0] > 0:
                raise KeyError("positive")
            return self.history.pop()
        except KeyError:
            return x.sum() + len(self.history)
        finally:
            self.n += 1

    def own_generator(self, x):
        def values():
            for v in x:
                self.n += 1
                yield v

        return sum(values()) + self.n


METHODS = [name for name in vars(Recorder) if not name.startswith("__")]


def by_closure(thing, name):
    @jit
    def call(x):
        return getattr(thing, name)(x)

    return call


def by_object(thing, name):
    compiled = jit(lambda o, x: getattr(o, name)(x))
    return lambda x: compiled(thing, x)


def by_dict(thing, name):
    box = {"thing": thing}

    @jit
    def call(x):
        return getattr(box["thing"], name)(x)

    return call


WAYS = {
    "method": lambda thing, name: jit(getattr(thing, name)),
    "closure": by_closure,
    "object": by_object,
    "dict": by_dict,
    "partial": lambda thing, name: jit(functools.partial(getattr(Recorder, name), thing)),
    "default": lambda thing, name: jit(lambda x, o=thing: getattr(o, name)(x)),
}


def state_of(thing):
    """The attributes in a form that compares; iterators are compared by what they give next."""
    state = {k: v for k, v in vars(thing).items() if k not in ("numbers", "rng")}
    return repr(state), thing.rng.bit_generator.state


def outcome(f, x):
    try:
        return repr(f(x))
    except ValueError as error:
        return repr(error)


@pytest.mark.filterwarnings("ignore:jit calls", "ignore:.*was compiled")
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("way", WAYS)
def test_results_and_states_are_pythons(way, name):
    ours, pythons = Recorder(), Recorder()
    compiled = WAYS[way](ours, name)

    for k in range(8):
        x = np.random.default_rng(k).normal(size=2)
        expected = outcome(getattr(pythons, name), copy.copy(x))
        assert expected == outcome(compiled, x)
        assert state_of(pythons) == state_of(ours)
