"""Models as programs: names, weights, symbolic sizes, derivatives, files."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import letir as lt

HEAD = '<ir_version: 9, opset_import: ["" : 21, "mine" : 1]> '
PERCEPTRON = """f (float[n, 3] x) => (float[n, 2] y)
<float[3, 2] W = {1, 2, 3, 4, 5, 6}, float[2] b = {1, -1}> {
  h_0 = MatMul(x, W)
  "/layer/pre" = Add(h_0, b)
  y = Tanh("/layer/pre")
}"""


def model_of(text: str) -> onnx.ModelProto:
    """The model of a graph in ONNX's text format."""
    return parser.parse_model(HEAD + text)


def perceptron() -> onnx.ModelProto:
    """One layer, in which a name is no Python name."""
    model = model_of(PERCEPTRON.replace('"/layer/pre"', "pre"))
    for node in model.graph.node:
        names = [node.input, node.output]
        for row in names:
            row[:] = ["/layer/pre" if name == "pre" else name for name in row]
    return model


def test_a_program_is_printed_with_the_names_of_the_model():
    text = str(lt.onnx.load(perceptron()))

    assert "%0:x: float32[n, 3]" in text
    assert ":h_0: float32[n, 2] = matmul(%0" in text
    assert ":layer_pre: float32[n, 2] = add(" in text
    assert "# f:3: Tanh\n" in text  # the third node, which has no name


def test_a_program_is_printed_with_the_names_of_nodes():
    model = perceptron()
    for node, name in zip(model.graph.node, ("/layer/MatMul", "a; b\n# c", ""), strict=True):
        node.name = name

    f = lt.onnx.load(model)

    comments = [
        line.partition("#")[2] for line in str(f).splitlines()[1:-2] if "constant" not in line
    ]
    assert comments == [" f:1: /layer/MatMul", " f:2: a__b___c", " f:3: Tanh"]
    assert lt.dumps(lt.parse(lt.dumps(f))) == lt.dumps(f)


def test_params_inputs_makes_weights_parameters():
    f = lt.onnx.load(perceptron(), params="inputs")
    x, weights = np.ones((4, 3), np.float32), lt.onnx.weights(perceptron())

    assert [param.name for param in f.params] == ["x", *weights]
    assert np.array_equal(f(x, *weights.values()), lt.onnx.load(perceptron())(x))


def test_a_weight_that_decides_about_a_shape_stays_a_constant():
    f = lt.onnx.load(
        model_of(
            "f (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) "
            "<float[4] s = {1, 1, 2, 2}> { y = Resize(x, , s) }"
        ),
        params="inputs",
    )

    assert len(f.params) == 1
    assert f(np.ones((1, 1, 2, 2), np.float32)).shape == (1, 1, 4, 4)


def test_derivatives_with_respect_to_inputs_and_weights():
    f = lt.onnx.load(perceptron(), params="inputs")
    arrays = [np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)]
    arrays += lt.onnx.weights(perceptron()).values()

    slopes = lt.grad(lambda *a: f(*a).sum(), argnums=(0, 1, 2))(*arrays)

    x, w, b = [a.astype(np.float64) for a in arrays]
    inner = 1 - np.tanh(x @ w + b) ** 2
    for slope, expected in zip(slopes, (inner @ w.T, x.T @ inner, inner.sum(axis=0)), strict=True):
        np.testing.assert_allclose(slope, expected, 1e-4, 1e-6)


def test_a_program_is_compiled_saved_and_loaded(tmp_path):
    f = lt.onnx.load(perceptron())
    lt.save(f, tmp_path / "f.letir")
    x = np.ones((2, 3), np.float32)

    np.testing.assert_allclose(lt.compile(f)(x), f(x), 1e-6)
    assert lt.load(tmp_path / "f.letir") == f


