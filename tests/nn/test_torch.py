"""letir.nn against PyTorch: values, gradients and second gradients."""

import functools

import numpy as np
import pytest

import letir as lt
from letir import nn
from letir.nn import optim
from letir.testing import assert_close

torch = pytest.importorskip("torch", reason="install the extra 'bench'")
F = pytest.importorskip("torch.nn.functional", reason="install the extra 'bench'")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def numbers(*shape: int, seed: float = 1.0) -> np.ndarray:
    """Distinct numbers of this shape between -2 and 2."""
    return 2 * np.sin(seed + 1.7 * np.arange(1.0, 1 + np.prod(shape))).reshape(shape)


ROW = np.array([-30.0, -7.3, -3.2, -1.3, -0.4, 0.3, 0.8, 2.6, 7.1, 30.0])
X, Y = numbers(4, 3), numbers(4, 3, seed=2.5)
CLASSES, SPACED = np.array([2, 0, 1, -100]), np.array([[0, 2, 1], [1, -100, 2]])
WEIGHT = np.array([0.5, 1.5, 2.0])
SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
PROBABILITIES = np.exp(X) / np.exp(X).sum(1, keepdims=True)
MASK = np.array([[True, False, True], [True, True, False]])
PLANES, LINE, IMAGE = numbers(3, 4, 5), numbers(2, 4, 9), numbers(2, 4, 6, 5)
STATS = (np.array([0.1, -0.2, 0.3, 0.4]), np.array([1.5, 0.5, 2.0, 1.0]))
FOUR = numbers(4, seed=0.3)


def torch_lstm(x, h, c, *weights):
    """torch.nn's LSTM of two layers."""
    outs, h, c = torch.lstm(x, (h, c), weights, True, 2, 0.0, False, False, False)
    return outs, h, c


def lstm(x, h, c, *weights):
    outs, (h, c) = nn.lstm(x, h, c, (weights[:4], weights[4:]))
    return outs, h, c


def gru(x, h, *weights):
    return nn.gru(x, h, (weights[:4], weights[4:]))


def rnn(x, h, *weights):
    return nn.rnn(x, h, (weights[:4], weights[4:]))


def recurrent(gates: int, states: int) -> tuple:
    """Arguments of a network of two layers: 4 steps, 2 examples, 3 inputs, 5 states."""
    x, h = numbers(4, 2, 3), [numbers(2, 2, 5, seed=i) for i in range(states)]
    shapes = [(gates * 5, n) for n in (3, 5)] + [(gates * 5,)] * 2
    shapes += [(gates * 5, 5)] * 2 + [(gates * 5,)] * 2
    return x, *h, *[0.4 * numbers(*s, seed=7.0 + i) for i, s in enumerate(shapes)]


def heads(x, *weights):
    return nn.multi_head_attention(x, x, x, weights[:4], weights[4:], heads=2)


def torch_heads(x, *weights):
    """With one matrix of input projections, and the batch as the second axis."""
    swapped = x.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        *(swapped, swapped, swapped, x.shape[-1], 2, torch.cat(weights[:3])),
        *(torch.cat(weights[4:7]), None, None, False, 0.0, weights[3], weights[7]),
    )
    return out.transpose(0, 1)


def batch_norm(x, mean, var, weight, bias):
    """The running statistics without derivatives, as in PyTorch."""
    out, *stats = nn.batch_norm(x, mean, var, weight, bias, momentum=0.3)
    return out, *map(lt.stop_gradient, stats)


def torch_batch_norm(x, mean, var, weight, bias):
    """PyTorch updates running statistics in place; here copies are updated and returned."""
    mean, var = mean.detach().clone(), var.detach().clone()
    out = F.batch_norm(x, mean, var, weight, bias, True, 0.3)
    return out, mean, var


def of_classes(function, target, attrs: dict):
    """A loss of logits and class weights."""
    return lambda x, weight: function(x, target, weight, **attrs)


