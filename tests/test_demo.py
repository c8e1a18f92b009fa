"""``letir demo``: it reaches the accuracy that it states, and prints the same in every run."""

import io
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest

from letir.cli import main
from letir.demo import walkthrough
from letir.demo.measurement import peak_bytes, time_interleaved
from letir.demo.models import loss, loss_and_slopes, new_layers
from letir.demo.training import BATCH, Model, split_digits
from letir.demo.walkthrough import QUICK, print_progress, run_demo

UNSTABLE = ("    by hand", "    jit", "    replayed", "Saved as", "To ")


@pytest.fixture
def digits():
    return split_digits(np.random.default_rng(0))[0]


def stable_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(UNSTABLE)]


def test_the_demo_command_reaches_its_accuracy_and_is_reproducible(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = main(["demo", "--quick", "--save", str(tmp_path / "digits.letir")])
    first, second = capsys.readouterr().out, io.StringIO()
    reached = run_demo(QUICK, None, second)

    assert code == 0
    assert reached
    assert "loaded again, it classifies" in first
    assert stable_lines(first) == stable_lines(second.getvalue())
    assert "two-layer network: 15 binds, with gradient" in first
    assert f"Saved as {tmp_path}/digits.letir\n" in first
    assert (tmp_path / "digits.letir").exists()
    saved, _, command = second.getvalue().partition("Saved as ")[2].partition("\n")
    assert Path(saved).exists()
    words = shlex.split(command.partition("letir view ")[2])
    assert main(["view", *words[:2], str(tmp_path / words[2])]) == 0
    assert (tmp_path / "digits.html").exists()


@pytest.mark.parametrize("sizes", [(64, 10), (64, 32, 10), (64, 16, 16, 10)])
def test_the_recorded_gradient_agrees_with_the_one_by_hand(sizes, digits):
    batch = digits[:BATCH]
    model = Model.recorded("model", sizes, batch, np.random.default_rng(1))

    value, slopes = model.gradient(model.layers, batch.images, batch.targets)

    expected, by_hand = loss_and_slopes(model.layers, batch.images, batch.targets)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for slope, layer in zip(slopes, by_hand, strict=True):
        for name in ("weights", "bias"):
            np.testing.assert_allclose(slope[name], layer[name], rtol=1e-9, atol=1e-14)


def test_the_replayed_loss_is_bitwise_equal_to_the_unrecorded_one(digits):
    batch = digits[:BATCH]
    model = Model.recorded("model", (64, 10), batch, np.random.default_rng(1))
    layers = new_layers((64, 10), np.random.default_rng(2))

    replayed = model.loss(layers, batch.images, batch.targets)

    assert loss(layers, batch.images, batch.targets) == replayed


def test_test_images_are_not_trained_on():
    digits, held_out = split_digits(np.random.default_rng(0))

    assert (len(digits), len(held_out)) == (1437, 360)
    assert not {image.tobytes() for image in digits.images} & {
        image.tobytes() for image in held_out.images
    }


def test_the_progress_bar_prints_a_line_per_quarter_without_a_terminal():
    out = io.StringIO()
    for done in range(1, 101):
        print_progress(out, "  training", done, 100, "")

    assert len(out.getvalue().splitlines()) == 4
    assert "\r" not in out.getvalue()


def test_the_progress_bar_is_redrawn_on_a_terminal():
    out = io.StringIO()
    out.isatty = lambda: True
    print_progress(out, "  training", 1, 2, "")
    print_progress(out, "  training", 2, 2, "")

    assert out.getvalue().count("\r") == 2
    assert out.getvalue().endswith("2/2  \n")


def test_timing_in_turns_gives_a_figure_for_every_function_and_round():
    times = time_interleaved([lambda: None, lambda: sum(range(1000))], rounds=3)

    assert times.shape == (3, 2)
    assert (times > 0).all()


def test_the_peak_is_the_most_memory_that_a_call_holds():
    peak = peak_bytes(lambda: np.ones(1 << 20).sum())

    assert 8 << 20 <= peak < 9 << 20


@pytest.mark.parametrize(("path", "expected"), [("bin", "letir"), ("", "bin/letir")])
def test_commands_can_be_copied_also_without_activating_the_environment(
    path, expected, tmp_path, monkeypatch
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "letir").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python3"))
    monkeypatch.setenv("PATH", path and str(tmp_path / path))

    assert expected == walkthrough._command_name()