def test_remainders_of_symbolic_sizes_are_sizes():
    f = lt.onnx.load(
        model_of("""f (float[n, 4] x) => (float[a, b] y) <int64[2] three = {3, 3}> {
          s = Shape(x)
          rest = Mod(s, three)
          y = ConstantOfShape(rest)
        }""")
    )

    assert (2, 1) == f(np.ones((5, 4), np.float32)).shape
    assert (0, 1) == f(np.ones((6, 4), np.float32)).shape


def test_shape_computations_fold_away():
    f = lt.onnx.load(
        model_of("""f (float[n, 2, m] x) => (float[n, k] y)
        <int64[1] last = {-1}, int64 zero = {0}> {
          s = Shape(x)
          first = Gather <axis = 0> (s, zero)
          axes = Constant<value_ints = [0]>()
          first_row = Unsqueeze(first, axes)
          shape = Concat <axis = 0> (first_row, last)
          y = Reshape(x, shape)
        }""")
    )

    assert not {bind.op.name for bind in f.binds} & {"index", "take", "squeeze", "cast"}
    assert f(np.ones((3, 2, 4), np.float32)).shape == (3, 8)
    assert f(np.ones((1, 2, 5), np.float32)).shape == (1, 10)


def test_rows_of_a_constant_are_gathered_by_an_input():
    f = lt.onnx.load(
        model_of(
            "f (int64[n] i) => (float[n, 2] y) <float[3, 2] W = {1, 2, 3, 4, 5, 6}> "
            "{ y = Gather(W, i) }"
        )
    )

    assert f(np.array([2, 0])).tolist() == [[5, 6], [1, 2]]


