"""The programs of ``kernel_workloads`` on a GPU: letir, CuPy and ``cupy.fuse``, PyTorch with and
without ``torch.compile``, JAX.

``python -m benchmarks.device_programs [PART OF A NAME ...]`` prints the table. Each figure is two
ratios, for the value / for value and gradient, both to plain CuPy's time for the value: medians of
wall-clock times until the device is ready, in rounds in which all sides take turns. All compute in
float64 on arrays that are on the device before.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import letir
from benchmarks.harness import Skipped
from benchmarks.kernel_programs import Sides
from benchmarks.kernel_workloads import WORKLOADS, Workload
from benchmarks.peers import installed

_ROUNDS = 15


def device_module() -> Any:
    """CuPy. Raises Skipped if it is not installed, or finds no device."""
    cupy = installed("cupy")
    if not cupy.cuda.is_available():
        raise Skipped("no CUDA device is present")
    return cupy


def _ready(call: Callable, *args: Any) -> Callable:
    """A call that returns when the device has computed its results."""
    wait = device_module().cuda.get_current_stream().synchronize

    def run() -> None:
        call(*args)
        wait()

    return run


def _sum_of(f: Callable, *args: Any) -> Any:
    return f(*args).sum()


def cupy_sides(workload: Workload) -> Sides:
    """The program in CuPy's functions."""
    cupy = device_module()
    args = [cupy.asarray(x) for x in workload.make()]
    return _ready(partial(workload.function, cupy), *args), None


def fused_sides(workload: Workload) -> Sides:
    """The program under ``cupy.fuse``, which refuses all but elementwise functions and sums."""
    cupy = device_module()
    args = [cupy.asarray(x) for x in workload.make()]

    @cupy.fuse()
    def f(*args: Any) -> Any:
        return workload.function(cupy, *args)

    return _ready(f, *args), None


def letir_sides(workload: Workload, kernels: str = "on") -> Sides:
    """letir under ``jit``: one kernel for each group of operations, or CuPy's functions."""
    import numpy

    cupy = device_module()
    args, f = [cupy.asarray(x) for x in workload.make()], workload.bound(numpy, letir)
    wanted = tuple(range(workload.parameters))
    gradient = letir.value_and_grad(partial(_sum_of, f), wanted)
    return (
        _ready(letir.jit(f, kernels=kernels), *args),
        _ready(letir.jit(gradient, kernels=kernels), *args),
    )


def torch_sides(workload: Workload, is_compiled: bool = True) -> Sides:
    """PyTorch, under ``torch.compile`` or as it is."""
    torch = installed("torch")
    if not torch.cuda.is_available():
        raise Skipped("PyTorch finds no device")
    torch._dynamo.reset()  # counts the compilations of all programs together
    args = [torch.from_numpy(x).cuda() for x in workload.make()]
    f = partial(workload.function, torch)
    f = torch.compile(f) if is_compiled else f
    parameters = args[: workload.parameters]

    def value() -> None:
        with torch.no_grad():
            f(*args)
        torch.cuda.synchronize()

    def gradient() -> None:
        for parameter in parameters:
            parameter.requires_grad_()
        torch.autograd.grad(f(*args).sum(), parameters)
        torch.cuda.synchronize()

    return value, gradient


def jax_sides(workload: Workload) -> Sides:
    """JAX under ``jit``."""
    jax, jnp = installed("jax"), installed("jax.numpy")
    if jax.default_backend() != "gpu":
        raise Skipped("JAX finds no device")
    jax.config.update("jax_enable_x64", True)
    args, f = [jnp.asarray(x) for x in workload.make()], workload.bound(jnp, jax.lax)
    wanted = tuple(range(workload.parameters))
    gradient = jax.jit(jax.value_and_grad(partial(_sum_of, f), wanted))

    def ready(call: Callable) -> Callable:
        return lambda: jax.block_until_ready(call(*args))

    return ready(jax.jit(f)), ready(gradient)


SIDES: dict[str, Callable[[Workload], Sides]] = {
    "CuPy": cupy_sides,
    "cupy.fuse": fused_sides,
    "letir": letir_sides,
    "without kernels": partial(letir_sides, kernels="off"),
    "PyTorch": partial(torch_sides, is_compiled=False),
    "torch.compile": torch_sides,
    "JAX": jax_sides,
}


def calls_of(workload: Workload) -> tuple[dict[tuple[str, int], Callable], list[str]]:
    """((side, 0 for the value, 1 with the gradient) -> call, reasons of what is left out)."""
    calls, reasons = {}, []
    for name, make in SIDES.items():
        try:
            sides = make(workload)
        except Skipped as reason:
            reasons.append(f"{name}: {reason}")
            continue
        for n, call in enumerate(sides):
            if call is None or (n and workload.targets[1] is None):
                continue
            try:
                call()
                call()
            except Exception as error:  # a side that lacks a function says so in the table
                reasons.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            else:
                calls[name, n] = call
    return calls, reasons


def row_of(workload: Workload) -> str:
    """The ratios of a program as a line of the table."""
    calls, reasons = calls_of(workload)
    times: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for _ in range(_ROUNDS):
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            times[key].append(time.perf_counter() - start)
    base = times.get(("CuPy", 0))
    if not base:
        return f"{workload.name}: CuPy does not compute it; {'; '.join(reasons)}"
    cells = []
    for name in SIDES:
        ratios = [
            "-"
            if (name, n) not in times
            else f"{median(a / b for a, b in zip(times[name, n], base, strict=True)):.2f}"
            for n in (0, 1)
        ]
        cells.append(f"{name} {' / '.join(ratios)}")
    text = f"{workload.name} ({median(base) * 1e3:.3f} ms): {', '.join(cells)}"
    return "\n  ".join([text, *reasons])


def main() -> None:
    """Print the table, or why there is none."""
    try:
        cupy = device_module()
    except Skipped as reason:
        print(f"benchmarks.device_programs: CuPy: {reason}")
        return
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "CuPy", cupy.__version__)
    for workload in WORKLOADS:
        if workload.is_unrolled or workload.in_numpy is not None:
            continue  # thousands of launches in CuPy
        if all(part in workload.name for part in sys.argv[1:]):
            print(row_of(workload), flush=True)


if __name__ == "__main__":
    main()