ACTIVATIONS = {
    **{name: getattr(F, name) for name in ("relu", "relu6", "leaky_relu", "elu", "celu", "selu")},
    **{name: getattr(F, name) for name in ("hardtanh", "hardsigmoid", "hardswish", "hardshrink")},
    **{name: getattr(F, name) for name in ("softshrink", "silu", "mish", "gelu", "softsign")},
    **{name: getattr(F, name) for name in ("tanhshrink", "sigmoid")},
    "log_sigmoid": F.logsigmoid,
}
CASES = {name: (getattr(nn, name), there, (ROW,)) for name, there in ACTIVATIONS.items()}
CASES |= {
    "softplus": (nn.softplus, functools.partial(F.softplus, threshold=1000.0), (ROW,)),
    "softplus beta": (
        lambda x: nn.softplus(x, beta=2.0),
        lambda x: F.softplus(x, 2.0, 1000.0),
        (ROW,),
    ),
    "elu alpha": (lambda x: nn.elu(x, alpha=0.5), lambda x: F.elu(x, 0.5), (ROW,)),
    "gelu tanh": (
        lambda x: nn.gelu(x, approximate="tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
        (ROW,),
    ),
    "prelu": (nn.prelu, F.prelu, (PLANES, FOUR)),
    "glu": (lambda x: nn.glu(x, axis=1), lambda x: F.glu(x, 1), (PLANES,)),
    "softmax": (lambda x: nn.softmax(x, axis=0), lambda x: F.softmax(x, 0), (X,)),
    "log_softmax": (nn.log_softmax, lambda x: F.log_softmax(x, -1), (100 * X,)),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1), (X,)),
    "linear": (nn.linear, F.linear, (X, numbers(5, 3), numbers(5))),
    "conv1d": (
        lambda *a: nn.conv1d(*a, stride=2, padding=3, dilation=2, groups=2),
        lambda *a: F.conv1d(*a, stride=2, padding=3, dilation=2, groups=2),
        (LINE, numbers(6, 2, 3), numbers(6)),
    ),
    "conv1d same": (
        lambda *a: nn.conv1d(*a, padding="same"),
        lambda *a: F.conv1d(*a, padding="same"),
        (LINE, numbers(2, 4, 4)),
    ),
    "conv2d": (
        lambda *a: nn.conv2d(*a, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        lambda *a: F.conv2d(*a, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        (IMAGE, numbers(3, 4, 2, 3), numbers(3)),
    ),
    "conv_transpose1d": (
        lambda *a: nn.conv_transpose1d(*a, stride=3, padding=1, output_padding=2, groups=2),
        lambda *a: F.conv_transpose1d(*a, stride=3, padding=1, output_padding=2, groups=2),
        (LINE, numbers(4, 3, 4), numbers(6)),
    ),
    "conv_transpose2d": (
        lambda *a: nn.conv_transpose2d(*a, stride=2, padding=(0, 1), dilation=(2, 1)),
        lambda *a: F.conv_transpose2d(*a, stride=2, padding=(0, 1), dilation=(2, 1)),
        (IMAGE, numbers(4, 3, 2, 3), numbers(3)),
    ),
    "max_pool1d": (lambda x: nn.max_pool1d(x, 3), lambda x: F.max_pool1d(x, 3), (LINE,)),
    "max_pool2d": (
        lambda x: nn.max_pool2d(x, (2, 3), 2, (1, 1), ceil_mode=True),
        lambda x: F.max_pool2d(x, (2, 3), 2, (1, 1), ceil_mode=True),
        (IMAGE,),
    ),
    "avg_pool1d": (lambda x: nn.avg_pool1d(x, 3, 2), lambda x: F.avg_pool1d(x, 3, 2), (LINE,)),
    "avg_pool2d": (
        lambda x: nn.avg_pool2d(x, 3, 2, 1, count_padding=False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (IMAGE,),
    ),
    "batch_norm": (batch_norm, torch_batch_norm, (PLANES, *STATS, FOUR, FOUR + 1)),
    "batch_norm as it is": (
        lambda *a: nn.batch_norm(*a, train=False)[0],
        lambda *a: F.batch_norm(*a, False),
        (PLANES, *STATS, FOUR, FOUR + 1),
    ),
    "layer_norm": (
        lambda *a: nn.layer_norm(*a, axis=(-2, -1)),
        lambda x, *a: F.layer_norm(x, (4, 5), *a),
        (PLANES, numbers(4, 5), numbers(4, 5)),
    ),
    "rms_norm": (
        lambda *a: nn.rms_norm(*a, eps=1e-3),
        lambda x, w: F.rms_norm(x, (5,), w, 1e-3),
        (PLANES, numbers(5)),
    ),
    "group_norm": (
        lambda *a: nn.group_norm(*a, groups=2),
        lambda x, *a: F.group_norm(x, 2, *a),
        (PLANES, FOUR, FOUR + 1),
    ),
    "attention": (
        nn.attention,
        F.scaled_dot_product_attention,
        (numbers(2, 2, 4), numbers(2, 3, 4), numbers(2, 3, 5), numbers(2, 3)),
    ),
    "attention with a mask": (
        lambda *a: nn.attention(*a, MASK),
        lambda *a: F.scaled_dot_product_attention(*a, torch.tensor(MASK)),
        (numbers(2, 2, 4), numbers(2, 3, 4), numbers(2, 3, 5)),
    ),
    "attention, causal": (
        lambda *a: nn.attention(*a, causal=True, scale=0.3),
        lambda *a: F.scaled_dot_product_attention(*a, is_causal=True, scale=0.3),
        (numbers(2, 3, 4), numbers(2, 3, 4), numbers(2, 3, 5)),
    ),
    "multi_head_attention": (
        heads,
        torch_heads,
        (
            numbers(2, 3, 4),
            *[numbers(4, 4, seed=i) for i in range(4)],
            *[FOUR + i for i in range(4)],
        ),
    ),
    "lstm": (lstm, torch_lstm, recurrent(4, 2)),
    "gru": (
        gru,
        lambda x, h, *w: torch.gru(x, h, w, True, 2, 0.0, False, False, False),
        recurrent(3, 1),
    ),
    "rnn": (
        rnn,
        lambda x, h, *w: torch.rnn_tanh(x, h, w, True, 2, 0.0, False, False, False),
        recurrent(1, 1),
    ),
    "embedding": (
        lambda w: nn.embedding(np.array([2, 0, 2, 1]), w, padding_idx=1),
        lambda w: F.embedding(torch.tensor([2, 0, 2, 1]), w, padding_idx=1),
        (X,),
    ),
    "embedding padding_idx from the end": (
        lambda w: nn.embedding(np.array([2, 0, 2, 1]), w, -1),
        lambda w: F.embedding(torch.tensor([2, 0, 2, 1]), w, -1),
        (X,),
    ),
}
for reduction in ("mean", "sum", "none"):
    given = {"reduction": reduction}
    CASES |= {
        f"{name} {reduction} {attrs}": (
            functools.partial(getattr(nn, name), **given, **attrs),
            functools.partial(getattr(F, name), **given, **attrs),
            args,
        )
        for name, args, attrs in (
            ("mse_loss", (X, Y), {}),
            ("l1_loss", (X, Y), {}),
            ("huber_loss", (X, Y), {"delta": 0.7}),
            ("smooth_l1_loss", (X, Y), {"beta": 0.7}),
            ("binary_cross_entropy", (PROBABILITIES, PROBABILITIES[::-1].copy()), {}),
            ("binary_cross_entropy_with_logits", (5 * X, PROBABILITIES), {}),
            ("kl_div", (X, PROBABILITIES), {}),
            ("kl_div", (X, Y), {"log_target": True}),
            ("poisson_nll_loss", (X, PROBABILITIES), {}),
            ("gaussian_nll_loss", (X, Y, PROBABILITIES), {}),
            ("soft_margin_loss", (X, SIGNS), {}),
            ("hinge_embedding_loss", (X, SIGNS), {}),
            ("margin_ranking_loss", (X, Y, SIGNS), {"margin": 0.4}),
            ("cosine_embedding_loss", (X, Y, SIGNS[:, 0]), {"margin": 0.1}),
            ("triplet_margin_loss", (X, Y, X[::-1].copy()), {"margin": 2.0}),
            ("triplet_margin_loss", (X, Y, X[::-1].copy()), {"swap": True, "p": 3.0}),
        )
    }
    CASES |= {
        f"{name} {reduction} {kind}": (
            of_classes(getattr(nn, name), target, attrs),
            of_classes(getattr(F, name), torch.tensor(target), attrs),
            (x, WEIGHT),
        )
        for name, kind, x, target, attrs in (
            ("nll_loss", "", X, CLASSES, given),
            ("cross_entropy", "", X, CLASSES, given),
            ("cross_entropy", "smooth", X, CLASSES, {**given, "label_smoothing": 0.2}),
            ("cross_entropy", "sizes", numbers(2, 3, 3), SPACED, given),
            ("cross_entropy", "shares", X, PROBABILITIES, {**given, "label_smoothing": 0.1}),
        )
    }


def as_tuple(out) -> tuple:
    return tuple(out) if isinstance(out, tuple | list) else (out,)


def fixed(name: str) -> int:
    """How many trailing arguments (targets, weights) have no gradient in PyTorch."""
    kind = name.split()[0]
    if kind in ("nll_loss", "cross_entropy"):
        return 1
    if kind.startswith("batch_norm"):
        return 4 if kind == name == "batch_norm as it is" else 0
    return {"margin_ranking_loss": 1, "cosine_embedding_loss": 1, "gaussian_nll_loss": 2}.get(
        kind, 1 if kind.endswith("_loss") and kind != "triplet_margin_loss" else 0
    )


def skipped(name: str) -> set[int]:
    """The positions of running statistics, which have no gradient in PyTorch."""
    return {1, 2} if name.startswith("batch_norm") else set()


def both(name: str):
    """(letir's function, PyTorch's function, arguments, positions to differentiate)."""
    ours, theirs, args = CASES[name]
    places = [i for i in range(len(args) - fixed(name)) if i not in skipped(name)]
    return ours, theirs, args, places


def tensors(args, places) -> list:
    return [torch.tensor(a, requires_grad=i in places) for i, a in enumerate(args)]


def paired(results, seed: float = 0.9):
    """The inner product of all results with fixed distinct numbers."""
    total = 0.0
    for i, result in enumerate(as_tuple(results)):
        factor = numbers(*result.shape, seed=seed + i) if len(result.shape) else 1.3
        factor = (
            torch.tensor(factor, dtype=torch.float64)
            if isinstance(result, torch.Tensor)
            else factor
        )
        total = total + (result * factor).sum()
    return total


@pytest.mark.parametrize("name", CASES)
def test_values_agree_with_torch(name):
    ours, theirs, args, _ = both(name)

    expected = [t.detach().numpy() for t in as_tuple(theirs(*tensors(args, ())))]

    assert_close(expected, list(as_tuple(ours(*args))))


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_torch(name):
    ours, theirs, args, places = both(name)
    given = tensors(args, places)

    expected = torch.autograd.grad(paired(theirs(*given)), [given[i] for i in places])
    found = lt.grad(lambda *a: paired(ours(*a)), argnums=tuple(places))(*args)

    assert_close([t.numpy(force=True) for t in expected], list(found), rtol=1e-8, atol=1e-8)


# PyTorch has no second derivative of these.
FIRST_ORDER = {"hardsigmoid", "lstm", "gru", "rnn", "multi_head_attention", "attention, causal"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - FIRST_ORDER))
def test_second_gradients_agree_with_torch(name):
    ours, theirs, args, places = both(name)
    given = tensors(args, places)
    wrt = [given[i] for i in places]

    first = torch.autograd.grad(paired(theirs(*given)), wrt, create_graph=True)
    total = paired(first, 3.1)
    expected = [torch.zeros_like(t) for t in wrt]
    if total.requires_grad:
        second = torch.autograd.grad(total, wrt, allow_unused=True)
        expected = [e if s is None else s for e, s in zip(expected, second, strict=True)]
    gradient = lt.grad(lambda *a: paired(ours(*a)), argnums=tuple(places))
    found = lt.grad(lambda *a: paired(gradient(*a), 3.1), argnums=tuple(places))(*args)

    assert_close([t.numpy(force=True) for t in expected], list(found), rtol=1e-7, atol=1e-7)


# ---- optimisers ----

OPTIMIZERS = {
    "sgd": (optim.sgd(0.1, weight_decay=0.01), "SGD", {"lr": 0.1, "weight_decay": 0.01}),
    "momentum": (optim.momentum(0.1, 0.8), "SGD", {"lr": 0.1, "momentum": 0.8}),
    "nesterov": (
        optim.sgd(0.1, momentum=0.8, nesterov=True),
        "SGD",
        {"lr": 0.1, "momentum": 0.8, "nesterov": True},
    ),
    "adam": (optim.adam(0.1, weight_decay=0.1), "Adam", {"lr": 0.1, "weight_decay": 0.1}),
    "adamw": (optim.adamw(0.1, weight_decay=0.1), "AdamW", {"lr": 0.1, "weight_decay": 0.1}),
    "rmsprop": (optim.rmsprop(0.1), "RMSprop", {"lr": 0.1}),
    "adagrad": (optim.adagrad(0.1), "Adagrad", {"lr": 0.1}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimiser_steps_agree_with_torch(name):
    ours, theirs, attrs = OPTIMIZERS[name]
    params, tensor = [X], torch.tensor(X, requires_grad=True)
    state, peer = ours.init(params), getattr(torch.optim, theirs)([tensor], **attrs)

    for i in range(4):
        grad = numbers(4, 3, seed=float(i))
        tensor.grad = torch.tensor(grad)
        peer.step()
        params, state = ours.update([grad], state, params)

    assert_close(tensor.detach().numpy(), params[0])
