"""The large programs of ``kernel_workloads`` in one thread and in several.

``python -m benchmarks.kernel_threads [PART OF A NAME ...]`` prints the table. Times are wall time,
of the value and of value and gradient; the threads take turns, and the speedup is computed from the
fastest turns, which a busy machine disturbs least. The target for two cores is 1.7.
"""

import argparse
import time
from collections.abc import Callable

import letir
from benchmarks.kernel_programs import letir_sides
from benchmarks.kernel_workloads import WORKLOADS

LARGE = ("GELU", "pricing", "layer norm", "cross entropy", "RBF", "fractal", "64 MiB")
SECONDS = 4.0  # for each program


def speedup(call: Callable, threads: int, seconds: float = SECONDS) -> tuple[float, float]:
    """(the least wall time of a call in one thread, its ratio to the least time in several)."""
    fastest = {1: float("inf"), threads: float("inf")}
    call()
    end = time.perf_counter() + seconds
    try:
        while time.perf_counter() < end:
            for n in fastest:
                letir.set_num_threads(n)
                start = time.perf_counter()
                call()
                fastest[n] = min(fastest[n], time.perf_counter() - start)
    finally:
        letir.set_num_threads(None)
    return fastest[1], fastest[1] / fastest[threads]


def main() -> None:
    """Print the table of the requested programs, by default of the large ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", default=LARGE, help="a part of a program's name")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(f"| program | one thread | times faster in {options.threads} |\n|---|---|---|")
    for workload in WORKLOADS:
        if not any(part.lower() in workload.name.lower() for part in options.name):
            continue
        for call, what in zip(letir_sides(workload), ("", ", with gradient"), strict=True):
            if call is not None:
                least, faster = speedup(call, options.threads)
                row = (f"{workload.name}{what}", f"{1e3 * least:.1f} ms", f"{faster:.2f}")
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
