"""Random changes to ONNX models, as a damaged or hostile file has them."""

import random
from collections.abc import Callable

from onnx import AttributeProto, ModelProto, TensorProto

_SIZES = (0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**62, -(2**63), 10**9)
_NUMBERS = (0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"), 0.5, 1e9)
_TEXTS = ("", "x", "y", "..", "/etc/passwd", "NOTSET", "\u2028", "a" * 5000, "ij,jk->ik", "%s{}")


def mutated(model: ModelProto, seed: int) -> ModelProto:
    """The model with one to four random changes, mostly one."""
    draw, found = random.Random(seed), ModelProto()
    found.CopyFrom(model)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        draw.choice(_CHANGES)(draw, found)
    return found


def mutated_bytes(model: ModelProto, seed: int) -> bytes:
    """The bytes of a mutated model; of every fifth one some are damaged, cut or repeated."""
    draw = random.Random(seed)
    data = bytearray(mutated(model, seed).SerializeToString())
    if seed % 5 or not data:
        return bytes(data)
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(data))
        kind = draw.randrange(3)
        if kind == 0:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[place : place + draw.randint(1, 9)]
        else:
            data[place:place] = data[place : place + draw.randint(1, 30)]
        if not data:
            break
    return bytes(data)


# ---- parts of a model ----


def _graphs(model: ModelProto) -> list:
    """The graph of a model and the bodies in it."""
    found = [model.graph]
    for graph in found:
        found += [a.g for node in graph.node for a in node.attribute if a.type == a.GRAPH]
    return found


