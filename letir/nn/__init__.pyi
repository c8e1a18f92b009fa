# Written by docs/make_stub.py: most functions are records, whose signatures editors cannot see.

from typing import Any

from letir.nn import initializers as initializers
from letir.nn import optim as optim
from letir.nn.embeddings import embedding as embedding
from letir.nn.multi_head import multi_head_attention as multi_head_attention
from letir.nn.recurrent import gru as gru
from letir.nn.recurrent import gru_cell as gru_cell
from letir.nn.recurrent import lstm as lstm
from letir.nn.recurrent import lstm_cell as lstm_cell
from letir.nn.recurrent import rnn as rnn
from letir.nn.recurrent import rnn_cell as rnn_cell
from letir.nn.spatial import avg_pool1d as avg_pool1d
from letir.nn.spatial import avg_pool2d as avg_pool2d
from letir.nn.spatial import conv1d as conv1d
from letir.nn.spatial import conv2d as conv2d
from letir.nn.spatial import conv_transpose1d as conv_transpose1d
from letir.nn.spatial import conv_transpose2d as conv_transpose2d
from letir.nn.spatial import max_pool1d as max_pool1d
from letir.nn.spatial import max_pool2d as max_pool2d

def attention(
    query: Any, key: Any, value: Any, mask: Any = None, *, causal: Any = False, scale: Any = None
) -> Any:
    """softmax(query @ key.T * scale) @ value, over the last two axes."""

def batch_norm(
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    *,
    train: Any = True,
    momentum: Any = 0.1,
    eps: Any = 1e-05,
) -> Any:
    """(x normalised for each channel, the new running mean, the new running variance)."""

def binary_cross_entropy(
    x: Any, target: Any, weight: Any = None, *, reduction: Any = "mean"
) -> Any:
    """-(target * log(x) + (1 - target) * log(1 - x)) for probabilities x."""

def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: Any = "mean"
) -> Any:
    """binary_cross_entropy of ``sigmoid(x)``; positive targets count ``pos_weight`` times."""

def celu(x: Any, *, alpha: Any = 1.0) -> Any:
    """x, or ``alpha * (exp(x / alpha) - 1)`` where x is not positive."""

def cosine_embedding_loss(
    x: Any, y: Any, target: Any, *, margin: Any = 0.0, reduction: Any = "mean"
) -> Any:
    """1 - cosine where the target is 1; max(0, cosine - margin) where the target is -1."""

def cosine_similarity(x: Any, y: Any, *, axis: Any = 1, eps: Any = 1e-08) -> Any:
    """The cosine of the angle between x and y along ``axis``; norms are taken as >= ``eps``."""

def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: Any = -100,
    label_smoothing: Any = 0.0,
    reduction: Any = "mean",
) -> Any:
    """nll_loss of ``log_softmax(x)``; ``x``: logits of shape (N, classes, *sizes) or (classes,)."""

def dropout(
    x: Any, key: Any = None, *, rate: Any = 0.5, train: Any = True, inplace: Any = False
) -> Any:
    """``x`` with elements set to 0 with probability ``rate`` and the others scaled by 1 / (1 -
    rate)."""

def elu(x: Any, *, alpha: Any = 1.0) -> Any:
    """x, or ``alpha * (exp(x) - 1)`` where x is not positive."""

def fold(y: Any, *, sizes: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """The sum of all windows at their places, the transpose of ``unfold``."""

def gaussian_nll_loss(
    x: Any, target: Any, var: Any, *, eps: Any = 1e-06, reduction: Any = "mean"
) -> Any:
    """Minus the normal log likelihood, up to a constant; ``var`` is taken as at least ``eps``."""

def gelu(x: Any, *, approximate: Any = "none") -> Any:
    """x times the normal distribution function of x; ``approximate="tanh"`` for the faster form."""

def glu(x: Any, *, axis: Any = -1) -> Any:
    """The first half of x along ``axis`` times the sigmoid of the second."""

def group_norm(
    x: Any, weight: Any = None, bias: Any = None, *, groups: Any, eps: Any = 1e-05
) -> Any:
    """Normalise each of ``groups`` groups of channels, over its channels and the sizes."""

def hardshrink(x: Any, *, threshold: Any = 0.5) -> Any:
    """x, or 0 where abs(x) is at most ``threshold``."""

def hardsigmoid(x: Any) -> Any:
    """A line from 0 at -3 to 1 at 3, constant outside."""

def hardswish(x: Any) -> Any:
    """x times ``hardsigmoid(x)``."""

def hardtanh(x: Any, *, low: Any = -1.0, high: Any = 1.0) -> Any:
    """x limited to [``low``, ``high``]."""

def hinge_embedding_loss(x: Any, target: Any, *, margin: Any = 1.0, reduction: Any = "mean") -> Any:
    """x where the target is 1; max(0, margin - x) where the target is -1."""

def huber_loss(x: Any, target: Any, *, delta: Any = 1.0, reduction: Any = "mean") -> Any:
    """Half the squared difference up to ``delta``, beyond it a line that continues smoothly."""

def kl_div(x: Any, target: Any, *, log_target: Any = False, reduction: Any = "mean") -> Any:
    """The Kullback-Leibler divergence of ``target`` from the distribution of log probabilities
    x."""

def l1_loss(x: Any, target: Any, *, reduction: Any = "mean") -> Any:
    """abs(x - target), with a derivative of 0 at 0."""

def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, *, axis: Any = -1, eps: Any = 1e-05
) -> Any:
    """x normalised to mean 0 and variance 1 along ``axis``, times ``weight`` plus ``bias``."""

