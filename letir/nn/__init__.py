"""Operations of network code, on arrays and on traced values: dropout, embedding, linear,
log_softmax.

Each is one bind in a program, a composite that ``letir.ops.neural`` says how to decompose.
"""

from letir.ops.neural import dropout, embedding, linear, log_softmax

__all__ = ["dropout", "embedding", "linear", "log_softmax"]
