"""``tuned_costs``: what calls of NumPy and kernels cost on this computer, measured now."""

import json
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, evolve, frozen

from letir.ast.terms import Lambda
from letir.ast.text.files import atomic_file
from letir.executor.default_pipeline import has_compiler
from letir.executor.kernels.threaded_calls import ThreadedCall, work_of_element
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.llvm.compile_threads import begin_compilation
from letir.kernels.llvm.machine_code import MachineCode, ufunc_of
from letir.kernels.loop_language import Kernel
from letir.kernels.machine_costs import (
    MachineCosts,
    costs_from_values,
    family_costs,
    machine_costs,
    processor_name,
    saved_values,
)
from letir.kernels.threads import get_num_threads
from letir.passes.fusion.fusing import fuse
from letir.tracing.entry import trace

_LOG = logging.getLogger("letir")
_ROUNDS = 7  # of which the fastest counts
_SECONDS = 2e-3  # of a round, at least
_FEW, _MANY = 1 << 10, 1 << 14  # elements of arrays that stay in the processor's cache
_CALLS_OF_GROUP = 3_000  # in which the kernel of a group has to save the time of its compilation
_CALLS_OF_LOOP = 80  # the same for a loop, which saves more in each call
_GAIN = 0.8  # the part of the time that may remain
_SIZES = tuple([1 << n for n in range(13, 23)])  # elements with which threads are tried


def tuned_costs() -> MachineCosts:
    """The costs of this computer, to be saved by ``save_costs``. Takes some seconds.

    Other processes should be idle during the measurement, but disturb it little: of several runs
    the fastest counts, and thresholds are powers of two. The cost of a table or an unrolled kernel
    apart from its elements is Python's work, and is scaled by the time of a NumPy call.
    Without llvmlite the thresholds are those of the processor's family.
    """
    family, matrix = family_costs(), np.ones((4, 4))
    call = _time_of_sum(np.ones(4))
    python = ("table_call", "table_array", "kernel_call", "kernel_array")
    times = {
        "call": call,
        "number_call": _time_of_sum(np.float64(2.0)),
        "index": _fastest_time(lambda: matrix[1]),
        "element": _time_per_element(_time_of_sum),
        "term": _time_per_element(lambda x: _fastest_time(x.sum)),
        **{name: getattr(family, name) * call / family.call for name in python},
    }
    readable = {name: float(f"{value:.2g}") for name, value in times.items()}
    costs = costs_from_values(readable, "this computer")
    return _with_thresholds(costs) if has_compiler() else costs


def save_costs(costs: MachineCosts, path: str) -> None:
    """Write the costs of this processor to a file, beside those of others. Raises OSError."""
    file, values = Path(path), asdict(costs)
    del values["origin"]
    try:
        saved = saved_values(path) if file.is_file() else {}
    except ValueError:
        _LOG.warning("%s was damaged; letir writes a new one", file)
        saved = {}
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as stream:
        stream.write(json.dumps({**saved, processor_name(): values}, indent=2).encode() + b"\n")
    machine_costs.cache_clear()


def _with_thresholds(costs: MachineCosts) -> MachineCosts:
    """Costs with the thresholds above which kernels and threads save time."""
    group = _Group.from_function(_cheap_group)
    compilation = group.compile_time()
    x = np.linspace(1.0, 2.0, _MANY)
    saved = group.time_by_numpy(x) - _fastest_time(partial(group.ufunc, x))
    per_element = max(saved / (_MANY * len(group.body)), 0.01)
    return evolve(
        costs,
        least_elements=_power_of_two(compilation / (_CALLS_OF_GROUP * per_element), 10, 20),
        least_loop_calls=_power_of_two(compilation / (_CALLS_OF_LOOP * costs.call), 5, 13),
        least_thread_work=_least_thread_work(group, costs),
        compiles_functions=_saves_time(_Group.from_function(np.exp), x),
    )


def _cheap_group(x: np.ndarray) -> np.ndarray:
    """A group of cheap operations."""
    y = x * x + 1.5
    y = y * y - x
    return np.sqrt(np.abs(y)) * x + y * 0.5


@frozen
class _Group:
    """A function of one array, the body of a group that computes it, and its kernel."""

    function: Callable
    body: Lambda
    kernel: Kernel
    ufunc: np.ufunc

    @classmethod
    def from_function(cls, function: Callable) -> "_Group":
        program = trace(function, np.ones(2))
        bind, *_ = fuse(program).binds
        body = bind.attrs["body"] if bind.op.role == "fused" else program
        kernel = kernel_of(body)
        return cls(function, body, kernel, ufunc_of(kernel))

    def compile_time(self) -> float:
        """The nanoseconds of LLVM for this group, without the cache on disk."""
        code = MachineCode(self.kernel)
        task = partial(code.emit_code, code.host_text())
        return _fastest_time(lambda: begin_compilation(task).result(), time.process_time)

    def time_by_numpy(self, x: np.ndarray) -> float:
        """The nanoseconds of NumPy's calls for this group."""
        return _fastest_time(partial(self.function, x))


def _saves_time(group: _Group, x: np.ndarray) -> bool:
    """Whether the kernel of a group is faster than NumPy."""
    return _fastest_time(partial(group.ufunc, x)) < _GAIN * group.time_by_numpy(x)


def _least_thread_work(group: _Group, costs: MachineCosts) -> int:
    """The least work of a call of this group for which several threads save time.

    The value in ``costs`` if they never save time, as when other processes use the cores.
    """
    threaded = ThreadedCall(group.ufunc, 1, 0)
    pays: list[int] = []
    for size in reversed(_SIZES if get_num_threads() > 1 else ()):
        x = np.linspace(1.0, 2.0, size)
        in_one_thread = _fastest_time(partial(group.ufunc, x), time.perf_counter)
        if _fastest_time(partial(threaded, x), time.perf_counter) > _GAIN * in_one_thread:
            break
        pays.append(size)
    return pays[-1] * work_of_element(group.body) if pays else costs.least_thread_work


def _time_of_sum(x: Any) -> float:
    """The nanoseconds of ``x + x``."""
    return _fastest_time(lambda: x + x)


def _time_per_element(time_for: Callable[[np.ndarray], float]) -> float:
    """The nanoseconds that an element adds to the time for an array."""
    few, many = (time_for(np.ones(n)) for n in (_FEW, _MANY))
    return max(many - few, 0.0) / (_MANY - _FEW)


def _fastest_time(call: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> float:
    """The time of a call, of the fastest round."""
    count, fastest = 1, float("inf")
    while True:  # until a round is long enough to be measured
        start = clock()
        for _ in range(count):
            call()
        if clock() - start >= _SECONDS:
            break
        count *= 2
    for _ in range(_ROUNDS):
        start = clock()
        for _ in range(count):
            call()
        fastest = min(fastest, (clock() - start) / count)
    return fastest * 1e9


def _power_of_two(value: float, least: int, most: int) -> int:
    """The power of two that is nearest to a number, from ``1 << least`` to ``1 << most``."""
    return 1 << max(least, min(most, round(float(np.log2(max(value, 1.0))))))
