"""letir.nn at extreme arguments, infinities and ties, and with invalid settings."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir import nn
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X = np.sin(np.arange(12.0)).reshape(4, 3) * 2
GAMMA, BETA = np.array([0.5, -1.5, 2.0]), np.array([0.1, 0.2, -0.3])
MEAN, VAR = np.array([0.3, 0.2, -0.1]), np.array([1.0, 2.0, 0.5])
IMAGE = np.sin(np.arange(2 * 3 * 6 * 5.0)).reshape(2, 3, 6, 5)


# ---- extreme and infinite arguments [D13] ----

FAR = np.array([-1e300, -800.0, -40.0, -1e-300, 0.0, 40.0, 800.0, 1e300])
ONE_ARRAY = ["relu", "leaky_relu", "elu", "selu", "celu", "relu6", "hardtanh", "hardsigmoid"]
ONE_ARRAY += ["sigmoid", "softplus", "log_sigmoid", "softsign", "tanhshrink", "softshrink", "gelu"]


@in_one_test
@pytest.mark.parametrize("name", ONE_ARRAY)
def test_an_activation_and_its_derivatives_are_finite_at_extreme_arguments(name):
    """[D13]: in reverse and forward mode, to second order."""
    f = getattr(nn, name)

    with np.errstate(under="ignore", over="ignore"):  # x * x of 1e300
        slopes = lt.grad(lambda x: f(x).sum())
        found = f(FAR), slopes(FAR), lt.jvp(f, (FAR,), (np.ones(8),))[1]
        curved = lt.grad(lambda x: slopes(x).sum())(FAR[1:-1])

    assert all(np.isfinite(values).all() for values in (*found, curved))


@pytest.mark.parametrize("name", ["silu", "mish", "hardswish"])
def test_a_gated_activation_is_finite_wherever_sums_are(name):
    f = getattr(nn, name)

    assert np.isfinite([f(FAR), lt.grad(lambda x: f(x).sum())(FAR)]).all()


def test_the_tail_of_gelu_is_accurate():
    """Values by 40-digit arithmetic (mpmath)."""
    assert_close(
        np.array([-7.619853024160527e-23, -1.0]),
        nn.gelu(np.array([-10.0, -1.0])) / [1, 0.15865525393145707],
        rtol=1e-12,
    )


WITH_INF = np.array([1.0, -np.inf, 2.0])
NEVER = np.full(3, -np.inf)


@pytest.mark.parametrize("order", [1, 2])
def test_softmax_has_a_zero_gradient_at_minus_infinity(order):
    """[D13]"""
    f = lambda x: nn.softmax(x)[0]  # noqa: E731
    for _ in range(order):
        f = lt.grad(lambda x, f=f: f(x).sum())

    found = f(WITH_INF)

    assert np.isfinite(found).all()
    assert found[1] == 0


def test_logsumexp_of_minus_infinities_is_minus_infinity_with_a_zero_gradient():
    """[D13]: without a warning, as its docstring promises."""
    assert nn.logsumexp(NEVER) == -np.inf
    assert_same(np.zeros(3), lt.grad(nn.logsumexp)(NEVER))
    assert_same(np.zeros((3, 3)), lt.hessian(nn.logsumexp)(NEVER))


def test_cross_entropy_of_huge_logits_is_exact():
    """[D13]"""
    logits, target = np.array([[1e4, -1e4, 0.0], [5.0, 1e4, -1e4]]), np.array([1, 1])

    assert nn.cross_entropy(logits, target) == 1e4
    assert_same(
        np.array([[0.5, -0.5, 0.0], [0.0, 0.0, 0.0]]),
        np.abs(lt.grad(nn.cross_entropy)(logits, target)) * [[1, -1, 1], [1, 1, 1]],
    )


def test_a_class_of_target_probability_zero_adds_no_loss():
    """[D13]: also where its logit is -inf."""
    logits, shares = np.array([[0.0, -np.inf, 0.0]]), np.array([[0.5, 0.0, 0.5]])

    value, grads = lt.value_and_grad(nn.cross_entropy)(logits, shares)

    assert_close(np.log(2), value)
    assert_close(np.zeros((1, 3)), grads)


def test_ignored_targets_have_neither_loss_nor_gradient():
    target = np.array([0, -100, 2, -100])

    value, grads = lt.value_and_grad(nn.cross_entropy)(X, target)

    assert_close(nn.cross_entropy(X[::2], target[::2]), value)
    assert not grads[1::2].any()
    assert nn.cross_entropy(X, np.full(4, -100)) == 0


def test_a_fully_masked_attention_row_is_zero_with_a_zero_gradient():
    q, k, v = (np.cos(np.arange(6.0) + i).reshape(2, 3) for i in range(3))
    seen = np.array([[True, False], [False, False]])

    out = nn.attention(q, k, v, seen)
    grads = lt.grad(lambda *a: nn.attention(*a, seen).sum(), (0, 1, 2))(q, k, v)

    assert_same(v[0], out[0])
    assert not out[1].any()
    assert np.isfinite(grads).all()


@pytest.mark.parametrize("name", ["cosine_similarity", "pairwise_distance"])
def test_distances_between_equal_vectors_have_a_zero_gradient(name):
    """[D13]: of the norm at 0."""
    eps = {"pairwise_distance": 0.0}.get(name, 1e-8)

    grads = lt.grad(lambda x: getattr(nn, name)(x, x * 0, eps=eps).sum())(np.zeros((2, 3)))

    assert not grads.any()


def test_gradients_of_relu_and_pooling_at_ties():
    """[D13]: relu has derivative 0 at 0, tied maxima of a window share the gradient."""
    assert_same(
        np.array([0.0, 0.0, 1.0]),
        lt.grad(lambda x: nn.relu(x).sum())([-1.0, 0.0, 1.0] * np.ones(3)),
    )
    assert_same(
        np.full((1, 1, 4), 0.25), lt.grad(lambda x: nn.max_pool1d(x, 4).sum())(np.ones((1, 1, 4)))
    )


def test_single_precision_is_kept():
    x = X.astype(np.float32)
    calls = [nn.gelu, nn.softmax, nn.layer_norm, lambda x: nn.cross_entropy(x, np.zeros(4, int))]
    calls += [lambda x: nn.batch_norm(x)[1], lambda x: nn.huber_loss(x, x), nn.rms_norm]

    assert {np.dtype(np.float32)} == {lt.grad(lambda x, f=f: f(x).sum())(x).dtype for f in calls}
    assert {np.dtype(np.float32)} == {f(x).dtype for f in calls}


# ---- buffers [B8]; the second derivatives are in tests/ops/nn/test_batch_norm_derivatives.py ----


def test_training_returns_updated_running_statistics():
    """[B8]"""
    f = lt.trace(nn.batch_norm, X, MEAN, VAR, GAMMA, BETA)

    out, mean, var = f(X + 1, MEAN, VAR, GAMMA, BETA)

    assert 1 == len(f.binds)
    assert_close(0.9 * MEAN + 0.1 * (X + 1).mean(0), mean)
    assert_close(0.9 * VAR + 0.1 * X.var(0, ddof=1), var)
    assert_close((X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5) * GAMMA + BETA, out)


def test_running_statistics_are_returned_unchanged_without_training():
    """[B8]"""
    out, mean, var = nn.batch_norm(X, MEAN, VAR, train=False)

    assert_same((MEAN, VAR), (mean, var))
    assert_close((X - MEAN) / np.sqrt(VAR + 1e-5), out)


def test_batch_norm_serves_every_batch_size():
    """[D14]: one program for batches of every size."""

    def f(x):
        return (nn.batch_norm(x, MEAN, VAR, GAMMA)[2] * GAMMA).sum()

    df = lt.grad(lt.trace(f, lt.ShapeDtype(("n", 3))))

    for n in (2, 4):
        assert_close(lt.grad(f)(X[:n]), df(X[:n]))


# ---- convolutions and pooling ----


def correlated(x, w, stride, padding):
    """conv2d as four nested loops."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    rows = (x.shape[2] - w.shape[2]) // stride[0] + 1
    columns = (x.shape[3] - w.shape[3]) // stride[1] + 1
    out = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for i, j in itertools.product(range(rows), range(columns)):
        top, left = i * stride[0], j * stride[1]
        seen = x[:, :, top : top + w.shape[2], left : left + w.shape[3]]
        out[:, :, i, j] = np.einsum("nchw,ochw->no", seen, w)
    return out


