"""The command ``letir`` on ONNX models."""

import numpy as np
import onnx
import pytest
from onnx import parser

import letir as lt
from letir.cli import main
from tests.onnx.running import results_of

TEXT = """<ir_version: 9, opset_import: ["" : 21]> f (float[batch, 2] x) => (float y)
<float[2] w = {2, 3}> { h = Mul(x, w) y = ReduceSum<keepdims = 0>(h) }"""


X = np.ones(2)


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(TEXT), "m.onnx")


def test_import_writes_a_program(model, capsys):
    assert main(["import", "m.onnx", "-o", "m.letir"]) == 0

    assert capsys.readouterr().out == "m.letir: 1 parameter, 3 binds, 1 result\n"
    assert lt.load("m.letir")(np.ones((2, 2), np.float32)) == 10


def test_import_with_sizes_and_weights_as_parameters(model):
    assert main(["import", "m.onnx", "-o", "f", "--params", "inputs", "--size", "batch=3"]) == 0

    assert [p.type.shape for p in lt.load("f").params] == [(3, 2), (2,)]


def test_a_size_without_a_number(model, capsys):
    assert main(["import", "m.onnx", "-o", "f", "--size", "batch"]) == 1
    assert "batch=8" in capsys.readouterr().err


def test_show_and_run_take_models(model, capsys):
    np.save("x.npy", np.ones((1, 2), np.float32))

    assert main(["show", "m.onnx"]) == 0
    assert "%0:x: float32[batch, 2]" in capsys.readouterr().out
    assert main(["run", "m.onnx", "--arg", "x.npy"]) == 0
    assert capsys.readouterr().out == "5.0\n"


def test_the_gradient_of_a_model(model):
    assert main(["grad", "m.onnx", "-o", "slope.letir"]) == 0

    slope = lt.load("slope.letir")(np.ones((1, 2), np.float32))
    assert slope.tolist() == [[2, 3]]


def test_the_gradient_of_a_model_is_a_model_that_other_runtimes_run(model):
    assert main(["grad", "m.onnx", "-o", "slope.onnx"]) == 0

    for rows in (1, 3):
        (slope,) = results_of(onnx.load("slope.onnx"), [np.ones((rows, 2), np.float32)])
        assert slope.tolist() == [[2, 3]] * rows


def test_the_gradient_of_a_model_with_several_results_takes_their_weights(model):
    scores = TEXT.replace("(float y)", "(float[batch, 2] h)").replace(
        "y = ReduceSum", "s = ReduceSum"
    )
    onnx.save(parser.parse_model(scores), "scores.onnx")

    assert main(["grad", "scores.onnx", "-o", "slope.onnx"]) == 0
    slope = onnx.load("slope.onnx")
    assert ["x", "ct_h"] == [given.name for given in slope.graph.input]
    assert ["ct_x"] == [result.name for result in slope.graph.output]
    x, ct = np.ones((1, 2), np.float32), np.array([[0, 1]], np.float32)
    assert results_of(slope, [x, ct])[0].tolist() == [[0, 3]]


def test_the_results_of_a_gradient_are_named_for_the_arguments(model):
    lt.save(lt.trace(lambda w, x: (w * np.sin(x)).sum(), np.ones(2), np.ones(2)), "f.letir")

    assert main(["grad", "f.letir", "-o", "g.onnx", "--argnums", "1", "0", "--value"]) == 0
    names = [result.name for result in onnx.load("g.onnx").graph.output]
    assert ["value", "ct_x", "ct_w"] == names


def test_the_results_of_a_nested_gradient_keep_their_keys(model):
    program = lt.trace(lambda p, x: (p["a"] * p["b"] * x).sum(), {"a": X, "b": X}, X)
    lt.save(program, "f.letir")

    assert main(["grad", "f.letir", "-o", "g.onnx", "--argnums", "0"]) == 0
    assert ["a", "b"] == [result.name for result in onnx.load("g.onnx").graph.output]


def test_a_program_is_exported(model, capsys):
    lt.save(lt.trace(lambda x: np.tanh(x) * 2, lt.ShapeDtype(("n",), float)), "f.letir")

    assert main(["export", "f.letir", "-o", "f.onnx", "--opset", "21"]) == 0
    assert capsys.readouterr().out.startswith("f.onnx: 1 parameter, 2 binds, 1 result, 2 nodes")
    exported = onnx.load("f.onnx")
    assert 21 == exported.opset_import[0].version
    np.testing.assert_allclose(results_of(exported, [np.ones(4)])[0], np.tanh(np.ones(4)) * 2)


def test_a_damaged_model_is_refused_with_its_file_name(model, capsys):
    with open("bad.onnx", "wb") as file:
        file.write(b"no model")

    assert main(["show", "bad.onnx"]) == 1
    assert "bad.onnx is not an ONNX model" in capsys.readouterr().err
