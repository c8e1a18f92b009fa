"""Damaged and hostile models are refused quickly, and touch nothing."""

import contextlib
import os
import time
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import letir as lt
from tests.each_sample import in_one_test

node = helper.make_node


def model_of(nodes, initializers=(), opset=21, shape=(2, 2), functions=()) -> onnx.ModelProto:
    """A model with the input x and the output y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        list(initializers),
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


def integers(name: str, *numbers: int, shape=None):
    """An initializer of int64."""
    return helper.make_tensor(name, TensorProto.INT64, shape or [len(numbers)], numbers)


def tensor(dims, data=b"", kind=TensorProto.FLOAT):
    """An initializer w whose shape need not fit its data."""
    made = TensorProto(name="w", data_type=kind, raw_data=data)
    made.dims.extend(dims)
    return made


def function(name: str, *nodes):
    """A function of the domain mine, from a to b."""
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", name, ["a"], ["b"], nodes, imports)


def doubling(start) -> list:
    """Nodes that join an array with itself, sixty times."""
    steps = [node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(60)]
    return [start, *steps, node("Identity", ["c60"], ["y"])]


LAUGHS = [function("f0", node("Add", ["a", "a"], ["b"]))] + [
    function(
        f"f{i}",
        node(f"f{i - 1}", ["a"], ["t"], domain="mine"),
        node(f"f{i - 1}", ["t"], ["b"], domain="mine"),
    )
    for i in range(1, 30)
]
ADD_W = [node("Add", ["x", "w"], ["y"])]
MODELS = {
    "a cycle": model_of([node("Add", ["x", "b"], ["a"]), node("Add", ["a", "x"], ["b"])]),
    "neither an input": model_of([node("Add", ["x", "nowhere"], ["y"])]),
    "is computed twice": model_of([node("Relu", ["x"], ["y"]), node("Exp", ["x"], ["y"])]),
    "same type parameter": model_of([node("Add", ["x", "s"], ["y"])], [integers("s", 1)]),
    "type tensor.int64., which is not": model_of([node("Tanh", ["s"], ["y"])], [integers("s", 1)]),
    "takes 2 to 2 inputs": model_of([node("Add", ["x"], ["y"])]),
    "has no attribute 'wrong'": model_of([node("Relu", ["x"], ["y"], wrong=1)]),
    "attribute 'axis' must have the type": model_of([node("Softmax", ["x"], ["y"], axis=1.5)]),
    "'keepdims' must be one of 0, 1, found 2": model_of(
        [node("ReduceSum", ["x"], ["y"], keepdims=2)]
    ),
    "must be one of 'none', 'tanh'": model_of([node("Gelu", ["x"], ["y"], approximate="exact")]),
    "TfIdfVectorizer: ngram_counts": model_of(
        [
            node(
                *("TfIdfVectorizer", ["s"], ["y"]),
                **{"max_gram_length": 1, "max_skip_count": 2**62, "min_gram_length": 1},
                **{"mode": "TF", "ngram_counts": [0], "ngram_indexes": [2**62]},
                pool_int64s=[1],
            )
        ],
        [integers("s", 1, 2)],
    ),
    "the required attribute 'axis' is missing": model_of([node("Concat", ["x"], ["y"])]),
    "the node names 2": model_of([node("Relu", ["x"], ["y", "z"])]),
    "not an operator": model_of([node("Nothing", ["x"], ["y"])]),
    "version 999": model_of([node("Relu", ["x"], ["y"])], opset=999),
    "does not declare": model_of([node("Relu", ["x"], ["y"], domain="other")]),
    "size -2": model_of(ADD_W, shape=(-2,)),
    "elements along an axis": model_of(ADD_W, shape=(10**9, 10**9)),
    "its data only": model_of(ADD_W, [tensor([10**7, 10**7], b"1234")]),
    "element type 77": model_of(ADD_W, [tensor([2], b"12345678", 77)]),
    "do not fit its shape": model_of(ADD_W, [tensor([3], b"12345678")]),
    "stored twice": model_of(ADD_W, [tensor([1], b"1234"), tensor([1], b"1234")]),
    "ConstantOfShape: the model asks": model_of(
        [node("ConstantOfShape", ["s"], ["y"])], [integers("s", 10**6, 10**6)]
    ),
    "Range: the model asks": model_of(
        [node("Range", ["a", "b", "c"], ["y"])],
        [integers(n, v, shape=[]) for n, v in (("a", 0), ("b", 2**60), ("c", 1))],
    ),
    "Tile: the model asks": model_of([node("Tile", ["s", "s"], ["y"])], [integers("s", 2**50)]),
    "'c25' has the shape": model_of(doubling(node("Constant", [], ["c0"], value_floats=[1.0] * 4))),
    "'c27' has the shape": model_of(doubling(node("Flatten", ["x"], ["c0"])), shape=(1, 1)),
    "too many nodes": model_of([node("f29", ["x"], ["y"], domain="mine")], functions=LAUGHS),
    "cannot call itself": model_of(
        [node("f", ["x"], ["y"], domain="mine")],
        functions=[function("f", node("f", ["a"], ["b"], domain="mine"))],
    ),
}


@in_one_test
@pytest.mark.parametrize("message", MODELS)
def test_a_hostile_model_is_refused_quickly(message):
    start = time.process_time()

    with pytest.raises(lt.LetirError, match=message):
        lt.onnx.load(MODELS[message])
    assert time.process_time() - start < 10


LARGE = {  # arrays of 2 ** 26 elements and more, of a few numbers in the model
    "ConstantOfShape": model_of(
        [node("ConstantOfShape", ["s"], ["c"]), node("MatMul", ["c", "c"], ["y"])],
        [integers("s", 1 << 13, 1 << 13)],
    ),
    "Tile": model_of([node("Tile", ["s", "s"], ["y"])], [integers("s", 1 << 25)]),
    "Expand": model_of(
        [node("Expand", ["o", "s"], ["a"]), node("Add", ["a", "a"], ["y"])],
        [integers("s", 1 << 13, 1 << 13), integers("o", 1)],
    ),
    "Range": model_of(
        [node("Range", ["a", "b", "c"], ["y"])],
        [integers(n, v, shape=[]) for n, v in (("a", 0), ("b", 1 << 25), ("c", 1))],
    ),
    "OneHot": model_of(
        [node("OneHot", ["s", "n", "v"], ["y"])],
        [integers("s", 1, 2), integers("n", 1 << 25, shape=[]), integers("v", 0, 1)],
    ),
    "Pad": model_of(
        [node("Pad", ["s", "p"], ["y"])], [integers("s", 1, 2), integers("p", 1 << 25, 0)]
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_arrays_are_made_when_the_program_runs(kind):
    tracemalloc.start()
    try:
        program = lt.onnx.load(LARGE[kind])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(program)
    assert peak < 1 << 27


def body_of(nodes, inputs: str, outputs: str):
    """A body; a letter names a value and its type: i is an integer, c a bool, others are arrays."""
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "d": TensorProto.BOOL}
    rows = [
        [
            helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None)
            for name in x
        ]
        for x in (inputs, outputs)
    ]
    return helper.make_graph(nodes, "body", *rows)


ADD_LARGEST = [node("ReduceMax", ["q"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])]


def loop_over(body, *inputs: str, **attrs):
    """A model of a loop over constants, whose result is added to x."""
    kind = "Scan" if attrs else "Loop"
    weights = [integers("n", 1 << 62, shape=[]), integers("m", 1 << 20, shape=[])]
    weights += [helper.make_tensor("t", TensorProto.BOOL, [], [True])]
    rows = helper.make_tensor("r", TensorProto.FLOAT, [1 << 18, 1, 1], bytes(1 << 20), raw=True)
    weights += [helper.make_tensor("z", TensorProto.FLOAT, [1, 1], [1.0]), rows]
    nodes = [node(kind, inputs, ["q"], body=body, **attrs), *ADD_LARGEST]
    return model_of(nodes, weights)


GOES_ON, TWICE = node("Identity", ["c"], ["d"]), node("Add", ["v", "v"], ["w"])
LOOP = body_of([GOES_ON, TWICE], "icv", "dw")
INNER = body_of([GOES_ON, node("Loop", ["m", "", "v"], ["w"], body=LOOP)], "icv", "dw")
WEIGHT = helper.make_tensor("w", TensorProto.FLOAT, [1, 4, 1], [1.0] * 4)
LONG = {  # loops over constants, which would be computed for hours
    "a counted loop": loop_over(LOOP, "n", "", "z"),
    "an endless loop": loop_over(LOOP, "", "t", "z"),
    "an endless loop without a condition": loop_over(LOOP, "", "", "z"),
    "a loop that tests its counter": loop_over(
        body_of([node("Less", ["i", "n"], ["d"]), TWICE], "icv", "dw"), "", "t", "z"
    ),
    "a loop without a state": loop_over(
        body_of([GOES_ON, node("Identity", ["z"], ["w"])], "ic", "dw"), "m", ""
    ),
    "loops in a loop": loop_over(INNER, "m", "", "z"),
    "a scan": loop_over(
        body_of([node("Add", ["v", "r"], ["w"])], "vr", "w"), "z", "r", num_scan_inputs=1
    ),
    "a recurrent network": model_of(
        [node("LSTM", ["r", "w", "w"], ["q"]), *ADD_LARGEST],
        [WEIGHT, *loop_over(LOOP, "n", "", "z").graph.initializer],
    ),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_loops_over_constants_are_left_to_the_program(kind):
    start = time.process_time()

    program = lt.onnx.load(LONG[kind])

    assert {"scan", "while_loop"} & {bind.op.name for bind in program.binds}
    assert time.process_time() - start < 10


def test_loops_are_not_run_for_hours_on_example_inputs():
    model = model_of(
        [node("Loop", ["n", "", "x"], ["y"], body=LOOP)], [integers("n", 1 << 62, shape=[])]
    )

    with pytest.raises(lt.ParseError, match="load the model without args"):
        lt.onnx.load(model, args=(np.ones((2, 2), np.float32),))


@pytest.mark.parametrize(
    ("dims", "place", "message"),
    [([1 << 28], 0, "too large"), ([1 << 20] * 3, 0, "too large"), ([9], 1 << 40, "do not fit")],
)
def test_sparse_arrays_of_few_values(dims, place, message):
    model = model_of(ADD_W)
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, integers("places", place), dims)
    model.graph.sparse_initializer.append(sparse)

    with pytest.raises(lt.ParseError, match=message):
        lt.onnx.load(model)


@pytest.mark.parametrize("data", [b"", b"not a model", bytes(100), os.urandom(200)])
def test_bytes_that_are_not_a_model(data):
    with pytest.raises(lt.LetirError):
        lt.onnx.load(data)


def test_a_damaged_model_is_refused_or_read():
    data = bytearray(model_of(ADD_W, [tensor([2, 2], bytes(16))]).SerializeToString())
    for place in range(len(data)):
        for bit in (1, 64):
            changed = bytearray(data)
            changed[place] ^= bit
            with contextlib.suppress(lt.LetirError):
                lt.onnx.load(bytes(changed))


def external_model(location: str, **entries) -> onnx.ModelProto:
    """A model whose weight is in another file."""
    weight = tensor([2])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    return model_of(ADD_W, [weight], shape=(2,))


@pytest.mark.parametrize(
    "location",
    [
        *("../secret.bin", "/etc/passwd", "sub/../../secret.bin", "link.bin", "folder/secret.bin"),
        *("", "pipe", "missing.bin", "C:\\secret.bin", "..\\secret.bin", "w.bin\0", "."),
    ],
)
def test_external_data_are_read_from_the_models_folder_only(location, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "m.onnx").write_bytes(external_model(location).SerializeToString())

    with pytest.raises(lt.ParseError, match="the data of 'w'"):
        lt.onnx.load(folder / "m.onnx")


@pytest.mark.parametrize("entries", [{"offset": 4}, {"offset": -4}, {"length": 10**15}])
def test_external_data_beyond_the_end_of_their_file(entries, tmp_path):
    np.ones(2, np.float32).tofile(tmp_path / "w.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(external_model("w.bin", **entries).SerializeToString())

    with pytest.raises(lt.ParseError, match="which has 8"):
        lt.onnx.load(path)


def test_external_data_of_a_model_that_is_not_a_file():
    with pytest.raises(lt.ParseError, match="not read from a file"):
        lt.onnx.load(external_model("w.bin").SerializeToString())


def test_a_device_is_not_read():
    with pytest.raises(lt.ParseError, match="regular file"):
        lt.onnx.load("/dev/zero")
