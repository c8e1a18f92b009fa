"""The test cases of the package onnx on dense arrays give the expected numbers."""

import numpy as np
import onnx
import pytest

import letir as lt
from tests.onnx.importing.backend_cases import UNSUPPORTED, node_cases, stored_cases


def problem_of(case) -> str | None:
    """What is wrong with the results of a case."""
    rows = [[np.asarray(x) for x in inputs] for inputs, _ in case.rows]
    try:
        try:
            f = lt.onnx.load(case.model)
        except lt.TraceError:  # a shape depends on the numbers of an input
            f = lt.onnx.load(case.model, args=rows[0])
        for inputs, (_, expected) in zip(rows, case.rows, strict=True):
            with np.errstate(all="ignore"):
                found = lt.run_forward(f, *inputs)
            found = found if isinstance(found, tuple) else (found,)
            for x, y in zip(found, expected, strict=True):
                assert x.dtype == y.dtype
                np.testing.assert_allclose(x, y, case.rtol, case.atol)
                assert np.shape(x) == np.shape(y)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def check_cases(cases) -> tuple[int, list[str]]:
    """(how many cases there are on dense arrays, the problems with those that should pass)."""
    count, problems = 0, []
    for case in filter(lambda case: case.is_dense(), cases):
        count += 1
        found = problem_of(case)
        if (found is None) is (case.name in UNSUPPORTED):
            problems.append(f"{case.name}: {found or 'passes, but is listed as unsupported'}")
    return count, problems


def test_the_cases_of_operators():
    count, problems = check_cases(node_cases())

    assert problems == []
    assert count > 1500
    assert len(UNSUPPORTED) <= 0.02 * count


def test_the_cases_of_small_models():
    count, problems = check_cases(stored_cases())

    assert problems == []
    assert count > 120


def test_the_cases_of_sequences_and_optionals():
    count = 0
    for case in filter(lambda case: case.has_sequences(), node_cases()):
        ((inputs, expected),) = case.rows
        found = lt.onnx.load(case.model, args=inputs)(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        for x, y in zip(found, expected, strict=True):
            pairs = zip(x, y, strict=True) if isinstance(y, list) else [(x, y)]
            for a, b in pairs:
                assert (a.dtype, np.shape(a)) == (b.dtype, np.shape(b)), case.name
                np.testing.assert_array_equal(a, b, case.name)
        count += 1

    assert count >= 26


@pytest.mark.slow
def test_plans_give_the_same_numbers():
    problems = []
    for case in (*node_cases(), *stored_cases()):
        if not case.is_dense() or case.name in UNSUPPORTED:
            continue
        inputs = [np.asarray(x) for x in case.rows[0][0]]
        f = lt.onnx.load(case.model, args=inputs)
        with np.errstate(all="ignore"):
            expected, found = lt.run_forward(f, *inputs), lt.compile(f)(*inputs)
        rows = [x if isinstance(x, tuple) else (x,) for x in (expected, found)]
        for x, y in zip(*rows, strict=True):
            if not np.allclose(x, y, 1e-5, 1e-6, equal_nan=True):
                problems.append(case.name)

    assert problems == []


def test_the_newest_operators_of_the_package_are_accepted():
    text = f'<ir_version: 9, opset_import: ["" : {onnx.defs.onnx_opset_version()}]>'
    model = onnx.parser.parse_model(text + " f (float[2] x) => (float[2] y) { y = Relu(x) }")

    assert lt.onnx.load(model)(np.array([-1, 2], np.float32)).tolist() == [0, 2]
