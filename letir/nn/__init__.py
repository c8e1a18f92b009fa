"""``letir.nn``: neural network operations as functions of arrays and of traced values.

Activations, convolutions, pooling, normalisation, attention and losses are one bind each in a
program; recurrent networks are recorded step by step. ``nn.initializers`` makes initial weights,
``nn.optim`` has optimisers over pytrees of arrays. All state is explicit: random functions take
keys (``letir.random``), running statistics are arguments and results [semantics.md B8].

>>> import letir, numpy as np
>>> letir.trace(lambda x: letir.nn.relu(x).sum(), np.ones(3)).listing()
'%1 = relu %0\\n%2 = sum %1, None, None, False, None\\nreturn %2\\n'
"""

import sys

from letir.ast import load_module
from letir.nn import initializers, optim
from letir.nn.embeddings import embedding
from letir.nn.multi_head import multi_head_attention
from letir.nn.recurrent import gru, gru_cell, lstm, lstm_cell, rnn, rnn_cell
from letir.nn.spatial import (
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    max_pool1d,
    max_pool2d,
)
from letir.ops.elementwise.ufuncs import tanh
from letir.ops.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
)
from letir.ops.nn.attention import attention
from letir.ops.nn.class_losses import cross_entropy, nll_loss, one_hot
from letir.ops.nn.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    pairwise_distance,
    triplet_margin_loss,
)
from letir.ops.nn.embedding_linear_dropout import dropout, linear
from letir.ops.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from letir.ops.nn.normalization import batch_norm, group_norm, layer_norm, rms_norm
from letir.ops.nn.pooling import fold, unfold
from letir.ops.nn.softmax import log_softmax, logsumexp, softmax

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


def __getattr__(name: str):
    raise load_module("letir.foreign_names").missing_name(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return __all__
