"""Control flow as If and Loop, at numbers of steps and sizes other than the recorded ones."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import letir as lt
from tests.onnx.running import assert_agrees, exported, kinds_of, results_of


def test_a_branch_is_chosen_when_the_model_runs():
    def f(x):
        return lt.cond(x.sum() > 0, lambda x: x * 2, np.exp, x)

    program = lt.trace(f, lt.ShapeDtype(("n",), float))
    model = exported(program)

    assert "If" in kinds_of(model)
    for x in (np.ones(2), -np.ones(5)):
        assert_agrees(model, program, [x])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_loop_runs_as_often_as_the_input_says(count):
    def f(x, n):
        return lt.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (0, x))[1]

    program = lt.trace(f, lt.ShapeDtype((3,), float), lt.ShapeDtype((), np.int64))
    model = exported(program)

    assert_agrees(model, program, [np.arange(3.0), np.int64(count)])


@pytest.mark.parametrize("steps", [1, 6])
def test_a_scan_and_its_gradient_run_for_any_number_of_steps(steps):
    def f(w, xs):
        def step(h, x):
            h = np.tanh(w @ h + x)
            return h, h.sum()

        h, sums = lt.scan(step, np.zeros(2), xs)
        return (h * h).sum() + sums.sum()

    kinds = lt.ShapeDtype((2, 2), float), lt.ShapeDtype(("steps", 2), float)
    program = lt.grad(lt.trace(f, *kinds), argnums=(0, 1))
    model = exported(program)

    rng = np.random.default_rng(steps)
    assert_agrees(model, program, [rng.normal(size=(2, 2)), rng.normal(size=(steps, 2))])


def test_loops_run_in_the_reference_evaluator_too():
    """It takes a Loop without a condition for one that never runs."""
    matrix, y = np.array([[0.5, 1.0], [3.0, 4.5]]), np.array([0.25, 2.0])
    model = exported(lt.trace(np.linalg.solve, matrix, y))
    feeds = dict(zip([x.name for x in model.graph.input], (matrix, y), strict=True))

    (found,) = ReferenceEvaluator(model).run(None, feeds)

    np.testing.assert_allclose(np.linalg.solve(matrix, y), found, rtol=1e-12)


def test_composites_inside_of_a_loop_are_nodes_of_its_body():
    def f(x):
        return lt.fori_loop(0, 3, lambda i, y: lt.nn.softmax(y) + i, x)

    program = lt.trace(f, lt.ShapeDtype(("n",), float))
    model = exported(program)

    body = next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g
    assert "Softmax" in [node.op_type for node in body.node]
    assert_agrees(model, program, [np.arange(4.0)])


def test_reads_in_a_try_statement_fail_in_the_model_too():
    def f(x, i):
        try:
            return x[i] * 2
        except IndexError:
            return x[0]

    model = exported(f, args=(np.arange(4.0), np.array([3, 1])))

    np.testing.assert_allclose(results_of(model, [np.arange(4.0), np.array([0, 2])])[0], [0, 4])
    with pytest.raises(Exception, match="out of"):
        results_of(model, [np.arange(4.0), np.array([0, 9])])


@pytest.mark.parametrize("solve", [np.linalg.inv, np.linalg.cholesky])
def test_a_solution_in_a_try_statement_fails_in_the_model_too(solve):
    def f(x):
        try:
            return solve(x)
        except np.linalg.LinAlgError:
            return x

    model, x = exported(f, args=(np.eye(2),)), np.array([[2.0, 0.5], [0.5, 1.0]])

    np.testing.assert_allclose(results_of(model, [x])[0], solve(x), rtol=1e-14)
    with pytest.raises(Exception, match=r"where this was a result of .* at test_control_nodes.py:"):
        results_of(model, [np.ones((2, 2))])
    with pytest.raises(lt.ExportError, match="an error that Python raises"):
        exported(f, args=(np.zeros((2, 2)),))  # recorded where Python goes on with x


def test_a_scan_over_a_known_number_of_rows_is_a_scan():
    def f(w, xs):
        def step(h, x):
            h = np.tanh(w @ h + x)
            return h, (h.sum(), h)

        h, (sums, states) = lt.scan(step, np.zeros(2), xs)
        return (h * h).sum() + sums.sum() + (states**3).sum()

    kinds = lt.ShapeDtype((2, 2), float), lt.ShapeDtype((5, 2), float)
    program = lt.trace(f, *kinds)
    slope = lt.grad(program, argnums=(0, 1))  # the scan of the backward pass is reversed
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(2, 2)), rng.normal(size=(5, 2))]

    for p, count in ((program, 1), (slope, 2)):
        model = exported(p)
        assert count == kinds_of(model).count("Scan")
        assert_agrees(model, p, arrays)


def test_a_map_over_a_known_number_of_rows_is_a_scan():
    program = lt.trace(
        lambda xs, w: lt.map(lambda x: lt.cond(x[0] > 0, np.sin, np.cos, x) @ w, xs),
        np.zeros((4, 3)),
        np.zeros(3),
    )
    model = exported(program)

    rng = np.random.default_rng(0)
    assert_agrees(model, program, [rng.normal(size=(4, 3)), rng.normal(size=3)])


def test_nodes_in_bodies_carry_their_own_source_line():
    def f(x):
        return lt.fori_loop(
            0,
            3,
            lambda i, y: np.sin(y) + i,
            x,
        )

    model = exported(f, args=(np.zeros(3),))

    body = next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g
    found = {p.value for node in body.node for p in node.metadata_props if p.key == "operation"}
    assert "sin" in found and "add" in found


def test_failures_in_bodies_are_all_listed_with_their_lines():
    def f(x):
        def body(i, y):
            y = np.nextafter(y, 2.0)
            return np.spacing(y) + lt.cond(y[0] > 0, np.sin, lambda y: np.nextafter(y, 3.0), y)

        return np.spacing(lt.fori_loop(0, 3, body, x))

    with pytest.raises(lt.ExportError) as caught:
        exported(f, args=(np.ones(3),))

    message = str(caught.value)
    assert "4 operations" in message
    assert 2 == message.count("nextafter(") == message.count("spacing(")
    assert 4 == message.count("test_control_nodes.py:")
