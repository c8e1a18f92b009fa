"""Steps of ``letir.dask.value_and_grad`` beside the model of docs/scale.md.

``python -m benchmarks.dask_scale`` prints for several numbers of blocks and workers the wall-clock
time of a step, the time that the model predicts, and the bytes that workers sent to one another.
Each block waits before it is computed, as for data on a slow disk: many workers need few cores.
Two steps of one worker give the time of a block and the part of a step that does not depend on it.
"""

import contextlib
import sys
import time
from collections.abc import Callable

import dask.array as da
import numpy as np

import letir as lt
from benchmarks.dask_losses import seconds
from benchmarks.harness import ROOT

_ROWS, _FEATURES = 1_000, 1_000  # of a block
_WAIT = 0.2  # seconds for a block
_ROUNDS = 3
WORKERS = (1, 2, 4)
BLOCKS = (2, 8, 16, 32)
_FITTED = (2, 16)  # numbers of blocks on one worker


def logistic_loss(w, x):
    """The mean logistic loss of rows whose classes are all 0."""
    return np.mean(np.logaddexp(0.0, x @ w))


def wait_for_block(block: np.ndarray) -> np.ndarray:
    """A block that takes long to load."""
    time.sleep(_WAIT)
    return block


def rows(blocks: int, waits: bool = True) -> da.Array:
    """Blocks of rows that the workers make in each step."""
    ones = da.ones((blocks * _ROWS, _FEATURES), chunks=(_ROWS, -1))
    return ones.map_blocks(wait_for_block, dtype=float) if waits else ones


def model_of_the_page() -> Callable[..., float]:
    """The function ``step_seconds`` of docs/scale.md."""
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    block = text.split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(block.partition("\n\nblocks")[0], names)
    return names["step_seconds"]


def fastest(step: Callable, *args) -> float:
    """The least wall-clock time of several calls, after a first one that compiles."""
    step(*args)
    return min(seconds(step, *args) for _ in range(_ROUNDS))


def sent_bytes(client) -> int:
    """The bytes that the workers of a client have sent to one another."""
    found = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(found.values())


def measure_steps(client) -> dict[int, tuple[float, int]]:
    """For each number of blocks the time of a step, and the bytes that the workers sent in it."""
    step, w, found = lt.dask.value_and_grad(logistic_loss), np.zeros(_FEATURES), {}
    for blocks in BLOCKS:
        x = rows(blocks)
        measured, before = fastest(step, w, x), sent_bytes(client)
        step(w, x)
        found[blocks] = measured, sent_bytes(client) - before
        print(f"{blocks} blocks: {measured:.2f} s", file=sys.stderr, flush=True)
    return found


def scheduler_seconds(client, tasks: int = 1_000) -> float:
    """The CPU time that the scheduler and the client need for a task that does nothing."""

    def step() -> float:
        start = time.process_time()
        client.gather(client.map(lambda _: None, range(tasks), pure=False))
        return (time.process_time() - start) / tasks

    return min(step() for _ in range(_ROUNDS))


def steps_of_clusters() -> tuple[dict[int, dict], float]:
    """For each number of workers the steps, and the time of the scheduler for a task."""
    import distributed

    found, q = {}, 0.0
    for workers in WORKERS:
        with contextlib.ExitStack() as stack:
            options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(distributed.LocalCluster(**options))
            client = stack.enter_context(distributed.Client(cluster))
            q = q or scheduler_seconds(client)
            found[workers] = measure_steps(client)
    return found, q


def main() -> None:
    """Measure all steps, fit the model to two of them, and print all beside the model."""
    measured, q = steps_of_clusters()
    (few, many), ((early, _), (late, _)) = _FITTED, [measured[1][blocks] for blocks in _FITTED]
    t = (late - early) / (many - few)
    start, step_seconds = early - few * t, model_of_the_page()
    print(f"fitted to *: {t:.3f} s a block, {start:.3f} s a step; {q * 1e3:.2f} ms a task")
    print("workers | blocks | measured | model | deviation | bytes sent")
    for workers, steps in measured.items():
        for blocks, (taken, moved) in steps.items():
            model = step_seconds(blocks, workers, t=t, p=_FEATURES, q=q, start=start)
            star = "*" if workers == 1 and blocks in _FITTED else ""
            print(
                f"{workers} | {blocks} | {taken:.2f} s{star} | {model:.2f} s | "
                f"{taken / model - 1:+.0%} | {moved / 1e3:.0f} kB"
            )


if __name__ == "__main__":
    main()
