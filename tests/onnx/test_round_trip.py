"""Models that are loaded, and exported again."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import letir as lt
from tests.onnx.importing.backend_cases import UNSUPPORTED, node_cases, stored_cases

HEAD = '<ir_version: 9, opset_import: ["" : 21]> '
NETWORK = """f (float[2, 1, 4, 4] x) => (float[2, 3] y) <float[2, 1, 3, 3] K =
{1, 0, -1, 2, 0, -2, 1, 0, -1, 0, 1, 0, 1, -4, 1, 0, 1, 0}, float[2, 3] W = {1, 2, 3, -1, 0, 1}> {
  c = Conv<pads = [1, 1, 1, 1]>(x, K)
  r = Relu(c)
  p = GlobalAveragePool(r)
  q = Flatten(p)
  y = MatMul(q, W)
}"""


def test_a_network_and_its_gradient_are_exported_again():
    model = parser.parse_model(HEAD + NETWORK)
    x = np.random.default_rng(0).standard_normal((2, 1, 4, 4)).astype(np.float32)
    f = lt.onnx.load(model)
    slope = lt.grad(lt.trace(lambda x: f(x).sum(), x))

    for program in (f, slope):
        exported = lt.onnx.export(program)
        session = onnxruntime.InferenceSession(
            exported.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(None, {exported.graph.input[0].name: x})
        np.testing.assert_allclose(found, program(x), 1e-4, 1e-5)
        np.testing.assert_allclose(lt.onnx.load(exported)(x), program(x), 1e-4, 1e-5)


def loaded(model, inputs):
    """The program of a model, for the numbers of ``inputs`` if these decide about shapes."""
    try:
        program = lt.onnx.load(model)
        program(*inputs)
        return program
    except lt.LetirError:
        return lt.onnx.load(model, args=inputs)


def problem_of(case) -> str | None:
    """Why the numbers of a case differ after import, export and another import."""
    inputs = [np.asarray(x) for x in case.rows[0][0]]
    with np.errstate(all="ignore"):
        program = loaded(case.model, inputs)
        try:
            again = loaded(lt.onnx.export(program), inputs)
        except lt.LetirError as error:
            return str(error)
        found, expected = [f(*inputs) for f in (again, program)]
    rows = [rows if isinstance(rows, tuple) else (rows,) for rows in (found, expected)]
    try:
        for x, y in zip(*rows, strict=True):
            np.testing.assert_allclose(x, y, 1e-4, 1e-5)
            assert (x.dtype, np.shape(x)) == (y.dtype, np.shape(y))
    except AssertionError as error:
        return f"differs: {error}"
    return None


@pytest.mark.slow
def test_the_cases_of_the_package_survive_import_and_export():
    problems = {}
    for case in (*node_cases(), *stored_cases()):
        if case.is_dense() and case.name not in UNSUPPORTED:
            found = problem_of(case)
            if found is not None:
                problems[case.name] = found

    assert {} == problems