def test_conv2d_agrees_with_nested_loops():
    w = np.cos(np.arange(4 * 3 * 2 * 3.0)).reshape(4, 3, 2, 3)

    assert_close(
        correlated(IMAGE, w, (2, 1), (1, 0)), nn.conv2d(IMAGE, w, stride=(2, 1), padding=(1, 0))
    )


@pytest.mark.parametrize(("stride", "places"), [(1, (6, 5)), (2, (3, 3)), (4, (2, 2))])
def test_same_padding_gives_one_output_for_each_stride(stride, places):
    out = nn.conv2d(IMAGE, np.ones((1, 3, 3, 4)), stride=stride, padding="same")

    assert (2, 1, *places) == out.shape


def test_gradients_of_a_convolution_are_convolutions():
    """To second order, without unfolding windows."""
    w = np.cos(np.arange(4 * 3 * 2 * 3.0)).reshape(4, 3, 2, 3)
    f = lt.trace(lambda x, w: (nn.conv2d(x, w) ** 2).sum(), IMAGE, w)

    second = lt.grad(lambda x, w: (lt.grad(f, 1)(x, w) ** 2).sum(), (0, 1))
    names = {bind.op.name for bind in lt.trace(second, IMAGE, w).binds}

    assert {"conv", "conv_transpose", "conv_weight"} == {n for n in names if n.startswith("conv")}
    assert "unfold" not in names


