"""Figures of letir for functions that take linear time, in u per bind."""

from functools import partial

import numpy as np

from benchmarks.harness import DemoSettings, across_sizes
from benchmarks.workloads import arrays, chain, chain_sum, plain
from letir import (
    Lambda,
    ShapeDtype,
    canonicalize,
    check,
    dumps,
    grad,
    parse,
    run_forward,
    trace,
)


def program(n: int, size: int, function=chain) -> Lambda:
    """A fresh program of about ``n`` binds, without any cached analysis."""
    kind = ShapeDtype(size)
    return trace(partial(function, np, n), kind, kind)


def one(n: int, size: int) -> tuple[Lambda]:
    return (program(n, size),)


def two(n: int, size: int) -> tuple[Lambda, Lambda]:
    return program(n, size), program(n, size)


def abstract_tracing(effort: DemoSettings) -> str:
    def prepare(n, size):
        return partial(chain, np, n), ShapeDtype(size), ShapeDtype(size)

    return across_sizes(effort, trace, prepare)


def concrete_tracing(effort: DemoSettings) -> str:
    def prepare(n, size):
        return partial(chain, np, n), *arrays(size)

    return across_sizes(effort, trace, prepare, floor=plain)


def replaying(effort: DemoSettings) -> str:
    def prepare(n, size):
        return program(n, size), *arrays(size)

    return across_sizes(effort, run_forward, prepare, floor=plain)


def differentiating(effort: DemoSettings) -> str:
    return across_sizes(effort, grad, lambda n, size: (program(n, size, chain_sum),))


def printing(effort: DemoSettings) -> str:
    return across_sizes(effort, dumps, one)


def parsing(effort: DemoSettings) -> str:
    return across_sizes(effort, parse, lambda n, size: (dumps(program(n, size)),))


def checking(effort: DemoSettings) -> str:
    return across_sizes(effort, check, one)


def hashing(effort: DemoSettings) -> str:
    return across_sizes(effort, hash, one)


def comparing(effort: DemoSettings) -> str:
    return across_sizes(effort, Lambda.__eq__, two)


def canonicalizing(effort: DemoSettings) -> str:
    return across_sizes(effort, canonicalize, one)
