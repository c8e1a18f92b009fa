"""Calls of letir's public functions, and the state of the process that they have to keep."""

import builtins
import functools
import gc
import io
import logging
import math
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import letir as lt
from letir.executor.active_recordings import active_recordings
from letir.tracing.mutation import operator_results
from letir.tracing.trace_state import ACTIVE

# large enough for tests that refuse the memory of arrays
X, W = np.arange(40.0), np.linspace(-1, 1, 40)
RNG = np.random.default_rng(0)


def loss(x, w):
    out = np.zeros(40)
    out[1] = (x * w).sum()
    for _ in range(2):
        w = np.tanh(w) + math.sin(0.5)
    return out.sum() + np.log(np.abs(w) + 1).sum()


def noisy(x):
    return (x + 0 * RNG.normal(size=40)).sum()


@functools.cache
def text():
    return lt.dumps(lt.trace(loss, X, W))


def backward():
    w = lt.Variable(W, requires_grad=True)
    np.tanh(w * X).sum().backward()
    return w.grad.array


def written_through_a_view(x):
    v = W * 2
    part = v[::2]
    part[:] = x[0]
    return v


ACTIONS: dict[str, Callable[[], Any]] = {
    "trace": lambda: lt.dumps(lt.trace(loss, X, W)),
    "trace of results of operators": lambda: lt.dumps(lt.trace(written_through_a_view, X)),
    "grad": lambda: lt.grad(loss)(X, W),
    "jit": lambda: lt.jit(loss)(X, W),
    "jit of draws": lambda: lt.jit(noisy)(X),
    "backward": backward,
    "parse": lambda: lt.dumps(lt.parse(text())),
}


def slots() -> list:
    """The functions in C of the operators of arrays."""
    return [slot.value for slot, _, _ in operator_results.array_slots()]


def state_of_process():
    """What letir changes during a call."""
    w = lt.Variable(W, requires_grad=True)
    return {
        "collector": gc.isenabled(),
        "float errors": (np.geterr(), np.geterrcall()),
        "trace": ACTIVE.get(),
        "modules": (type(np), type(math), len(sys.meta_path)),
        "zeros": type(np.zeros(2)),
        "operators": (type(W * 2), slots()),
        "draws": (type(np.random.uniform), type(RNG.normal), type(random.random)),
        "records": (w * 2).requires_grad,
        "recordings": len(active_recordings),
        "output": (sys.stdout, sys.stderr, logging.Logger.handle, warnings.warn),
        "files and clocks": (builtins.open, io.open, builtins.input, time.time, time.sleep),
    }


def changed(before):
    """The parts of the state that are not as before."""
    return {name: new for name, new in state_of_process().items() if new != before[name]}
