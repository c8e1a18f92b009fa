"""``python -m benchmarks.onnx_models``: imported networks by a plan, beside other runtimes.

Each line has letir's time divided by onnxruntime's and by that of onnx's reference evaluator, for
single precision on one thread: the least CPU times of interleaved rounds. The first line has the
seconds of an export.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import letir as lt
from benchmarks.harness import pin_to_one_core
from benchmarks.peers import installed

ROUNDS, CALLS = 9, 3
_DRAW = np.random.default_rng(0)


def weight(*shape: int) -> np.ndarray:
    """A weight of standard deviation 1 / sqrt(its last size)."""
    return (_DRAW.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def model_of(nodes: list, weights: dict[str, np.ndarray], shape: tuple) -> onnx.ModelProto:
    """A model from x to y."""
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", float32, shape)],
        [helper.make_tensor_value_info("y", float32, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def perceptron(batch: int) -> onnx.ModelProto:
    """Layers of 784, 512, 512 and 10 units."""
    sizes, nodes, weights = (784, 512, 512, 10), [], {}
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        weights |= {f"w{i}": weight(n, m), f"b{i}": weight(m)}
        last = "y" if i == 2 else f"h{i}"
        given = "x" if i == 0 else f"r{i - 1}"
        nodes.append(helper.make_node("Gemm", [given, f"w{i}", f"b{i}"], [last]))
        if i < 2:
            nodes.append(helper.make_node("Relu", [last], [f"r{i}"]))
    return model_of(nodes, weights, (batch, 784))


def convolutional(batch: int) -> onnx.ModelProto:
    """Convolutions of 16 and 32 channels on pictures of 28 x 28, and a layer of 10 units."""
    make = helper.make_node
    nodes = [
        make("Conv", ["x", "k0", "b0"], ["c0"], pads=[1] * 4),
        make("Relu", ["c0"], ["r0"]),
        make("MaxPool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Conv", ["p0", "k1", "b1"], ["c1"], pads=[1] * 4),
        make("Relu", ["c1"], ["r1"]),
        make("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        make("Flatten", ["p1"], ["f"]),
        make("Gemm", ["f", "w", "b"], ["y"]),
    ]
    weights = {"k0": weight(16, 1, 3, 3), "b0": weight(16), "k1": weight(32, 16, 3, 3)}
    weights |= {"b1": weight(32), "w": weight(1568, 10), "b": weight(10)}
    return model_of(nodes, weights, (batch, 1, 28, 28))


def recurrent(batch: int, units: int = 64, steps: int = 50) -> onnx.ModelProto:
    """An LSTM."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=units)]
    weights = {"w": weight(1, 4 * units, units), "r": weight(1, 4 * units, units)}
    return model_of(nodes, {**weights, "b": weight(1, 8 * units)}, (steps, batch, units))


def networks() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Names and models."""
    yield "MLP 784-512-512-10, batch 64", perceptron(64)
    yield "LSTM of 64 units, 50 steps, batch 1", recurrent(1)
    yield "LSTM of 64 units, 50 steps, batch 8", recurrent(8)
    yield "LSTM of 128 units, 50 steps, batch 8", recurrent(8, 128)
    yield "LSTM of 256 units, 50 steps, batch 1", recurrent(1, 256)
    yield "LSTM of 256 units, 50 steps, batch 8", recurrent(8, 256)
    yield "CNN 16-32 on 28 x 28, batch 8", convolutional(8)


def seconds(run: Callable) -> float:
    """The CPU seconds of a call."""
    start = time.process_time()
    for _ in range(CALLS):
        run()
    return (time.process_time() - start) / CALLS


def ratios(model: onnx.ModelProto) -> tuple[float, float]:
    """letir's time divided by onnxruntime's and by the reference evaluator's."""
    onnxruntime = installed("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    x = weight(*[d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim])
    plan, reference = lt.compile(lt.onnx.load(model)), ReferenceEvaluator(model)
    runs = (
        lambda: plan(x),
        lambda: session.run(None, {"x": x}),
        lambda: reference.run(None, {"x": x}),
    )
    results = [np.asarray(run() if i == 0 else run()[0]) for i, run in enumerate(runs)]
    for result in results:
        np.testing.assert_allclose(result, results[0], 1e-3, 1e-4)
    times = [min(row) for row in zip(*[[*map(seconds, runs)] for _ in range(ROUNDS)], strict=True)]
    return times[0] / times[1], times[0] / times[2]


def export_seconds(count: int) -> float:
    """The CPU seconds of the export of a chain of operations."""

    def chain(x):
        for _ in range(count // 2):
            x = np.sin(x) * 1.001
        return x

    program = lt.trace(chain, np.ones(3))
    start = time.process_time()
    lt.onnx.export(program)
    return time.process_time() - start


if __name__ == "__main__":
    pin_to_one_core()
    lt.set_num_threads(1)
    print(f"export of 10,000 binds: {min(export_seconds(10_000) for _ in range(3)):.2f} s")
    for name, network in networks():
        print(
            "{}: {:.2f} x onnxruntime, {:.3f} x the reference evaluator".format(
                name, *ratios(network)
            )
        )
