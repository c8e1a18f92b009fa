"""Sequences and optionals: they fold away, or are lists of arrays at the program's edge."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import letir as lt
from tests.each_sample import in_one_test

HEAD = '<ir_version: 9, opset_import: ["" : 21]> '
X = np.arange(6, dtype=np.float32).reshape(3, 2)
FOLDING = {
    "at": "y = SequenceAt(s, one)",
    "insert": "t = SequenceInsert(s, x, one) y = ConcatFromSequence<axis = 0>(t)",
    "erase": "t = SequenceErase(s, one) y = ConcatFromSequence<axis = 1, new_axis = 1>(t)",
    "length": "y = SequenceLength(s)",
    "split": "t = SplitToSequence<axis = 0>(x, parts) y = SequenceAt(t, one)",
    "split to rows": "t = SplitToSequence<axis = 0, keepdims = 0>(x) y = SequenceAt(t, one)",
    "empty": "t = SequenceEmpty() u = SequenceInsert(t, e) y = SequenceAt(u, zero)",
    "optional": "o = Optional(e) y = OptionalGetElement(o)",
    "optional sequence": "o = Optional(s) t = OptionalGetElement(o) y = SequenceAt(t, one)",
    "has element": "o = Optional(e) y = OptionalHasElement(o)",
    "map": """t = SequenceMap(s)<body = g (float[3, 2] v) => (float[3, 2] w) { w = Neg(v) }>
        y = ConcatFromSequence<axis = 0>(t)""",
    "collected in a loop": """y_s = Loop(three, , s)<body =
        g (int64 i, bool c, seq(float[3, 2]) v) => (bool c, seq(float[3, 2]) w)
        { r = Gather<axis = 0>(x, i) q = Expand(r, shape) w = SequenceInsert(v, q) }>
        y = ConcatFromSequence<axis = 0>(y_s)""",
    "read in a loop": """y = Loop(two, , x)<body =
        g (int64 i, bool c, float[3, 2] v) => (bool c, float[3, 2] w)
        { r = SequenceAt(s, i) w = Add(v, r) }>""",
    "of a choice": """p = ReduceSum<keepdims = 0>(x) q = Greater(p, small)
        t = If(q)<then_branch = g () => (seq(float[3, 2]) a) { a = SequenceConstruct(x, e) },
                  else_branch = h () => (seq(float[3, 2]) b) { b = SequenceConstruct(e, x) }>
        y = SequenceAt(t, zero)""",
}
CONSTANTS = """int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3},
int64[2] parts = {1, 2}, int64[2] shape = {3, 2}, float small = {0.5}"""


def model_of(text: str, declared: str = "float[3, 2] x"):
    """The model of some nodes."""
    kinds = {"length": "int64 y", "has element": "bool y"}
    result = next((kind for name, kind in kinds.items() if FOLDING.get(name) == text), "float y")
    result = result if result != "float y" else "float[a, b] y"
    return parser.parse_model(f"{HEAD} f ({declared}) => ({result}) <{CONSTANTS}> {{ {text} }}")


@in_one_test
@pytest.mark.parametrize("name", FOLDING)
def test_sequences_and_optionals_inside_of_a_model_fold_away(name):
    model = model_of(FOLDING[name])
    model.graph.node.insert(0, parser.parse_node("e = Exp(x)"))
    model.graph.node.insert(1, parser.parse_node("s = SequenceConstruct(x, e)"))
    if "new_axis" in FOLDING[name] or "rows" in name:
        del model.graph.output[0].type.tensor_type.shape.dim[:]
        model.graph.output[0].type.tensor_type.ClearField("shape")

    f = lt.onnx.load(model)

    for x in (X, -X):
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(f(x), expected, 1e-6)
        again = lt.onnx.load(lt.onnx.export(f))
        np.testing.assert_allclose(again(x), expected, 1e-6)


def test_an_element_at_a_position_that_is_an_input():
    model = model_of(
        "e = Exp(x) s = SequenceConstruct(x, e) y = SequenceAt(s, i)", "float[3, 2] x, int64 i"
    )

    f = lt.onnx.load(model)

    np.testing.assert_allclose(f(X, np.array(1)), np.exp(X), 1e-6)
    assert np.array_equal(f(X, np.array(-2)), X)
    with pytest.raises(IndexError):
        f(X, np.array(2))


def test_an_input_that_is_a_sequence_is_a_list_of_arrays():
    model = model_of("y = ConcatFromSequence<axis = 0>(x)", "seq(float[n, 2]) x")

    f = lt.onnx.load(model, sequence_lengths={"x": 3})

    assert ["x.0", "x.1", "x.2"] == [param.name for param in f.params]
    assert np.array_equal(f([X, X + 1, X + 2]), np.concatenate([X, X + 1, X + 2]))
    slope = lt.grad(lambda x: (f(x) ** 2).sum())([X, X + 1, X])
    assert np.array_equal(slope[1], 2 * (X + 1))
    other = lt.onnx.load(model, args=([X, X[:1]],))
    assert other([X, X[:1]]).shape == (4, 2)


def test_a_result_that_is_a_sequence_is_a_list_of_arrays():
    text = f"{HEAD} f (float[n, 2] x) => (seq(float[n, 2]) y) "
    model = parser.parse_model(text + "{ e = Neg(x) y = SequenceConstruct(x, e) }")

    found = lt.onnx.load(model)(X)

    assert [X.tolist(), (-X).tolist()] == [y.tolist() for y in found]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"load\(model, sequence_lengths=\{'x': 3\}\)"),
        ({"sequence_lengths": {"x": -1}}, "the length of the sequence 'x' is -1"),
        ({"sequence_lengths": {"x": 10**9}}, "not a number from 0 to 10000"),
        ({"sequence_lengths": {"z": 2, "x": 2}}, "has the sequence z\n  its sequences are x"),
        ({"sequence_lengths": {"x": 1}, "sizes": {"m": 2}}, "no input of the model has the size m"),
        ({"args": (X,)}, "pass a list of arrays"),
        ({"args": ([X.astype(float)],)}, "has dtype float32, and the example float64"),
    ],
)
def test_wrong_lengths_say_what_to_do(options, message):
    model = model_of("y = ConcatFromSequence<axis = 0>(x)", "seq(float[n, 2]) x")

    with pytest.raises(lt.LetirError, match=message):
        lt.onnx.load(model, **options)