def test_a_split_of_a_symbolic_size_has_a_shorter_last_part():
    f = lt.onnx.load(
        model_of("f (float[n] x) => (float[a] y, float[b] z) { y, z = Split<num_outputs=2>(x) }")
    )

    for n in (4, 5):
        assert [len(part) for part in f(np.ones(n, np.float32))] == [(n + 1) // 2, n // 2]


def test_rounding_up_in_pooling_needs_the_size():
    model = model_of(
        "f (float[1, 1, n] x) => (float[1, 1, m] y) "
        "{ y = MaxPool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x) }"
    )

    with pytest.raises(lt.ShapeError, match="sizes="):
        lt.onnx.load(model)
    assert lt.onnx.load(model, sizes={"n": 5})(np.ones((1, 1, 5), np.float32)).shape == (1, 1, 3)


def test_named_sizes_get_numbers():
    f = lt.onnx.load(perceptron(), sizes={"n": 4})

    assert f.params[0].type.shape == (4, 3)
    with pytest.raises(lt.ParseError, match="no input of the model has the size m"):
        lt.onnx.load(perceptron(), sizes={"m": 4})


def test_numbers_that_decide_about_a_shape_need_examples():
    model = model_of("f (float[4] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }")
    x, s = np.arange(4, dtype=np.float32), np.array([2, 2])

    with pytest.raises(lt.TraceError, match="pass example inputs"):
        lt.onnx.load(model)
    f = lt.onnx.load(model, args=(x, s))
    assert f(x, s).shape == (2, 2)
    with pytest.raises(lt.GuardError):
        f(x, np.array([4, 1]))


def test_a_branch_is_chosen_when_the_program_runs():
    f = lt.onnx.load(
        model_of("""f (float[2] x, bool c) => (float[2] y) {
          y = If (c) <
            then_branch = g () => (float[2] a) { a = Exp(x) },
            else_branch = h () => (float[2] b) { b = Neg(x) }
          >
        }""")
    )
    x = np.array([1, 2], np.float32)

    np.testing.assert_allclose(f(x, np.array(True)), np.exp(x), 1e-6)
    np.testing.assert_allclose(f(x, np.array(False)), -x)


def test_a_loop_is_one_bind():
    f = lt.onnx.load(
        model_of("""f (float[2] x) => (float[2] y, float[k, 2] ys) <int64 n = {1000}> {
          y, ys = Loop (n, , x) <body = g (int64 i, bool c, float[2] v)
            => (bool c, float[2] w, float[2] row) { w = Mul(v, v) row = Identity(v) }>
        }""")
    )

    assert len(f.binds) < 5
    last, rows = f(np.array([1, 0], np.float32))
    assert last.tolist() == [1, 0]
    assert rows.shape == (1000, 2)


def test_a_scan_over_a_symbolic_number_of_rows_is_one_bind():
    model = model_of("""f (float[t, n] x, float[n] h) => (float[n] y, float[n, t] z) {
      y, z = Scan(h, x) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
        body = b (float[n] s, float[n] v) => (float[n] next, float[n] out) {
          a = Add(s, v) next = Tanh(a) out = Mul(next, s)
        }>
    }""")
    f = lt.onnx.load(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )

    assert 1 == [bind.op.name for bind in f.binds].count("scan")
    for t, n in ((1, 2), (5, 3)):
        x, h = np.linspace(-1, 1, t * n, dtype=np.float32).reshape(t, n), np.ones(n, np.float32)
        for found, expected in zip(f(x, h), session.run(None, {"x": x, "h": h}), strict=True):
            np.testing.assert_allclose(found, expected, 1e-6, 1e-6)


@pytest.mark.parametrize("element", ["string", "bfloat16", "int4"])
def test_inputs_without_arrays_are_refused_by_the_name_of_their_type(element):
    model = model_of(f"f ({element}[2] x) => ({element}[2] y) {{ y = Identity(x) }}")

    with pytest.raises(lt.DTypeError, match=f"the input 'x' has elements of type {element}"):
        lt.onnx.load(model)


def test_functions_of_the_model_are_inlined():
    model = parser.parse_model(
        HEAD
        + """f (float[2] x) => (float[2] y) { y = mine.twice <by = 3.0> (x) }
        <domain: "mine", opset_import: ["" : 21]>
        twice <by> (a) => (b) { c = Constant<value_float: float = @by>() b = Mul(a, c) }"""
    )

    assert lt.onnx.load(model)(np.ones(2, np.float32)).tolist() == [3, 3]


def test_external_data_next_to_the_model(tmp_path):
    model = perceptron()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), tmp_path / "m.onnx", **options)
    x = np.ones((1, 3), np.float32)

    assert (tmp_path / "w.bin").exists()
    assert np.array_equal(lt.onnx.load(tmp_path / "m.onnx")(x), lt.onnx.load(model)(x))


def test_a_model_is_loaded_from_bytes_and_from_a_path(tmp_path):
    data = perceptron().SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)

    assert lt.onnx.load(data) == lt.onnx.load(str(tmp_path / "m.onnx"))


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_maxima_in_the_bins_of_regions(scale):
    model = model_of(
        "f (float[2, 3, 7, 6] x, float[r, 5] rois) => (float[r, 3, 2, 3] y) "
        f"{{ y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = {scale}>(x, rois) }}"
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 6)).astype(np.float32)
    rois = np.array([[0, 0, 0, 5, 6], [1, 1, 2, 4, 3], [1, 3, 5, 9, 9], [0, 2, 2, 2, 2]], "f4")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, {"x": x, "rois": rois})

    f = lt.onnx.load(model)

    assert np.array_equal(f(x, rois), expected)
    slope = lt.grad(lambda x: f(x, rois).sum())(x)
    assert slope.sum() == np.count_nonzero(expected)


def test_a_try_statement_around_load_is_no_part_of_the_program():
    model = model_of("f (float[3] x, int64[k] i) => (float[k] y) { y = Gather(x, i) }")

    try:
        f = lt.onnx.load(model)
    except lt.LetirError:
        raise AssertionError from None

    assert ["take"] == [bind.op.name for bind in f.binds]
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        f(np.ones(3, np.float32), np.array([7]))
