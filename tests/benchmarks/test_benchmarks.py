"""The benchmarks run; programs here are too small for meaningful figures."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from benchmarks import (
    dask_scale,
    eager_mode,
    error_states,
    executors,
    first_calls,
    jacobians,
    kernel_programs,
    kernel_threads,
    networks,
    numpy_programs,
    programs,
    residuals,
)
from benchmarks.__main__ import BEGIN, END, table, telling, write
from benchmarks.first_minutes import measure_command, sum_of_steps
from benchmarks.harness import DemoSettings, Skipped, across_sizes, fresh_process, machine, per_op
from benchmarks.kernel_workloads import WORKLOADS, Workload
from benchmarks.peers import installed
from benchmarks.rows import HEAD, ROWS, TELLING, Row, markdown, taken
from benchmarks.workloads import plain
from tests.each_sample import in_one_test

TINY = DemoSettings(((50, 1), (100, 1)))
IN_PROCESS = [row for row in ROWS if row.measure.__module__ == programs.__name__]
IN_PROCESS += [row for row in ROWS if row.name in ("history", "backward")]


@pytest.mark.parametrize("row", IN_PROCESS, ids=lambda row: row.name)
def test_a_figure_is_taken_in_u_at_every_size(row):
    text = row.measure(TINY)

    assert " u; " in text
    assert "drift" in text


def test_eager_mode_is_measured(monkeypatch):
    monkeypatch.setattr(eager_mode, "OPERATIONS", 50)
    monkeypatch.setattr(eager_mode, "ROUNDS", 1)

    assert eager_mode.tiny(TINY).endswith(" u")
    value, gradient = eager_mode.letir_tiny()
    assert np.isfinite(value)
    assert gradient.shape == (4,)


def test_programs_are_compared_with_numpy(monkeypatch):
    monkeypatch.setattr(numpy_programs, "SECONDS", 0)
    chosen = [p for p in numpy_programs.programs() if "finance" in p.name]
    monkeypatch.setattr(numpy_programs, "programs", lambda: chosen)

    assert f" of {len(chosen)} slower by 5 %; " in numpy_programs.compared_with_numpy(TINY)


def test_error_states_are_compared_with_numpy(monkeypatch):
    monkeypatch.setattr(numpy_programs, "SECONDS", 0)

    found = error_states.compared_with_numpy(TINY)

    assert " x NumPy; " in found
    assert found.count(",") == len(error_states.FUNCTIONS) - 1


def test_the_table_is_written_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n\n{END}\nbelow\n")

    write(page, ["| a |", "|---|"])

    assert page.read_text() == f"above\n{BEGIN}\n| a |\n|---|\n\n{END}\nbelow\n"


@pytest.mark.parametrize(("page", "n"), [("README.md", 8), ("docs/performance.md", len(ROWS))])
def test_a_page_has_its_rows_between_the_marks(page, n):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    _, begin, rest = text.partition(BEGIN)
    lines = rest.partition(END)[0].split("|---|\n")[1].strip().splitlines()

    assert begin and n == len(lines)
    titles = [row.title for row in ROWS if n == len(ROWS) or row.name in TELLING]
    assert titles == [line.removeprefix("| ").partition(" | ")[0] for line in lines]


def test_the_telling_rows_have_peers_and_no_targets():
    found = {row.name: (row.title, row.target, "1 u", "peer 2 u") for row in ROWS}

    assert all(row.peer_figures for row in ROWS if row.name in TELLING)
    assert len(table(found)) == 2 + len(ROWS)
    assert telling(found)[0] == "| figure | letir | other packages |"
    title = "import, first trace and gradient of the README example"
    assert telling(found)[2] == f"| {title} | 1 u | peer 2 u |"


def test_the_rows_have_different_names():
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_row_is_a_line_of_markdown():
    def missing(effort):
        raise Skipped("not installed")

    row = Row("size", "size of it", "2 u", lambda effort: "1 u", {"peer": missing})

    assert markdown(row.cells(TINY)) == "| size of it | 2 u | 1 u | peer (not installed) |"
    assert len(HEAD) == len(row.cells(TINY))
    assert taken(missing, TINY) == "(not installed)"


def test_a_package_that_is_not_installed_is_skipped():
    with pytest.raises(Skipped, match="not installed"):
        installed("no_such_package_as_this")


def test_the_jacobian_that_is_measured_is_right():
    first, second, x = jacobians.operands(5)
    columns = [
        jacobians.layers(np, first, second, x + step)
        - jacobians.layers(np, first, second, x - step)
        for step in 1e-6 * np.eye(5)
    ]

    np.testing.assert_allclose(np.stack(columns, 1) / 2e-6, jacobians.letir_call(5)(), rtol=1e-6)
    assert " ms" in jacobians.letir_jacobian(TINY, 5)


def test_one_size_has_no_drift():
    assert "drift" not in across_sizes(DemoSettings(((50, 1),)), plain, lambda n, size: (n, size))


def test_the_floor_is_subtracted():
    assert per_op(plain, lambda n, size: (n, size), 1000, 3, floor=plain) < 1


def test_the_output_of_a_fresh_process_is_read_as_a_figure():
    assert fresh_process("print('figure', 1.5)") == 1.5


def test_a_process_that_fails_is_skipped_with_the_reason():
    with pytest.raises(Skipped, match="ValueError: no"):
        fresh_process("raise ValueError('no')")


def test_the_machine_is_named():
    assert "NumPy" in machine()


def test_a_chain_has_the_requested_number_of_operations():
    assert len(programs.program(100, 4)) == 100


# Bytes without arguments, and with them, that JAX 0.10 and torch 2.15 keep for the same models.
PEERS_KEEP = {
    "MLP": ((1119232, 2589696), (529408, 1999872)),
    "LSTM": ((7831552, 8224768), (4587520, 4980736)),
    "normalisations": ((2573824, 2573824), (1583104, 1585664)),
}


@pytest.mark.parametrize("name", residuals.MODELS)
def test_residuals_take_no_more_bytes_than_peers(name):
    own, total = residuals.letir_bytes(name)

    assert own <= min(kept for kept, _ in PEERS_KEEP[name])
    assert total <= min(kept for _, kept in PEERS_KEEP[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", residuals.MODELS)
def test_peers_keep_as_many_bytes_as_the_table_says(name):
    pytest.importorskip("jax")
    pytest.importorskip("torch")

    assert PEERS_KEEP[name] == (residuals.jax_bytes(name), residuals.torch_bytes(name))


def test_a_convolution_is_measured(monkeypatch):
    monkeypatch.setattr(networks, "SIDE", 4)

    assert networks.convolution(TINY).endswith(" ms")


def test_the_measurements_of_executors_give_numbers_with_units(monkeypatch):
    monkeypatch.setattr(executors, "CALLS", 5)
    monkeypatch.setattr(executors, "STEPS", 5)
    monkeypatch.setattr(executors, "RK4_STEPS", 2)

    for measure in (executors.warm_call, executors.scan_per_step):
        assert measure(TINY).endswith(" u")
    assert executors.first_call(TINY).endswith(" s")
    assert " u, " in executors.slowest_pass(TINY)
    for measure in (executors.pipeline, executors.slots):
        assert "drift" in measure(TINY)


def test_programs_of_loops_do_not_grow_with_the_trip_count():
    assert " and " in executors.loop_sizes(TINY)


def test_the_loops_that_are_measured_are_right():
    args = [arg[:5] if i == 3 else arg for i, arg in enumerate(executors.rnn_arguments())]
    rnn = partial(executors.scanned_rnn, np, lt.scan)
    value, found = executors.hand_written_rnn(*args)

    assert value == pytest.approx(rnn(*args))
    for one, other in zip(found, lt.grad(rnn, argnums=(0, 1, 2, 3))(*args), strict=True):
        np.testing.assert_allclose(one, other)
    assert 33 * 3 + 2 == len(lt.trace(partial(executors.rk4, np, 3), *executors.start()))


@in_one_test
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_the_programs_for_kernels_are_plain_numpy(workload):
    args = workload.make()

    if args[0].size < 10**5:  # the others take seconds without a kernel
        assert np.isfinite(workload.plain()(*args)).all()
    assert len(args) >= workload.parameters


def test_a_program_is_compared_with_numpy_with_and_without_kernels(monkeypatch):
    monkeypatch.setattr(kernel_programs, "SECONDS", 0)
    small = Workload("small", lambda np, x: np.exp(x), lambda: (np.ones(3),), (1.0, 2.0))

    value, gradient = str(kernel_programs.figure(small, "letir")(TINY)).split(" / ")

    assert float(value) > 0
    assert float(gradient) > 0
    assert kernel_programs.targets(small) == "1.00 / 2.00"


def test_one_thread_is_compared_with_several():
    found = []
    seconds, faster = kernel_threads.speedup(lambda: found.append(lt.get_num_threads()), 3, 0.01)

    assert seconds > 0
    assert faster > 0
    assert [1, 3, 1, 3] == found[1:5]


def test_a_command_is_measured_with_the_processes_that_it_starts(tmp_path):
    code = "import time\nwhile time.process_time() < 0.05: pass\nprint(7)"
    (wall, cpu), printed = measure_command([sys.executable, "-c", code], tmp_path)

    assert printed == "7\n"
    assert wall > 0.04
    assert cpu > 0.04
    assert sum_of_steps("title", [(1.0, 0.5), (wall, cpu)]).startswith("title | 1.")


def test_the_model_of_the_page_on_scale_is_found():
    step_seconds = dask_scale.model_of_the_page()

    assert step_seconds(32, 2, t=0.25, p=1000, start=1.0) == pytest.approx(5.0, abs=0.01)
    assert dask_scale.rows(4, waits=False).numblocks == (4, 1)


def test_first_calls_are_measured_in_new_processes():
    assert float(first_calls.first_call("GELU, 10^6", "without kernels", 0)) > 0
    assert first_calls.first_call("GELU, 10^6", "no such side", 0) == "-"
