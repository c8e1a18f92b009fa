"""letir.onnx.export_vjp: forward and backward passes as two models, or as one."""

import numpy as np
import pytest

import letir as lt
from tests.onnx.running import exported, results_of


def network(x, w, b):
    """A layer and the labels that it gives; ``h`` is the user's name of a result."""
    h = np.tanh(x @ w + b)
    return h, np.exp(h).sum(axis=1), h.argmax(axis=1)


KINDS = [lt.ShapeDtype(shape, float) for shape in (("n", 3), (3, 2), (2,))]


def arrays_of(rows):
    """Inputs and cotangents."""
    rng = np.random.default_rng(rows)
    return [rng.normal(size=s) for s in ((rows, 3), (3, 2), (2,))], [
        rng.normal(size=s) for s in ((rows, 2), (rows,))
    ]


def named_run(model, values):
    """The results of a model by name, from a dictionary that has its inputs."""
    found = results_of(model, [values[given.name] for given in model.graph.input])
    return dict(zip([result.name for result in model.graph.output], found, strict=True))


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("policy", ["keep_all", "recompute_cheap", "min_bytes"])
def test_forward_and_backward_are_two_models_that_share_names(rows, policy):
    program = lt.trace(network, *KINDS)
    forward, backward = lt.onnx.export_vjp(program, policy=policy)
    (x, w, b), cts = arrays_of(rows)

    found = named_run(forward, {"x": x, "w": w, "b": b})
    values = {**found, "x": x, "w": w, "b": b, "ct_h": cts[0], "ct_output_1": cts[1]}
    slopes = named_run(backward, values)

    wanted, pull = lt.vjp(lambda *xs: network(*xs)[:2], x, w, b)
    for name, y in zip(("h", "output_1"), wanted, strict=True):
        np.testing.assert_allclose(found[name], y, rtol=1e-12)
    for name, ct in zip(("ct_x", "ct_w", "ct_b"), pull(tuple(cts)), strict=True):
        np.testing.assert_allclose(slopes[name], ct, rtol=1e-12, atol=1e-13)


def test_forward_and_backward_are_one_model():
    gradient = lt.differentiate(lt.trace(lambda *xs: network(*xs)[0], *KINDS))
    model = exported(gradient)
    (x, w, b), (ct, _) = arrays_of(4)

    found = results_of(model, [x, w, b, ct])

    wanted, pull = lt.vjp(lambda *xs: network(*xs)[0], x, w, b)
    for y, z in zip(found, (wanted, *pull(ct)), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12, atol=1e-13)


def test_the_single_model_has_the_names_of_the_two_models():
    def scores(x, w, *, shift):
        return {"h": np.tanh(x @ w) + shift, "label": (x @ w).argmax(axis=1)}

    kinds = *KINDS[:2], lt.ShapeDtype((), float)
    model = exported(lt.differentiate(lt.trace(scores, *kinds[:2], shift=kinds[2])))
    (x, w, _), (ct, _) = arrays_of(4)

    values = {"x": x, "w": w, "shift": np.array(0.5), "ct_h": ct}
    found = named_run(model, values)

    wanted, pull = lt.vjp(lambda x, w: scores(x, w, shift=0.5)["h"], x, w)
    assert list(values) != [given.name for given in model.graph.input]  # ct_h is before shift
    assert ["h", "label", "ct_x", "ct_w", "ct_shift"] == list(found)
    for name, y in zip(("h", "ct_x", "ct_w"), (wanted, *pull(ct)), strict=True):
        np.testing.assert_allclose(found[name], y, rtol=1e-12, atol=1e-13)


def test_the_one_model_is_given_names():
    gradient = lt.differentiate(lt.trace(np.sin, np.ones(3)))

    model = lt.onnx.export(gradient, input_names=["a", "b"], output_names=["c", "d"])

    assert ["a", "b"] == [given.name for given in model.graph.input]
    assert ["c", "d"] == [result.name for result in model.graph.output]


def test_inputs_that_require_grad_are_chosen_and_files_are_written(tmp_path):
    args, _ = arrays_of(2)
    lt.onnx.export_vjp(
        network, tmp_path / "net.onnx", args=args, requires_grad=[False, True, False]
    )

    assert ["net.backward.onnx", "net.forward.onnx"] == sorted(p.name for p in tmp_path.iterdir())
    df = lt.onnx.load(tmp_path / "net.backward.onnx")
    assert 1 == len(df.ret.args)


def test_an_input_without_influence_has_a_cotangent_of_zeros():
    _, backward = lt.onnx.export_vjp(lambda x, y: np.sin(x), args=(np.ones(2), np.ones(3)))

    slopes = named_run(backward, {"ct_output": np.ones(2), "x": np.zeros(2)})

    assert ([1, 1], [0, 0, 0]) == (slopes["ct_x"].tolist(), slopes["ct_y"].tolist())
