"""Forms of operators that few models have give onnxruntime's numbers, and wrong ones are named."""

import re

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import letir as lt
from tests.each_sample import in_one_test

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 3 - 1
IMAGE = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
WHOLE = np.arange(12, dtype=np.int32).reshape(3, 4) - 5


def loaded(text: str, opset: int = 21):
    """(the program of a graph in ONNX's text format, the model)."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> ' + text)
    return lt.onnx.load(model), model


MODELS = {
    "an integer to a known negative power": (
        "f (int32[n, 4] x) => (int32[n, 4] y) <int32[4] e = {-1, 0, 1, 2}> { y = Pow(x, e) }",
        (np.abs(WHOLE) + 1,),
    ),
    "an integer to a power in floating point": (
        "f (int32[n, 4] x, float[4] e) => (int32[n, 4] y) { y = Pow(x, e) }",
        (WHOLE, np.array([0, 1, 2, 3], np.float32)),
    ),
    "numbers in a text": (
        'f (float[n, 2] x) => (float[n, 2] y) <string[2] s = {"1.5", "-2"}> '
        "{ t = Cast<to = 1>(s) y = Add(x, t) }",
        (X[:, :2],),
    ),
    "whole numbers of known ones": (
        "f (int64[n, 2] x) => (int64[n, 2] y) <float[2] s = {1.5, -2.5}> "
        "{ t = Cast<to = 7>(s) y = Add(x, t) }",
        (WHOLE[:, :2].astype(np.int64),),
    ),
    "a pad of booleans": (
        "f (bool[3, 4] x) => (bool[m, k] y) <int64[4] p = {0, 1, 1, -1}> { y = Pad(x, p) }",
        (WHOLE > 0,),
    ),
    "a slice back from before the first": (
        "f (float[3, 4] x) => (float[m, k] y) <int64[1] a = {-9}, int64[1] b = {-9}, "
        "int64[1] c = {0}, int64[1] d = {-1}> { y = Slice(x, a, b, c, d) }",
        (X,),
    ),
    "a shape and an input": (
        "f (float[n, 4] x, int64[1] k) => (int64[3] y) { s = Shape(x) y = Concat<axis = 0>(s, k) }",
        (X, np.array([7])),
    ),
    "numbers up to a size": (
        "f (float[n, 4] x) => (int64[n] y) <int64[1] i = {0}, int64 a = {0}, int64 d = {1}, "
        "int64[1] axes = {0}> { s = Shape(x) t = Gather(s, i) n = Squeeze(t, axes) "
        "y = Range(a, n, d) }",
        (X,),
    ),
    "ones on a diagonal": (
        "f (float[3, 4] x) => (float[3, 4] y) { e = EyeLike<k = 1>(x) y = Mul(x, e) }",
        (X,),
    ),
    "a loop without iterations": (
        "f (float[4] x) => (float[4] y, float[m, 4] rows) <int64 n = {0}, bool go = {1}> "
        "{ y, rows = Loop<body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w, "
        "float[4] r) { d = Identity(c) w = Neg(v) r = Identity(w) }>(n, go, x) }",
        (X[0],),
    ),
    "one result of a resize of integers": (
        "f (int8[1, 1, 3, 4] x) => (int8[a, b, c, d] y) <float[4] s = {1, 1, 2, 1.5}> "
        '{ y = Resize<mode = "linear">(x, , s) }',
        (WHOLE.astype(np.int8)[None, None] * 20,),
    ),
    "a resize to a size that the program has": (
        "f (float[n, 4] x) => (float[n, 8] y) <int64[1] i = {0}, int64[1] w = {8}> "
        "{ s = Shape(x) t = Gather(s, i) u = Concat<axis = 0>(t, w) y = Resize(x, , , u) }",
        (X,),
    ),
    "regions with samples of their own": (
        "f (float[1, 2, 5, 6] x) => (float[r, 2, 2, 2] y) "
        "<float[2, 4] b = {0, 0, 5, 4, 1, 1, 2, 2}, int64[2] i = {0, 0}> "
        "{ y = RoiAlign<output_height = 2, output_width = 2>(x, b, i) }",
        (IMAGE,),
    ),
    "regions with the same samples": (
        "f (float[1, 2, 5, 6] x) => (float[r, 2, 2, 2] y) "
        "<float[2, 4] b = {0, 0, 3, 3, 1, 1, 4, 4}, int64[2] i = {0, 0}> "
        '{ y = RoiAlign<output_height = 2, output_width = 2, mode = "avg">(x, b, i) }',
        (IMAGE,),
    ),
    "a grid that reflects at one row": (
        "f (float[1, 2, 1, 6] x, float[1, 2, 2, 2] g) => (float[1, 2, 2, 2] y) "
        '{ y = GridSample<padding_mode = "reflection", align_corners = 1>(x, g) }',
        (IMAGE[:, :, :1], np.linspace(-1.5, 1.5, 8, dtype=np.float32).reshape(1, 2, 2, 2)),
    ),
    "a transform along the first axis": (
        "f (float[1, 6, 1] x) => (float[1, m, 2] y) { y = DFT<onesided = 1>(x) }",
        (IMAGE[:, 0, 0, :, None], 17),
    ),
}


@in_one_test
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_the_numbers_of_onnxruntime(name):
    text, inputs = MODELS[name]
    opset = inputs[-1] if type(inputs[-1]) is int else 21
    inputs = [x for x in inputs if type(x) is not int]
    program, model = loaded(text, opset)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {x.name: value for x, value in zip(session.get_inputs(), inputs, strict=True)}

    found = program(*inputs)

    expected = session.run(None, given)
    for x, y in zip(expected, found if isinstance(found, tuple) else (found,), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, np.shape(y))
        np.testing.assert_allclose(y, x, 1e-5, 1e-6)


@pytest.mark.parametrize(
    "x, opset, precision", [(WHOLE, 13, ""), (X, 23, "<precision = 1>")], ids=["integers", "single"]
)
def test_numbers_are_quantized(x, opset, precision):
    """In forms that onnxruntime does not have."""
    kind = "int32" if x is WHOLE else "float"
    program, _ = loaded(
        f"f ({kind}[n, 4] x) => (uint8[n, 4] y) <float s = {{0.5}}, uint8 z = {{7}}> "
        f"{{ y = QuantizeLinear{precision}(x, s, z) }}",
        opset,
    )

    expected = np.clip(np.rint(x / np.float32(0.5)) + 7, 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(program(x), expected, strict=True)


FLOATS = "f (float[3, 4] x) => (float[a, b] y) "
WRONG = {
    "QuantizeLinear": (
        FLOATS + "<float[3, 1] s = {1, 1, 1}> { y = QuantizeLinear(x, s) }",
        "a scale of shape (3, 1) does not fit the axis 1",
    ),
    "QuantizeLinear to": (
        "f (float[3, 4] x) => (float8e4m3fn[3, 4] y) <float s = {0.5}> "
        "{ y = QuantizeLinear<output_dtype = 17>(x, s) }",
        "float8_e4m3fn is not supported",
    ),
    "Squeeze": (
        FLOATS + "<int64[1] a = {1}> { y = Squeeze(x, a) }",
        "the axes (1,) of (3, 4) do not all have size 1",
    ),
    "Split": (
        "f (float[3, 4] x) => (float[a, b] y, float[c, d] z) <int64[2] s = {1, 1}> "
        "{ y, z = Split(x, s) }",
        "parts of lengths [1, 1] do not add up to the 3 elements of the axis",
    ),
    "Split into": (
        "f (float[3, 4] x) => (float[a, b] y, float[c, d] z) { y, z = Split<num_outputs = 3>(x) }",
        "the node names 2 results, but num_outputs is 3",
    ),
    "Pad": (FLOATS + "<int64[2] p = {1, 1}> { y = Pad(x, p) }", "2 numbers for 2 axes"),
    "Reshape": (
        FLOATS + "<int64[3] s = {3, 4, 0}> { y = Reshape(x, s) }",
        "keeps the size of an axis that the input of shape (3, 4) does not have",
    ),
    "Constant": (FLOATS + "{ c = Constant() y = Add(x, c) }", "exactly one attribute"),
    "Expand": (
        FLOATS + "<int64[2] s = {3, 5}> { y = Expand(x, s) }",
        "(3, 4) does not broadcast with the shape (3, 5)",
    ),
    "Range": (
        FLOATS + "<float a = {0}, float b = {4}, float d = {0}> { r = Range(a, b, d) "
        "y = Add(x, r) }",
        "the step is 0",
    ),
    "Resize": (FLOATS + "{ y = Resize(x) }", "the node has neither scales nor sizes"),
    "Resize by": (
        FLOATS + "<float[1] s = {2}> { y = Resize(x, , s) }",
        "the scales [2.0] do not fit 2 axes",
    ),
    "Resize of": (
        FLOATS + '<float[2] s = {2, 2}> { y = Resize<mode = "linear", '
        'coordinate_transformation_mode = "other">(x, , s) }',
        "no coordinate_transformation_mode 'other'",
    ),
    "Resize to": (
        FLOATS + '<float[2] s = {2, 2}> { y = Resize<nearest_mode = "other">(x, , s) }',
        "no nearest_mode 'other'",
    ),
    "Resize in": (
        FLOATS + "<float[2] s = {2, 2}> { y = Resize<coordinate_transformation_mode = "
        '"tf_crop_and_resize">(x, , s) }',
        "needs the input roi",
    ),
    "Resize where": (
        'f (float[n, 4] x) => (float[a, b] y) <float[2] s = {2, 2}> { y = Resize<mode = "linear">'
        "(x, , s) }",
        "the size n of axis 0 is not known",
    ),
    "GridSample": (
        "f (float[1, 2, 5, 6] x, float[1, 2, 2, 3] g) => (float[a, b, c, d] y) "
        "{ y = GridSample(x, g) }",
        "x of shape (1, 2, 5, 6) and coordinates of shape (1, 2, 2, 3) do not fit",
    ),
    "SequenceAt": (
        FLOATS + "<int64 i = {2}> { s = SequenceConstruct(x, x) y = SequenceAt(s, i) }",
        "the position 2 is outside of a sequence of 2 elements",
    ),
    "SplitToSequence": (
        FLOATS + "<int64 n = {0}, int64 i = {0}> { s = SplitToSequence(x, n) "
        "y = SequenceAt(s, i) }",
        "the length of the parts must be positive, found 0",
    ),
    "a choice by a size": (
        "f (float[n, 4] x) => (float[n, 4] y) <int64[1] i = {0}, int64[1] k = {5}> "
        "{ s = Shape(x) t = Gather(s, i) c = Equal(t, k) y = If<then_branch = a () => (float[n, 4] "
        "p) { p = Neg(x) }, else_branch = b () => (float[n, 4] q) { q = Identity(x) }>(c) }",
        "the model asks whether the size n is 5, which is not known",
    ),
}


@in_one_test
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_form_is_named(name):
    text, words = WRONG[name]

    with pytest.raises(lt.LetirError, match=re.escape(words)):
        loaded(text)
