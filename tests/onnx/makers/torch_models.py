"""Modules of PyTorch in double precision as ONNX models, with PyTorch's values and gradients.

python -m tests.onnx.makers.torch_models writes tests/data/onnx_models/torch.npz. Needs torch and
onnxscript.
"""

import io
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

from tests.onnx.makers.archives import Made, write


class Calls(nn.Module):
    """A module whose forward is a function of its parts and the inputs."""

    def __init__(self, forward: Callable, **parts: nn.Module):
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.call = forward

    def forward(self, *inputs):
        return self.call(self.parts, *inputs)


class Positions(nn.Module):
    """Learned positions added to embedded tokens."""

    def __init__(self, count: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(count, width))

    def forward(self, x):
        return x + self.table[: x.shape[1]]


def perceptron() -> nn.Module:
    return nn.Sequential(
        *(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 8, bias=False), nn.LayerNorm(8)),
        *(nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3), nn.LogSoftmax(dim=-1)),
    )


def convolutional() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2), nn.SiLU(), nn.MaxPool2d(2)),
        *(nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), nn.ELU()),
        *(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2)),
    )


def recurrent(kind: type, **options) -> nn.Module:
    return Calls(
        lambda parts, x: parts["head"](parts["layers"](x)[0]),
        layers=kind(3, 4, batch_first=True, **options),
        head=nn.Linear(8 if options.get("bidirectional") else 4, 2),
    )


def attention() -> nn.Module:
    return Calls(
        lambda parts, x, y: parts["mixed"](x, y, y, need_weights=True),
        mixed=nn.MultiheadAttention(6, 2, batch_first=True),
    )


def causal(parts, x):
    """Attention of each position to those before it."""
    query, key, value = parts["project"](x).unflatten(-1, (3, 2, 4)).unbind(2)
    heads = [part.transpose(1, 2) for part in (query, key, value)]
    found = F.scaled_dot_product_attention(*heads, is_causal=True)
    return parts["out"](found.transpose(1, 2).flatten(2))


def language(parts, tokens, targets):
    """The loss of a decoder of one layer on sequences of tokens."""
    x = parts["positions"](parts["tokens"](tokens))
    x = x + causal(parts, parts["norm"](x))
    scores = parts["last"](x)
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def normalized(parts, x):
    """Layers of normalisation one after the other."""
    for name in ("group", "instance", "batch"):
        x = parts[name](x)
    return F.normalize(parts["layer"](x), dim=1) + F.rms_norm(x, (5,), eps=1e-5)


def activated(x):
    """The sum of activations, each of another shift."""
    functions = (
        *(F.relu, F.elu, F.selu, F.celu, F.silu, F.mish, F.softplus, F.softsign, F.hardswish),
        *(F.hardsigmoid, F.leaky_relu, F.logsigmoid, F.relu6, F.tanhshrink, F.gelu, torch.erf),
        *(lambda x: F.gelu(x, approximate="tanh"), lambda x: F.softmin(x, dim=1), F.hardtanh),
    )
    return sum((n + 1) * f(x + 0.037 * n) for n, f in enumerate(functions))


def resized(x, grid):
    """Images of other sizes, and samples between their elements."""
    larger = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    cubic = F.interpolate(x, size=(7, 5), mode="bicubic", align_corners=True)
    near = F.pixel_shuffle(F.interpolate(x, scale_factor=2.0, mode="nearest"), 2)
    seen = F.grid_sample(larger, grid, mode="bilinear", align_corners=False)
    return seen, cubic, near, F.pad(larger, (1, 2, 0, 1), mode="reflect")


def indexed(x, index):
    """Elements that are gathered, scattered, sorted and added up."""
    rows = torch.gather(x, 1, index)
    added = torch.zeros_like(x).scatter_add(1, index, rows * rows)
    best = torch.topk(x, 2, dim=1).values
    upper = torch.triu(x) + torch.cumsum(x, dim=1) + torch.flip(x, (0,)) + torch.roll(x, 1, 1)
    return added, best, torch.where(upper > 0, upper, upper.exp()), torch.sort(x, 1).values


def algebra(x, y):
    """Products, norms and reductions."""
    z = torch.einsum("bij,bjk->bik", x, y) + torch.baddbmm(x, x, y)
    parts = (
        z.var(1),
        z.std(2),
        z.norm(dim=1),
        z.prod(2),
        z.logsumexp(1),
        z.amax(2),
        z.mean((1, 2)),
    )
    return parts, torch.outer(x[0, 0], y[1, 1]), torch.tril(z) ** 2, torch.clamp(z, -1, 1)


def other_convolutions(parts, line, volume):
    """Convolutions over lines and volumes, with strides, norms and learned slopes."""
    a = F.max_pool1d(parts["slope"](parts["line"](line)), 2, ceil_mode=True)
    b = F.avg_pool3d(parts["volume"](volume), 2, padding=1, count_include_pad=False)
    return a, b, F.lp_pool1d(line.abs(), 2.0, 2), F.unfold(volume[:, 0], 2)


