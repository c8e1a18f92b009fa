"""``machine_costs``: the table of the processor's family, or the file that ``letir tune`` wrote."""

import json
import logging

import numpy as np
import pytest
from attrs import evolve

import letir as lt
from letir.cli import main
from letir.executor.kernels import tuning
from letir.executor.kernels.tuning import save_costs
from letir.kernels.machine_costs import (
    MachineCosts,
    costs_from_values,
    family_costs,
    machine_costs,
)

X = np.linspace(0.1, 1.0, 20_000)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of costs that this process reads, which does not exist yet."""
    path = tmp_path / "settings" / "costs.json"
    monkeypatch.setenv("LETIR_COSTS", str(path))
    machine_costs.cache_clear()
    yield path
    monkeypatch.undo()
    machine_costs.cache_clear()


@pytest.fixture
def quick(monkeypatch):
    """Measurements take a round of one call."""
    monkeypatch.setattr(tuning, "_ROUNDS", 1)
    monkeypatch.setattr(tuning, "_SECONDS", 0.0)


def kernels_of(f, *args) -> int:
    pytest.importorskip("llvmlite")
    return len(lt.compile(lt.trace(f, *args)).kernels)


def polynomial(x):
    return (x * x + 1.0) * x - 2.0


@pytest.mark.parametrize(
    ("extensions", "family", "compiles"),
    [
        (["X86_V3"], "x86-64", True),
        (["X86_V3", "X86_V4"], "x86-64 with AVX-512", False),
        (["AVX2", "AVX512_SKX"], "x86-64 with AVX-512", False),
    ],
)
def test_the_processor_family_follows_the_loops_that_numpy_selects(
    monkeypatch, extensions, family, compiles
):
    config = {
        "Machine Information": {"host": {"cpu": "x86_64"}},
        "SIMD Extensions": {"found": extensions},
    }
    monkeypatch.setattr(np, "show_config", lambda mode: config)

    costs = family_costs()

    assert (costs.origin, costs.compiles_functions) == (family, compiles)


def test_costs_are_those_that_were_saved(file):
    costs = MachineCosts("here", least_elements=1 << 12, call=250.5)

    save_costs(costs, str(file))

    assert machine_costs() == evolve(costs, origin=f"this computer, {file}")


def test_costs_of_other_processors_stay_in_the_file(file):
    file.parent.mkdir()
    file.write_text(json.dumps({"another processor": {"call": 100.0}}))

    assert machine_costs() == family_costs()
    save_costs(MachineCosts("here"), str(file))

    assert json.loads(file.read_text())["another processor"] == {"call": 100.0}


@pytest.mark.parametrize("text", ["", "[", "[1]", "3", '"x"', "\udc80"])
def test_a_damaged_file_is_ignored_with_a_warning_and_written_again(file, caplog, text):
    file.parent.mkdir()
    file.write_bytes(text.encode(errors="surrogateescape"))

    with caplog.at_level(logging.WARNING):
        assert machine_costs() == family_costs()
    save_costs(MachineCosts("here"), str(file))

    assert "letir tune" in caplog.text
    assert machine_costs().origin == f"this computer, {file}"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"speed": 1}, "no cost is called 'speed'"),
        ({"origin": "x"}, "no cost is called 'origin'"),
        ({"call": "1"}, "call: expected float, got '1'"),
        ({"call": -1.0}, "call: expected float, got -1.0"),
        ({"call": float("nan")}, "call: expected float, got nan"),
        ({"least_elements": 1.5}, "least_elements: expected int, got 1.5"),
        ({"least_elements": True}, "least_elements: expected int, got True"),
        ({"compiles_functions": 1}, "compiles_functions: expected bool, got 1"),
    ],
)
def test_values_that_are_not_costs_are_refused(values, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        costs_from_values(values, "here")


def test_costs_decide_what_becomes_a_kernel(file):
    assert kernels_of(polynomial, X) == 1

    save_costs(MachineCosts("here", least_elements=1 << 20), str(file))
    assert kernels_of(polynomial, X) == 0


def test_a_lone_elementary_function_is_a_kernel_if_numpys_is_slower(file):
    save_costs(MachineCosts("here", compiles_functions=True), str(file))
    assert kernels_of(np.exp, X) == 1

    save_costs(MachineCosts("here", compiles_functions=False), str(file))
    assert kernels_of(np.exp, X) == 0
    assert kernels_of(lambda x: np.exp(x) * 2, X) == 1


def test_an_explanation_names_the_costs(file):
    pytest.importorskip("llvmlite")
    save_costs(MachineCosts("here"), str(file))

    heads = lt.explain(lt.jit(polynomial), X).summary

    assert heads[-1] == f"groups become kernels by the costs of this computer, {file}"


def test_measured_costs_are_plausible(quick):
    pytest.importorskip("llvmlite")

    costs = tuning.tuned_costs()

    assert 1 << 10 <= costs.least_elements <= 1 << 20
    assert 1 << 5 <= costs.least_loop_calls <= 1 << 13
    assert 10 < costs.call < 1e6
    assert costs_from_values({"call": costs.call, "term": costs.term}, "here").call == costs.call


def test_tune_writes_the_costs_that_it_prints(file, quick, capsys):
    assert main(["tune"]) == 0

    shown = capsys.readouterr().out
    assert "costs of this computer:\n" in shown
    assert f"written to {file}" in shown
    assert f"  call                 {machine_costs().call}\n" in shown


def test_tune_needs_a_file(monkeypatch, capsys):
    monkeypatch.setenv("LETIR_COSTS", "")

    assert main(["tune"]) == 1
    assert "name a file with -o" in capsys.readouterr().err
