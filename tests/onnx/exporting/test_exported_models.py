"""letir.onnx.export: models of programs and functions, their names, sizes and files."""

import os
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest

import letir as lt
from tests.onnx.running import assert_agrees, exported, kinds_of, results_of
from tests.test_linear_time import LONG, MAX_GROWTH, SHORT, chain, counted_lines

X = np.linspace(-1.0, 1.5, 6).reshape(2, 3)


def loss(params, x, y):
    """A least-squares loss of a layer."""
    w, b = params
    return ((np.tanh(x @ w + b) - y) ** 2).mean()


def loss_program():
    """``loss`` for any number of rows."""
    kinds = [lt.ShapeDtype(shape, float) for shape in ((3, 2), (2,), ("n", 3), ("n", 2))]
    return lt.trace(loss, tuple(kinds[:2]), *kinds[2:])


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_gradient_program_exports_for_all_sizes(rows):
    rng = np.random.default_rng(rows)
    program = lt.grad(loss_program(), argnums=(0, 1))
    arrays = [rng.normal(size=shape) for shape in ((3, 2), (2,), (rows, 3), (rows, 2))]

    model = exported(program)

    (dw, db), dx = program(tuple(arrays[:2]), *arrays[2:])
    for found, wanted in zip(results_of(model, arrays), (dw, db, dx), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_names_of_parameters_and_sizes_survive():
    model = exported(loss_program())

    assert ["params.0", "params.1", "x", "y"] == [given.name for given in model.graph.input]
    sizes = [d.dim_param or d.dim_value for d in model.graph.input[2].type.tensor_type.shape.dim]
    assert ["n", 3] == sizes


def test_names_of_results_survive():
    def f(x):
        score = x.sum()
        label = np.argmax(x)
        return score, label

    model = exported(f, args=(np.ones(3),))

    assert ["score", "label"] == [result.name for result in model.graph.output]


def test_names_can_be_given():
    model = exported(np.tanh, args=(X,), input_names=["image"], output_names=["score"])

    assert "image" == model.graph.input[0].name
    assert "score" == model.graph.output[0].name


def test_nodes_carry_the_source_line():
    model = exported(lambda x: np.sin(x) + 1, args=(X,))

    found = {p.key: p.value for p in model.graph.node[0].metadata_props}
    assert found["operation"] == "sin"
    assert found["source"].startswith("test_exported_models.py:")


def test_dynamic_axes_name_the_sizes_of_a_function():
    def f(x):
        return x.sum(axis=0) / x.shape[0]

    model = exported(f, args=(X,), dynamic_axes={"x": {0: "batch"}})

    assert "batch" == model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for rows in (1, 5):
        x = np.random.default_rng(0).normal(size=(rows, 3))
        np.testing.assert_allclose(results_of(model, [x])[0], f(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("axes", "options"),
    [
        ({"p.w": {0: "m"}, "x": [0]}, {}),
        (
            {"weight": {0: "m"}, "data": [0], "score": {0: "n"}},
            {"input_names": ["weight", "data"], "output_names": ["score"]},
        ),
    ],
)
def test_dynamic_axes_name_arrays_in_trees_and_given_names(axes, options):
    def f(p, x):
        return x @ p["w"].T

    model = exported(f, args=({"w": np.ones((2, 3))}, X), dynamic_axes=axes, **options)

    for rows, columns in ((1, 2), (4, 5)):
        w, x = np.ones((rows, 3)), np.arange(3.0 * columns).reshape(columns, 3)
        np.testing.assert_allclose(results_of(model, [w, x])[0], x @ w.T, rtol=1e-12)


class Moments(NamedTuple):
    mean: np.ndarray
    scale: np.ndarray


RESULTS = [
    (lambda x: {"logits": x * 2}, ["logits"]),
    (lambda x: {"x": x * 2, "a b": {"c": x[0]}}, ["a_b.c", "x_1"]),
    (lambda x: Moments(x.mean(), x * 2), ["mean", "scale"]),
    (lambda x: (x.sum(), {"w": [x * 2, x]}), ["output_0", "output_1.w.0", "output_1.w.1"]),
    (lambda x: ((x + 1, x * 2), x), ["output_0", "output_1", "x_1"]),
    (lambda x: {"a": x + 1, "b": None}, ["a"]),
]


@pytest.mark.parametrize(("f", "names"), RESULTS)
def test_keys_and_fields_of_results_are_their_names(f, names):
    program = lt.trace(f, X)

    for given in (program, lt.parse(str(program))):
        model = exported(given)
        assert names == [result.name for result in model.graph.output]
        assert_agrees(model, program, [X])


def test_keys_name_results_rather_than_variables():
    def f(x):
        hidden = np.tanh(x)
        return {"out": hidden * 2, "layer": hidden}

    forward, backward = lt.onnx.export_vjp(f, args=(X,))

    assert ["layer", "out"] == [result.name for result in forward.graph.output][:2]
    assert ["ct_layer", "ct_out"] == [given.name for given in backward.graph.input][:2]


def test_float64_and_float32_stay():
    for dtype in (np.float64, np.float32):
        x = X.astype(dtype)
        program = lt.trace(lambda x: np.exp(x) * 2.5 + 1, x)

        assert_agrees(exported(program), program, [x])


def test_a_result_that_is_an_input_an_array_or_there_twice():
    def f(x):
        y = x + 1
        return x, y, y, np.arange(3.0) + 0 * x[0]

    program = lt.trace(f, X)

    assert_agrees(exported(program), program, [X])


def test_all_operations_without_a_form_are_listed_with_lines():
    def f(x):
        return np.nextafter(x, 1.0) + np.spacing(x)

    with pytest.raises(lt.ExportError) as caught:
        exported(f, args=(X,))

    message = str(caught.value)
    assert "2 operations" in message
    assert "nextafter" in message and "spacing" in message
    assert message.count("test_exported_models.py:") >= 2


def test_a_model_fails_where_the_program_was_recorded_for_another_choice():
    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    model = exported(f, args=(X,))

    np.testing.assert_allclose(results_of(model, [X])[0], X * 2)
    with pytest.raises(Exception, match=r"recorded where this was True at test_exported_models.py"):
        results_of(model, [-X])


def test_a_model_is_written_to_a_file(tmp_path):
    path = tmp_path / "f.onnx"
    weights = np.random.default_rng(0).normal(size=(3, 400))
    exported(lambda x: x @ weights, path, args=(X,), external_data=True)

    assert ["f.onnx", "f.onnx.data"] == sorted(p.name for p in tmp_path.iterdir())
    session = onnxruntime.InferenceSession(str(path))
    np.testing.assert_allclose(session.run(None, {"x": X})[0], X @ weights, rtol=1e-12)
    onnx.checker.check_model(str(path), full_check=True)


def test_the_path_may_be_bytes(tmp_path):
    path = tmp_path / "f.onnx"
    exported(np.tanh, os.fsencode(path), args=(X,))

    with path.open("rb") as file:
        np.testing.assert_allclose(lt.onnx.load(file)(X), np.tanh(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass them"),
        ({"args": (X,), "opset": 9}, "opset 9"),
        ({"args": (X,), "input_names": ["a", "b"]}, "input_names"),
        ({"args": (X,), "dynamic_axes": {"z": {0: "n"}}}, "dynamic_axes names z"),
        ({"args": (X,), "dynamic_axes": {"x": {5: "n"}}}, "the entry 5: 'n'"),
        ({"args": (X,), "dynamic_axes": {"x": {0: 7}}}, "the entry 0: 7"),
        ({"args": (X,), "external_data": True}, "pass a path"),
        ({"path": (X,)}, "pass example arguments by name"),
        ({"args": (X,), "overrides": {"tanhh": max}}, "did you mean 'tanh'"),
        (
            {"args": (X,), "overrides": {"tanh": 3}},
            "the override of tanh must be a function, found 3",
        ),
        ({"args": (X,), "overrides": {"tanh": lambda g, b: None}}, "returned None, not the name"),
    ],
)
def test_wrong_options_say_what_to_do(options, message):
    with pytest.raises(lt.ExportError, match=message):
        exported(np.tanh if "dynamic_axes" not in options else lambda x: x, **options)


def test_nodes_that_no_result_needs_are_dropped():
    model = exported(lambda x: (x**2).sum(), args=(X,))

    assert ["Mul", "ReduceSum"] == kinds_of(model)


def test_a_convolutional_network_and_its_gradient_run_for_any_batch():
    def f(x, w):
        y = lt.nn.max_pool2d(lt.nn.relu(lt.nn.conv2d(x, w, padding=1)), 2)
        return (y * y).sum()

    kinds = [lt.ShapeDtype(shape, np.float32) for shape in (("n", 2, 4, 4), (3, 2, 3, 3))]
    program = lt.trace(f, *kinds)
    slope = lt.grad(program, argnums=(0, 1))
    models = [exported(p) for p in (program, slope)]

    assert {"Conv", "Relu", "MaxPool"} <= set(kinds_of(models[0]))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 2, 4, 4), (3, 2, 3, 3))]
    for model, p in zip(models, (program, slope), strict=True):
        assert_agrees(model, p, arrays)


def test_systems_of_equations_are_solved_for_any_batch():
    def f(x):
        a = x[:, :, None] * x[:, None, :] + np.eye(3)
        return np.linalg.solve(a, x[..., None])[..., 0]

    program = lt.trace(f, lt.ShapeDtype(("n", 3), float))
    model = exported(program)

    for rows in (1, 4):
        assert_agrees(model, program, [np.random.default_rng(rows).normal(size=(rows, 3))])


def test_a_transposed_square_matrix_times_a_vector():
    """onnxruntime forgets the transposition in MatMul of a vector."""
    program = lt.trace(lambda w, v: (w.T @ v, v @ w.T), np.zeros((3, 3)), np.zeros(3))
    rng = np.random.default_rng(0)

    assert_agrees(exported(program), program, [rng.normal(size=(3, 3)), rng.normal(size=3)])


def test_an_export_is_linear_in_the_number_of_binds():
    lines = {}
    for length in (SHORT, LONG):
        program = chain(length)
        with counted_lines() as count:
            model = exported(program)
        lines[length] = count[0] / length
        assert length <= len(model.graph.node)

    assert lines[LONG] < MAX_GROWTH * lines[SHORT]