def modules() -> Iterator[tuple[str, nn.Module, tuple]]:
    """(name, module, inputs)."""
    draw = torch.randn
    x, image, series = draw(4, 6), draw(2, 2, 8, 8), draw(3, 5, 3)
    yield "perceptron", perceptron(), (x,)
    yield "convolutional", convolutional(), (image,)
    yield "lstm", recurrent(nn.LSTM), (series,)
    yield "lstm_both_ways", recurrent(nn.LSTM, num_layers=2, bidirectional=True), (series,)
    yield "gru", recurrent(nn.GRU, num_layers=2), (series,)
    yield "rnn", recurrent(nn.RNN, nonlinearity="relu", bidirectional=True), (series,)
    yield "attention", attention(), (draw(2, 4, 6), draw(2, 5, 6))
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=True)
    yield "transformer", layer, (draw(2, 4, 6),)
    parts = {"project": nn.Linear(8, 24), "out": nn.Linear(8, 8)}
    yield "causal", Calls(causal, **parts), (draw(2, 5, 8),)
    parts = {"project": nn.Linear(8, 24), "out": nn.Linear(8, 8)}
    parts |= {"tokens": nn.Embedding(7, 8), "positions": Positions(6, 8)}
    parts |= {"norm": nn.LayerNorm(8), "last": nn.Linear(8, 7)}
    tokens = torch.randint(0, 7, (2, 6))
    yield "language", Calls(language, **parts), (tokens, tokens.roll(1, 1))
    parts = {"group": nn.GroupNorm(2, 4), "instance": nn.InstanceNorm1d(4, affine=True)}
    parts |= {"batch": nn.BatchNorm1d(4), "layer": nn.LayerNorm((4, 5))}
    yield "normalized", Calls(normalized, **parts), (draw(3, 4, 5),)
    yield "activated", Calls(lambda parts, x: activated(x)), (2 * x,)
    grid = torch.rand(2, 3, 3, 2) * 2.2 - 1.1
    yield "resized", Calls(lambda parts, *a: resized(*a)), (draw(2, 4, 4, 3), grid)
    index = torch.randint(0, 6, (4, 6))
    yield "indexed", Calls(lambda parts, *a: indexed(*a)), (x, index)
    yield "algebra", Calls(lambda parts, *a: algebra(*a)), (draw(3, 4, 4), draw(3, 4, 4))
    parts = {"line": nn.Conv1d(2, 3, 3, stride=2), "slope": nn.PReLU(3)}
    parts |= {"volume": nn.Conv3d(2, 2, 2)}
    inputs = draw(2, 2, 10), draw(2, 2, 4, 5, 4)
    yield "other_convolutions", Calls(other_convolutions, **parts), inputs


def exported(module: nn.Module, inputs: tuple, shapes: tuple | None = None) -> onnx.ModelProto:
    """The module as a model, without the texts that say where it was made."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, inputs, dynamo=True, verbose=False, dynamic_shapes=shapes
        )
    program.save(file)
    model = onnx.ModelProto.FromString(file.getvalue())
    nodes = [*model.graph.node, *[node for f in model.functions for node in f.node]]
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    for part in (model, model.graph, *nodes, *values, *model.graph.initializer, *model.functions):
        del part.metadata_props[:]
        part.doc_string = ""
    del model.graph.value_info[:]
    return model


def made(seed: int) -> Iterator[Made]:
    """The models with PyTorch's results, and gradients of weighted sums of these.

    Weights that the exporter has changed, by transposing them for example, have no gradient.
    """
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    for name, module, given in modules():
        module.eval()
        for parameter in module.parameters():  # equal ones would become one in the model
            parameter.data += 0.1 * torch.randn_like(parameter)
        model = exported(module, given)
        stored = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
        inputs = [x.detach().clone() for x in given]
        floating = [x.requires_grad_() for x in inputs if x.dtype.is_floating_point]
        results = torch.utils._pytree.tree_leaves(module(*inputs))
        weights = [torch.cos(torch.arange(y.numel()) + 0.3).reshape(y.shape) for y in results]
        sum((y * w).sum() for y, w in zip(results, weights, strict=True)).backward()
        yield Made(
            name,
            model.SerializeToString(),
            [x.detach().numpy() for x in inputs],
            [y.detach().numpy() for y in results],
            [x.grad.numpy() for x in floating],
            {
                name: parameter.grad.numpy()
                for name, parameter in module.named_parameters()
                if parameter.grad is not None
                and "bias_hh" not in name  # a part of the first step is folded by the exporter
                and np.array_equal(stored.get(name), parameter.detach().numpy())
            },
        )


if __name__ == "__main__":
    write("torch", made(int(sys.argv[1]) if sys.argv[1:] else 0))
