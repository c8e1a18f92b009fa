"""Models of the domain ai.onnx.ml give onnxruntime's numbers, for any number of rows."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from scipy.special import ndtri

import letir as lt

ROWS = np.random.default_rng(1).standard_normal((7, 4)).astype(np.float32)
GAPS = ROWS.copy()
GAPS[2, 1] = GAPS[3, 0] = np.nan
NUMBERS = np.random.default_rng(2).standard_normal(12).tolist()
FLOATS, CLASSES = (TensorProto.FLOAT,), (TensorProto.INT64, TensorProto.FLOAT)


def forest(kind: str, classes: list[int], modes=("BRANCH_LEQ",), sign=None, depth=3) -> dict:
    """The attributes of three complete trees with scores of these classes."""
    draw = np.random.default_rng(3)
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    keys = [(tree, node) for tree in range(3) for node in range(total)]
    rows = [(t, n, c) for t, n in keys for c in classes if n >= inner]
    weights = draw.standard_normal(len(rows))
    is_inner = [node < inner for _, node in keys]
    return {
        "nodes_treeids": [tree for tree, _ in keys],
        "nodes_nodeids": [node for _, node in keys],
        "nodes_featureids": draw.integers(0, 4, len(keys)).tolist(),
        "nodes_values": draw.standard_normal(len(keys)).tolist(),
        "nodes_modes": [modes[n % len(modes)] if n < inner else "LEAF" for _, n in keys],
        "nodes_truenodeids": [2 * n + 1 if n < inner else 0 for _, n in keys],
        "nodes_falsenodeids": [2 * n + 2 if n < inner else 0 for _, n in keys],
        "nodes_missing_value_tracks_true": [int(x) for x in is_inner],
        f"{kind}_treeids": [t for t, _, _ in rows],
        f"{kind}_nodeids": [n for _, n, _ in rows],
        f"{kind}_ids": [c for _, _, c in rows],
        f"{kind}_weights": (np.abs(weights) / 6 if sign else weights).tolist(),
    }


TARGETS = forest("target", [0, 1])
LABELS = {"classlabels_int64s": [10, 20, 30]}
TWO = {"classlabels_int64s": [10, 20]}
LINES = {"coefficients": NUMBERS, "intercepts": [0.1, 0.2, 0.3]}
LINE_OF_ONE = {"coefficients": NUMBERS[:4], "intercepts": [0.1]}
LINE = {"coefficients": NUMBERS[:4], "intercepts": [0.1], "classlabels_ints": [4, 5]}
VECTORS = {"coefficients": NUMBERS[:3], "support_vectors": NUMBERS, "n_supports": 3, "rho": [0.2]}
VECTORS["kernel_params"] = [0.3, 0.1, 2.0]


def machine(count: int) -> dict:
    """The attributes of a support vector machine for two or three classes."""
    draw, sizes = np.random.default_rng(4), [2, 3, 2][:count]
    pairs, total = count * (count - 1) // 2, sum(sizes)
    return {
        "classlabels_ints": [7, 8, 9][:count],
        "vectors_per_class": sizes,
        "support_vectors": draw.standard_normal(4 * total).tolist(),
        "coefficients": draw.standard_normal((count - 1) * total).tolist(),
        "rho": draw.standard_normal(pairs).tolist(),
        "kernel_params": [0.3, 0.1, 2.0],
    }


MODELS = [
    *[
        (
            "TreeEnsembleRegressor",
            GAPS,
            FLOATS,
            {"n_targets": 2, "aggregate_function": f, **TARGETS},
        )
        for f in ("SUM", "AVERAGE", "MIN", "MAX")
    ],
    (
        "TreeEnsembleRegressor",
        ROWS,
        FLOATS,
        {"n_targets": 2, "base_values": [1.0, -1.0], **TARGETS},
    ),
    (
        *("TreeEnsembleRegressor", ROWS, FLOATS),
        {"n_targets": 1, **forest("target", [0], ("BRANCH_LT", "BRANCH_GTE"))},
    ),
    *[
        (
            *("TreeEnsembleClassifier", ROWS, CLASSES),
            {"post_transform": post, **LABELS, **forest("class", [0, 1, 2])},
        )
        for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    ],
    *[
        (
            *("TreeEnsembleClassifier", ROWS, CLASSES),
            {"post_transform": post, "base_values": [0.3], **TWO, **forest("class", [0])},
        )
        for post in ("NONE", "LOGISTIC")
    ],
    ("TreeEnsembleClassifier", ROWS, CLASSES, {**TWO, **forest("class", [0], sign=1)}),
    ("LinearRegressor", ROWS, FLOATS, {"targets": 3, **LINES}),
    *[
        (
            *("LinearClassifier", ROWS, CLASSES),
            {"post_transform": post, "classlabels_ints": [4, 5, 6], **LINES},
        )
        for post in ("NONE", "LOGISTIC", "SOFTMAX")
    ],
    *[
        ("LinearClassifier", ROWS, CLASSES, {"post_transform": post, **LINE})
        for post in ("NONE", "LOGISTIC")
    ],
    *[
        ("SVMRegressor", ROWS, FLOATS, {"kernel_type": kernel, **VECTORS})
        for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")
    ],
    *[
        ("SVMClassifier", ROWS, CLASSES, {"kernel_type": kernel, **machine(count), **others})
        for count in (2, 3)
        for kernel, others in [  # onnxruntime returns 1 - s, s for SOFTMAX of two classes
            *[(kernel, {}) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")],
            *[("RBF", {"post_transform": post}) for post in ("LOGISTIC", "SOFTMAX")[: count - 1]],
            ("RBF", {"prob_a": [-1.2, -0.8, -2.0], "prob_b": [0.1, -0.2, 0.3]}),
        ]
    ],
    (
        *("SVMClassifier", ROWS, CLASSES),
        {
            **{"coefficients": NUMBERS, "rho": [0.2], "classlabels_ints": [3, 4, 5]},
            **{"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]},
        },
    ),
    ("Scaler", ROWS, FLOATS, {"offset": NUMBERS[:4], "scale": NUMBERS[4:8]}),
    *[("Normalizer", ROWS, FLOATS, {"norm": norm}) for norm in ("L1", "L2")],
    ("Normalizer", np.abs(ROWS), FLOATS, {"norm": "MAX"}),  # onnxruntime's maximum has a sign
    ("FeatureVectorizer", ROWS, FLOATS, {"inputdimensions": [4]}),
    ("Binarizer", ROWS, FLOATS, {"threshold": 0.1}),
    (
        *("Imputer", GAPS, FLOATS),
        {"imputed_value_floats": NUMBERS[:4], "replaced_value_float": float("nan")},
    ),
    ("OneHotEncoder", np.array([[1, 2], [3, 1]]), FLOATS, {"cats_int64s": [1, 2, 3]}),
    (
        *("LabelEncoder", np.array([[1, 2], [3, 1]]), FLOATS),
        {"keys_int64s": [1, 3], "values_floats": [0.5, 0.25]},
    ),
]


@pytest.mark.parametrize(("name", "x", "kinds", "attrs"), MODELS)
def test_a_model_gives_the_numbers_of_onnxruntime(name, x, kinds, attrs):
    names = [f"y{i}" for i in range(len(kinds))]
    graph = helper.make_graph(
        [helper.make_node(name, ["x"], names, domain="ai.onnx.ml", **attrs)],
        "g",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["n", None])],
        [helper.make_tensor_value_info(*pair, None) for pair in zip(names, kinds, strict=True)],
    )
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = x.shape[1]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )

    found = lt.onnx.load(model)(x)

    found = found if isinstance(found, tuple) else (found,)
    for y, expected in zip(found, session.run(None, {"x": x}), strict=True):
        assert y.dtype == expected.dtype
        np.testing.assert_allclose(y, expected, 1e-4, 1e-5)


def model_of(name: str, kinds=FLOATS, **attrs):
    """A model of one node, for seven rows of four numbers."""
    names = [f"y{i}" for i in range(len(kinds))]
    graph = helper.make_graph(
        [helper.make_node(name, ["x"], names, domain="ai.onnx.ml", **attrs)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7, 4])],
        [helper.make_tensor_value_info(*pair, None) for pair in zip(names, kinds, strict=True)],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def test_labels_that_are_strings_become_their_positions():
    named = {**LINES, "classlabels_strings": ["a", "b", "c"]}
    labels, scores = lt.onnx.load(model_of("LinearClassifier", CLASSES, **named))(ROWS)

    np.testing.assert_array_equal(labels, scores.argmax(axis=1))


def test_scores_of_a_probit_model_are_quantiles():
    lines = {**LINES, "coefficients": [0.0] * 12, "classlabels_ints": [1, 2, 3]}
    model = model_of("LinearClassifier", CLASSES, post_transform="PROBIT", **lines)

    np.testing.assert_allclose(lt.onnx.load(model)(ROWS)[1][0], ndtri([0.1, 0.2, 0.3]), 1e-6)


@pytest.mark.parametrize(
    "name, kinds, attrs, words",
    [
        ("LabelEncoder", FLOATS, {"keys_strings": ["a"], "values_floats": [1.0]}, "strings"),
        ("OneHotEncoder", FLOATS, {"cats_strings": ["a"]}, "strings are not supported"),
        ("LinearRegressor", FLOATS, {**LINE_OF_ONE, "post_transform": "X"}, "post_transform 'X'"),
        ("LinearClassifier", CLASSES, LINES, "a classifier has no class labels"),
    ],
)
def test_an_operator_that_cannot_be_a_program_is_named(name, kinds, attrs, words):
    with pytest.raises(lt.LetirError, match=words):
        lt.onnx.load(model_of(name, kinds, **attrs))


def test_the_derivative_of_a_linear_model_is_its_weights():
    graph = helper.make_graph(
        [helper.make_node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", **LINE_OF_ONE)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    f = lt.onnx.load(helper.make_model(graph, opset_imports=imports))

    slope = lt.grad(lambda x: f(x).sum())(ROWS[:1])

    np.testing.assert_allclose(slope[0], NUMBERS[:4], 1e-6)


@pytest.mark.parametrize("children", [[1, 0], [0, 1]])
def test_a_tree_without_root_is_refused(children):
    attrs = {
        **{"nodes_treeids": [0, 0], "nodes_nodeids": [0, 1], "nodes_featureids": [0, 0]},
        **{"nodes_values": [0.0, 0.0], "nodes_modes": ["BRANCH_LEQ"] * 2},
        **{"nodes_truenodeids": children, "nodes_falsenodeids": children, "target_weights": [1.0]},
        **{"target_treeids": [0], "target_nodeids": [1], "target_ids": [0], "n_targets": 1},
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attrs)
    graph = helper.make_graph(
        [node],
        "f",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 2))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 1))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)])

    with pytest.raises(lt.ParseError, match="a tree are in a cycle"):
        lt.onnx.load(model)