def leaky_relu(x: Any, *, negative_slope: Any = 0.01) -> Any:
    """x, or ``negative_slope * x`` where x is not positive."""

def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x @ weight.T + bias, for a weight of shape (outputs, inputs)."""

def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), which is about x for x far below 0."""

def log_softmax(x: Any, *, axis: Any = -1) -> Any:
    """x - log(sum(exp(x))) with the maximum subtracted first, so that nothing overflows."""

def logsumexp(x: Any, *, axis: Any = -1, keepdims: Any = False) -> Any:
    """log(sum(exp(x))) along ``axis`` (None: of all elements), without overflow."""

def margin_ranking_loss(
    x: Any, y: Any, target: Any, *, margin: Any = 0.0, reduction: Any = "mean"
) -> Any:
    """max(0, margin - target * (x - y)): x should exceed y by ``margin`` for a target of 1."""

def mish(x: Any) -> Any:
    """x times ``tanh(softplus(x))``."""

def mse_loss(x: Any, target: Any, *, reduction: Any = "mean") -> Any:
    """(x - target)**2."""

def nll_loss(
    x: Any, target: Any, weight: Any = None, *, ignore_index: Any = -100, reduction: Any = "mean"
) -> Any:
    """Minus the log probability of each example's class."""

def one_hot(x: Any, *, classes: Any, dtype: Any = ...) -> Any:
    """A new last axis of length ``classes`` with 1 at the place given by ``x``, else 0."""

def pairwise_distance(x: Any, y: Any, *, p: Any = 2.0, eps: Any = 1e-06) -> Any:
    """The p-norm of x - y + eps along the last axis."""

def poisson_nll_loss(x: Any, target: Any, *, log_input: Any = True, reduction: Any = "mean") -> Any:
    """Minus the log likelihood of Poisson counts, up to a constant; ``x``: logs of the rates."""

def prelu(x: Any, weight: Any) -> Any:
    """leaky_relu with learnt slopes: one number, or one for each channel (axis 1 of x)."""

def relu(x: Any) -> Any:
    """x, or 0 where x is negative."""

def relu6(x: Any) -> Any:
    """x limited to [0, 6]."""

def rms_norm(x: Any, weight: Any = None, *, axis: Any = -1, eps: Any = 1e-06) -> Any:
    """x divided by the root of its mean square along ``axis``, times ``weight``."""

def selu(x: Any) -> Any:
    """elu with the constants for which layers keep mean 0 and variance 1."""

def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), written so that no exponential overflows."""

def silu(x: Any) -> Any:
    """x times ``sigmoid(x)``, also called swish."""

def smooth_l1_loss(x: Any, target: Any, *, beta: Any = 1.0, reduction: Any = "mean") -> Any:
    """huber_loss divided by ``beta``; abs(x - target) for a beta of 0."""

def soft_margin_loss(x: Any, target: Any, *, reduction: Any = "mean") -> Any:
    """log(1 + exp(-target * x)) for targets of 1 and -1."""

def softmax(x: Any, *, axis: Any = -1) -> Any:
    """exp(x) divided by its sum along ``axis``, with the maximum subtracted first."""

def softplus(x: Any, *, beta: Any = 1.0) -> Any:
    """log(1 + exp(beta * x)) / beta."""

def softshrink(x: Any, *, threshold: Any = 0.5) -> Any:
    """x moved towards 0 by ``threshold``; 0 where abs(x) is at most ``threshold``."""

def softsign(x: Any) -> Any:
    """x / (1 + abs(x))."""

def tanh(x: Any) -> Any:
    """NumPy's ``tanh``."""

def tanhshrink(x: Any) -> Any:
    """x - tanh(x)."""

def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    margin: Any = 1.0,
    p: Any = 2.0,
    eps: Any = 1e-06,
    swap: Any = False,
    reduction: Any = "mean",
) -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), for the p-norm distance d."""

def unfold(
    x: Any, *, window: Any, stride: Any, padding: Any, dilation: Any, value: Any = 0.0
) -> Any:
    """The elements of each window: the window's axes, the leading axes of x, the places."""

__all__ = [
    "attention",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "gru",
    "gru_cell",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "initializers",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "lstm",
    "lstm_cell",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "multi_head_attention",
    "nll_loss",
    "one_hot",
    "optim",
    "pairwise_distance",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "rnn",
    "rnn_cell",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "triplet_margin_loss",
    "unfold",
]