WRONG = {
    "channels": lambda: nn.conv2d(IMAGE, np.ones((1, 2, 3, 3))),
    "axes": lambda: nn.conv1d(IMAGE, np.ones((1, 3, 3))),
    "a kernel that is too large": lambda: nn.conv2d(IMAGE, np.ones((1, 3, 7, 3))),
    "groups": lambda: nn.conv2d(IMAGE, np.ones((4, 3, 3, 3)), groups=2),
    "a loss of broadcast shapes": lambda: nn.mse_loss(np.ones((3, 1)), np.ones(3)),
    "a reduction": lambda: nn.mse_loss(X, X, reduction="median"),
    "heads": lambda: nn.multi_head_attention(X, X, X, [np.eye(3)] * 4, heads=2),
    "a weight of a normalisation": lambda: nn.layer_norm(X, np.ones((4, 3))),
    "complex numbers": lambda: lt.trace(nn.relu, X * 1j),
    "no statistics": lambda: nn.batch_norm(X, train=False),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_settings_are_errors(name):
    with pytest.raises(lt.LetirError):
        WRONG[name]()


def test_dropout_without_a_key_can_be_recorded_but_not_computed():
    """[B9]"""
    f = lt.trace(lambda x: nn.dropout(x, rate=0.5), lt.ShapeDtype((3,)))

    assert "%1 = dropout %0, 0.5, True, False\nreturn %1\n" == f.listing()
    for call in (f, nn.dropout, lt.grad(lambda x: nn.dropout(x).sum())):
        with pytest.raises(lt.TraceError, match="needs a key"):
            call(np.ones(3))


# ---- recurrent networks ----


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_a_recurrent_network_over_a_sequence_repeats_its_cell(cell):
    gates, states = {"rnn": (1, 1), "gru": (3, 1), "lstm": (4, 2)}[cell]
    x = np.sin(np.arange(24.0)).reshape(4, 2, 3)
    weights = tuple(np.cos(np.arange(gates * 2.0 * n)).reshape(-1, n) for n in (3, 2))
    start = [np.full((1, 2, 2), 0.1 * (i + 1)) for i in range(states)]

    outs, last = getattr(nn, cell)(x, *start, [(*weights, None, None)])

    state = [s[0] for s in start]
    for t in range(4):
        found = getattr(nn, f"{cell}_cell")(x[t], *state, *weights)
        state = list(found) if states > 1 else [found]
        assert_same(state[0], outs[t])
    assert_same(tuple(s[None] for s in state), last if states > 1 else (last,))


def test_dropout_between_layers_needs_a_key():
    x, h = np.ones((3, 2, 4)), np.zeros((2, 2, 4))
    layers = [(0.1 * np.ones((4, 4)), np.zeros((4, 4)), None, None)] * 2

    plain, dropped = (nn.rnn(x, h, layers, dropout_rate=0.5, key=key)[0] for key in (None, 3))

    assert not np.array_equal(plain, dropped)
    assert_same(dropped, nn.rnn(x, h, layers, dropout_rate=0.5, key=3)[0])
