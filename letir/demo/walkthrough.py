"""The output of ``letir demo``, in order."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

import numpy as np
from attrs import frozen

from letir import Lambda, load, run_forward, save
from letir.demo.measurement import peak_bytes, time_interleaved
from letir.demo.models import descent_step, loss_and_slopes, scores
from letir.demo.training import BATCH, Digits, Model, accuracy, predictor, split_digits

_SEED = 0
_EXPECTED_ACCURACY = 0.95  # of the network, on held-out images
RATE = 0.5
MiB = 1 << 20
_BAR, LINE = 24, 110  # characters


@frozen
class DemoSettings:
    """The lengths of the demo's training and of its measurements."""

    epochs: int
    rounds: int  # the number of timing rounds


FULL, QUICK = DemoSettings(epochs=40, rounds=100), DemoSettings(epochs=10, rounds=40)


def run_demo(
    effort: DemoSettings = FULL, path: str | Path | None = None, out: TextIO | None = None
) -> bool:
    """Run the demo and print it to ``out``; return whether the network reaches its accuracy.

    The trained program is saved at ``path``, by default in a new folder for temporary files.
    """
    out = out or sys.stdout
    rng = np.random.default_rng(_SEED)
    digits, held_out = split_digits(rng)
    print(f"{len(digits)} handwritten digits to train on, {len(held_out)} held out\n", file=out)

    regression = Model.recorded("softmax regression", (64, 10), digits[:BATCH], rng)
    network = Model.recorded("two-layer network", (64, 64, 10), digits[:BATCH], rng)
    _show_programs(regression, out)
    print(f"Training with jit(value_and_grad(loss)), in batches of {BATCH}", file=out)
    _train_model(regression, digits, held_out, effort, out)
    layers = _train_model(network, digits, held_out, effort, out)
    print("\nA step (gradient and update), compared with the gradient derived by hand", file=out)
    for model in (regression, network):
        _compare_steps(model, digits[:BATCH], effort, out)
    path = Path(path or Path(tempfile.mkdtemp(prefix="letir-"), "digits.letir"))
    return _save_and_reload(layers, held_out, path, out)


# ---- the chapters ----


def _show_programs(model: Model, out: TextIO) -> None:
    """Print the recorded loss, and the binds that its gradient adds."""
    print(f"The loss of {model.name} in letir/demo/models.py, recorded:\n", file=out)
    print(_program_excerpt(model.loss, 0), file=out)
    print("\nIts value and gradient are a program too, with these additional binds:\n", file=out)
    print(_program_excerpt(model.gradient, len(model.loss)), end="\n\n", file=out)


def _train_model(
    model: Model, digits: Digits, held_out: Digits, effort: DemoSettings, out: TextIO
) -> list:
    """Train and return the layers, with a progress bar."""
    # a fresh generator: both models see the same batches
    layers, rng = model.layers, np.random.default_rng(_SEED)
    for epoch, (layers, value) in enumerate(model.epochs(digits, effort.epochs, RATE, rng), 1):
        right = accuracy(scores(layers, held_out.images).argmax(axis=1), held_out)
        note = f"loss {value:.4f}, test accuracy {right:.3f}"
        print_progress(out, f"  {model.name}", epoch, effort.epochs, note)
    return layers


def _compare_steps(model: Model, batch: Digits, effort: DemoSettings, out: TextIO) -> None:
    """Print binds, time and memory of a training step: derived by hand, jitted and replayed."""
    gradients = {
        "by hand": loss_and_slopes,
        "jit": model.step,
        "replayed": lambda *args: run_forward(model.gradient, *args),
    }
    steps = [_training_step(gradient, model.layers, batch) for gradient in gradients.values()]
    times = time_interleaved(steps, effort.rounds)
    ratios = np.median(times / times[:, :1], axis=0)  # within each round, where noise divides out
    print(f"  {model.name}: {len(model.loss)} binds, with gradient {len(model.gradient)}", file=out)
    for name, step, seconds, ratio in zip(
        gradients, steps, np.median(times, axis=0), ratios, strict=True
    ):
        print(
            f"    {name:<9} {seconds * 1e3:6.3f} ms, ratio {ratio:.2f}, "
            f"memory {peak_bytes(step) / MiB:.3f} MiB at most",
            file=out,
        )


def _training_step(gradient: Callable, layers: list, batch: Digits) -> Callable:
    """A training step without arguments."""
    return lambda: descent_step(layers, gradient(layers, batch.images, batch.targets)[1], RATE)


def _save_and_reload(layers: list, held_out: Digits, path: Path, out: TextIO) -> bool:
    """Save the trained program, load it, and run it on the held-out images."""
    save(predictor(layers, held_out.images), path)
    program: Any = load(path)  # not a Gradient
    right = accuracy(run_forward(program, held_out.images), held_out)
    command = _command_name()
    print(
        f"\nSaved as {path}\n"
        f"  {len(program)} binds, {path.stat().st_size / 1024:.0f} KiB; "
        f"loaded again, it classifies {right:.1%} of the held-out digits correctly\n"
        f"To print it:            {command} show {quote(str(path))}\n"
        f"To write a page of it:  {command} view {quote(str(path))} -o digits.html",
        file=out,
    )
    return right >= _EXPECTED_ACCURACY


# ---- output ----


def _program_excerpt(fn: Lambda, start: int) -> str:
    """The text of ``fn`` from bind ``start``, in lines of bounded length."""
    head, *lines = str(fn).splitlines()
    shown = [head, *lines] if start == 0 else ["  ...", *lines[start:]]
    return "\n".join(line if len(line) <= LINE else f"{line[: LINE - 4]} ..." for line in shown)


def print_progress(out: TextIO, title: str, done: int, total: int, note: str) -> None:
    """Print a bar that is redrawn on a terminal; elsewhere a line for each quarter of the work."""
    bar = ("#" * (done * _BAR // total)).ljust(_BAR, "-")
    line = f"{title:<20} [{bar}] {done:>{len(str(total))}}/{total}  {note}"
    if out.isatty():
        print(f"\r{line}", end="\n" if done == total else "", file=out, flush=True)
    elif done * 4 // total > (done - 1) * 4 // total:
        print(line, file=out, flush=True)


def _command_name() -> str:
    """The command ``letir``, with its path if the environment is not activated."""
    beside = Path(sys.executable).with_name("letir")
    if shutil.which("letir") or not beside.exists():
        return "letir"
    return quote(os.path.relpath(beside))