def _node(draw: random.Random, model: ModelProto):
    """A node, or None."""
    nodes = [node for graph in _graphs(model) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return draw.choice(nodes) if nodes else None


def _names(model: ModelProto) -> list[str]:
    """Names of values that occur."""
    found = ["", "nowhere"]
    for graph in _graphs(model):
        found += [x.name for x in (*graph.input, *graph.initializer)]
        found += [name for node in graph.node for name in node.output]
    return found


def _tensor(draw: random.Random, model: ModelProto):
    """A tensor, or None."""
    found = [tensor for graph in _graphs(model) for tensor in graph.initializer]
    for graph in _graphs(model):
        found += [a.t for node in graph.node for a in node.attribute if a.type == a.TENSOR]
    return draw.choice(found) if found else None


# ---- changes ----


def _rewire(draw: random.Random, model: ModelProto) -> None:
    """Another operand or result of a node: cycles, missing inputs, wrong types."""
    node = _node(draw, model)
    if node is None:
        return
    row = draw.choice([node.input, node.output])
    if row and draw.random() < 0.7:
        row[draw.randrange(len(row))] = draw.choice(_names(model))
    elif row and draw.random() < 0.5:
        del row[draw.randrange(len(row))]
    else:
        row.append(draw.choice(_names(model)))


def _reorder(draw: random.Random, model: ModelProto) -> None:
    """Nodes in another order, left out or twice."""
    graph = draw.choice(_graphs(model))
    nodes = list(graph.node)
    if not nodes:
        return
    place, kind = draw.randrange(len(nodes)), draw.randrange(3)
    node = nodes.pop(place)
    if kind:
        nodes.insert(draw.randint(0, len(nodes)), node)
    if kind == 2:
        nodes.append(node)
    nodes = [type(n).FromString(n.SerializeToString()) for n in nodes]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(draw: random.Random, model: ModelProto) -> None:
    """Another operator or domain."""
    node, other = _node(draw, model), _node(draw, model)
    if node is None:
        return
    if draw.random() < 0.8:
        node.op_type = other.op_type if draw.random() < 0.5 else draw.choice(_OPERATORS)
    else:
        node.domain = draw.choice(("", "ai.onnx", "ai.onnx.ml", "mine", "ai.onnx.training", "\0"))


def _attribute(draw: random.Random, model: ModelProto) -> None:
    """Another value, type or name of an attribute."""
    node = _node(draw, model)
    if node is None or not len(node.attribute):
        return
    attribute = draw.choice(list(node.attribute))
    kind = draw.randrange(6)
    if kind == 0:
        attribute.name = draw.choice(("axis", "pads", "to", "value", "body", attribute.name + "_"))
    elif kind == 1:
        attribute.type = draw.randint(0, 14)
    elif kind == 2:
        node.attribute.remove(attribute)
    elif attribute.type == AttributeProto.INT:
        attribute.i = draw.choice(_SIZES)
    elif attribute.type == AttributeProto.INTS:
        changed = [draw.choice(_SIZES) if draw.random() < 0.5 else n for n in attribute.ints]
        attribute.ints[:] = [*changed, *[1] * draw.choice((0, 0, 1, 30))]
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = draw.choice((*_NUMBERS[:2], *_NUMBERS[4:]))
    elif attribute.type == AttributeProto.FLOATS:
        attribute.floats[:] = [
            draw.choice((0.0, -1.0, float("nan"), 1e9)) for _ in range(draw.randint(0, 9))
        ]
    elif attribute.type == AttributeProto.STRING:
        attribute.s = draw.choice(_TEXTS).encode() + (b"\xff" if draw.random() < 0.1 else b"")
    elif attribute.type == AttributeProto.STRINGS:
        attribute.strings[:] = [draw.choice(_TEXTS).encode() for _ in attribute.strings]


def _weight(draw: random.Random, model: ModelProto) -> None:
    """Another shape, type, content or place of a tensor."""
    tensor = _tensor(draw, model)
    if tensor is None:
        return
    kind = draw.randrange(5)
    if kind == 0 and tensor.dims:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(_SIZES)
    elif kind == 1:
        tensor.dims.extend([draw.choice(_SIZES)] * draw.choice((1, 1, 40)))
    elif kind == 2:
        tensor.data_type = draw.randint(0, 30)
    elif kind == 3:
        tensor.data_location = TensorProto.EXTERNAL
        for key, texts in (
            ("location", _TEXTS),
            ("offset", ("0", "-1", "x")),
            ("length", ("8", "9" * 30)),
        ):
            tensor.external_data.add(key=key, value=draw.choice(texts))
    else:
        _numbers(draw, tensor)


def _numbers(draw: random.Random, tensor) -> None:
    """Extreme numbers in a tensor of integers, which may be a shape."""
    if tensor.int64_data:
        tensor.int64_data[draw.randrange(len(tensor.int64_data))] = draw.choice(_SIZES)
    elif tensor.data_type == TensorProto.INT64 and len(tensor.raw_data) >= 8:
        place = 8 * draw.randrange(len(tensor.raw_data) // 8)
        number = draw.choice(_SIZES).to_bytes(8, "little", signed=True)
        tensor.raw_data = tensor.raw_data[:place] + number + tensor.raw_data[place + 8 :]
    elif tensor.raw_data:
        tensor.raw_data = tensor.raw_data[: draw.randrange(len(tensor.raw_data))]


def _declared(draw: random.Random, model: ModelProto) -> None:
    """Another declared type or name of an input or output."""
    graph = draw.choice(_graphs(model))
    values = [*graph.input, *graph.output]
    if not values:
        return
    value, kind = draw.choice(values), draw.randrange(4)
    tensor = value.type.tensor_type
    if kind == 0:
        tensor.elem_type = draw.randint(0, 30)
    elif kind == 1:
        value.name = draw.choice(_names(model))
    elif kind == 2 and len(tensor.shape.dim):
        dim = draw.choice(list(tensor.shape.dim))
        if draw.random() < 0.5:
            dim.dim_value = draw.choice(_SIZES)
        else:
            dim.dim_param = draw.choice(("n", "m", "", "n + 1", "a b", "\0", "1"))
    else:
        for _ in range(draw.choice((1, 50))):
            tensor.shape.dim.add().dim_value = draw.choice(_SIZES)


def _version(draw: random.Random, model: ModelProto) -> None:
    """Another version of the operators, or a domain without one."""
    if model.opset_import and draw.random() < 0.8:
        draw.choice(list(model.opset_import)).version = draw.choice((*range(1, 30), *_SIZES))
    else:
        model.opset_import.add(
            domain=draw.choice(("mine", "", "ai.onnx.ml")), version=draw.randint(0, 5)
        )


def _nested(draw: random.Random, model: ModelProto) -> None:
    """The graph inside of one of its nodes, or a function with the name of an operator."""
    node = _node(draw, model)
    if node is None:
        return
    if draw.random() < 0.5:
        graph = type(model.graph).FromString(model.graph.SerializeToString())
        attribute = node.attribute.add(name=draw.choice(("body", "then_branch", "value")))
        attribute.type = AttributeProto.GRAPH
        attribute.g.CopyFrom(graph)
        return
    function = model.functions.add(name=node.op_type, domain=node.domain)
    function.input.extend(["a", "b"][: len(node.input)])
    function.output.extend(["c"])
    function.node.add(op_type=node.op_type, domain=node.domain, input=function.input, output=["c"])
    function.opset_import.extend(model.opset_import)


_OPERATORS = (
    *("Add", "MatMul", "Reshape", "Expand", "Tile", "Pad", "ConstantOfShape", "Range", "Gather"),
    *(
        "Conv",
        "ConvTranspose",
        "MaxPool",
        "Resize",
        "Einsum",
        "Loop",
        "Scan",
        "If",
        "LSTM",
        "Slice",
    ),
    *("Concat", "Split", "SplitToSequence", "Cast", "TopK", "NonZero", "OneHot", "EyeLike", "DFT"),
    *("ScatterND", "GridSample", "Attention", "LayerNormalization", "Col2Im", "Unsqueeze", "Shape"),
    *("TreeEnsembleRegressor", "LabelEncoder", "StringNormalizer", "RandomNormal", "Nothing", ""),
)
_CHANGES: tuple[Callable, ...] = (
    *(_rewire, _rewire, _reorder, _rename, _rename, _attribute, _attribute, _attribute, _weight),
    *(_weight, _declared, _version, _nested),
)
