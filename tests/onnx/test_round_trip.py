"""Models that are loaded, and exported again."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from tests.each_sample import in_one_test
from tests.laws.test_batch_sizes import DIFFERENTIABLE, batched_positions, named
from tests.onnx.exporting.test_node_emission import QUICK
from tests.onnx.exporting.test_other_sizes import replays, with_rows
from tests.onnx.importing.backend_cases import UNSUPPORTED, node_cases, stored_cases
from tests.onnx.running import gradient_of, real_pairs

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


NEED_EXAMPLES = {  # operations whose models need example inputs if a size has a name
    **dict.fromkeys(["fori_loop", "while_loop", "scan"], "counts of steps, read from inputs"),
    **dict.fromkeys(["index", "index_set"], "slices that may be cut off by the end of an axis"),
    "roll": "a slice from a remainder",
    "rfftn": "half a size, rounded",
}


@in_one_test
@pytest.mark.parametrize(
    "name", [n for n in QUICK if n in DIFFERENTIABLE and n not in NEED_EXAMPLES]
)
def test_operations_and_gradients_of_named_sizes_survive_export_and_import(name):
    """The exported shape computations are computed on symbolic sizes again."""
    op = PRIMITIVES[name]
    for sample in SAMPLES[name][:4]:
        positions = batched_positions(sample)
        if not positions or not len(sample.args[positions[0]]):
            continue
        args = applied_program(op, sample, constants=True)[1]
        try:
            program = named(op, sample, positions)
            gradient = gradient_of(program, args)
        except lt.LetirError:  # there is no derivative for all sizes
            continue
        for exportable in (program, gradient):
            if exportable is not None:
                rows = 2 * len(sample.args[positions[0]])
                check_again(exportable, op, with_rows(sample, positions, rows))


def check_again(program, op, case) -> None:
    """Export a program and load it, and compare the numbers at other sizes."""
    try:
        model = lt.onnx.export(program)
    except lt.ExportError:
        return
    if not replays(op, case):
        return
    args = applied_program(op, case, constants=True)[1]
    expected = program(*args)
    found = lt.onnx.load(model)(*map(real_pairs, args))
    rows = [rows if isinstance(rows, tuple) else (rows,) for rows in (found, expected)]
    for x, y in zip(*rows, strict=True):
        np.testing.assert_allclose(x, real_pairs(y), 1e-5, 1e-6)
