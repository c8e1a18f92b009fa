"""Layers are one node where ONNX has them, for batches of any size."""

import numpy as np
import pytest

import letir as lt
from letir import nn
from tests.each_sample import in_one_test
from tests.onnx.running import assert_agrees, exported, kinds_of

HEADS, PLAIN = [("n", 2, 4, 8)] * 3, [("n", 4, 8)] * 3
LAYERS = [
    ("Softmax", nn.softmax, [("n", 5)]),
    ("LogSoftmax", nn.log_softmax, [("n", 5)]),
    ("Gelu", nn.gelu, [("n", 5)]),
    ("Gemm", nn.linear, [("n", 5), (3, 5), (3,)]),
    ("LayerNormalization", nn.layer_norm, [("n", 5), (5,), (5,)]),
    ("RMSNormalization", nn.rms_norm, [("n", 5), (5,)]),
    (
        "RMSNormalization",
        lambda *xs: nn.rms_norm(*xs, axis=(1, 2), eps=2.0**-10),
        [("n", 5, 4), (5, 4)],
    ),
    (
        "BatchNormalization",
        lambda x, *rest: nn.batch_norm(x, *rest, train=False)[0],
        [("n", 3, 4, 4), (3,), (3,), (3,), (3,)],
    ),
    (
        "GroupNormalization",
        lambda *xs: nn.group_norm(*xs, groups=2),
        [("n", 4, 3, 3), (4,), (4,)],
    ),
    ("Conv", nn.conv1d, [("n", 2, 5), (3, 2, 3)]),
    ("Conv", lambda x, w: nn.conv2d(x, w, stride=2, padding=1), [("n", 2, 5, 5), (3, 2, 3, 3)]),
    ("ConvTranspose", nn.conv_transpose2d, [("n", 2, 5, 5), (2, 3, 3, 3)]),
    ("MaxPool", lambda x: nn.max_pool2d(x, 2), [("n", 2, 6, 6)]),
    ("AveragePool", lambda x: nn.avg_pool2d(x, 3, stride=1, padding=1), [("n", 2, 6, 6)]),
    ("Einsum", lambda x, y: np.einsum("ij,kj->ik", x, y), [("n", 5), ("m", 5)]),
    ("Attention", nn.attention, HEADS),
    ("Attention", lambda *xs: nn.attention(*xs, causal=True, scale=0.5), HEADS),
    ("Attention", nn.attention, [*HEADS, (4, 4)]),
    ("Attention", lambda *xs: nn.attention(*xs, causal=True), PLAIN),
]
DOUBLE = ("Softmax", "LogSoftmax", "Gemm", "Conv", "ConvTranspose", "MaxPool", "AveragePool")


def arrays_of(shapes, dtype):
    """Positive numbers, with 3 for the named sizes."""
    rng = np.random.default_rng(0)
    sizes = [[3 if type(n) is str else n for n in shape] for shape in shapes]
    return [np.abs(rng.normal(size=shape)).astype(dtype) for shape in sizes]


@in_one_test
@pytest.mark.parametrize(("kind", "layer", "shapes"), LAYERS)
def test_a_layer_is_one_node(kind, layer, shapes):
    for dtype in (np.float32, np.float64):
        program = lt.trace(layer, *[lt.ShapeDtype(shape, dtype) for shape in shapes])
        model = exported(program)

        if dtype == np.float32 or kind in (*DOUBLE, "Einsum"):
            assert [kind] == [k for k in kinds_of(model) if k not in ("Unsqueeze", "Squeeze")]
        assert_agrees(model, program, arrays_of(shapes, dtype))


def test_attention_without_keys_is_zero_in_the_model_too():
    mask = np.tril(np.ones((4, 4), bool), -1)  # the first query attends to no key
    program = lt.trace(
        lambda q, k, v: nn.attention(q, k, v, mask),
        *[lt.ShapeDtype(shape, np.float32) for shape in HEADS],
    )

    assert_agrees(exported(program), program, arrays_of(HEADS, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kinds", "f"),
    [
        (["Relu"], lambda x: np.maximum(x, 0)),
        (["Relu"], lambda x: np.maximum(0.0, x)),
        (["Clip"], lambda x: np.clip(x, -1, 2)),
        (["Max", "IsNaN", "Where"], lambda x: np.maximum(x, 0.5)),
        (["Min", "IsNaN", "Where"], lambda x: np.clip(x, None, 2)),
    ],
)
def test_bounds_that_are_numbers_need_few_nodes(kinds, f, dtype):
    program = lt.trace(f, lt.ShapeDtype(("n",), dtype))
    model = exported(program)

    assert kinds == kinds_of(model)
    for n in (1, 9):
        x = np.resize(np.array([np.nan, -3, 3, np.inf, -np.inf, 0.25], dtype), n)
        assert_agrees(model, program, [x])


def test_a_lower_bound_above_the_upper_one_loses():
    program = lt.trace(lambda x: np.clip(x, 2, 1), lt.ShapeDtype(("n",), float))

    assert_agrees(exported(program), program, [np.array([0.0, 1.5, 3.0, np.nan])])
