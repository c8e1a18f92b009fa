"""The distribution functions of ``scipy.special`` as incomplete gamma and beta functions."""

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.onnx.exporting.programs.beta_programs import betainc, betaincinv
from letir.onnx.exporting.programs.gamma_programs import gammainc, gammaincc, gammainccinv


@computes_op("fdtr")
def _fdtr(dfn, dfd, x):
    return betainc(0.5 * dfn + 0 * x, 0.5 * dfd + 0 * x, dfn * x / (dfd + dfn * x))


@computes_op("fdtrc")
def _fdtrc(dfn, dfd, x):
    return betainc(0.5 * dfd + 0 * x, 0.5 * dfn + 0 * x, dfd / (dfd + dfn * x))


@computes_op("fdtri")
def _fdtri(dfn, dfd, p):
    w = betaincinv(0.5 * dfn + 0 * p, 0.5 * dfd + 0 * p, p)
    return dfd * w / (dfn * (1 - w))


@computes_op("gdtr")
def _gdtr(a, b, x):
    return gammainc(b + 0 * x, a * x)


@computes_op("gdtrc")
def _gdtrc(a, b, x):
    return gammaincc(b + 0 * x, a * x)


@computes_op("chdtr")
def _chdtr(v, x):
    return gammainc(0.5 * v + 0 * x, 0.5 * x)


@computes_op("chdtrc")
def _chdtrc(v, x):
    return gammaincc(0.5 * v + 0 * x, 0.5 * x)


@computes_op("chdtri")
def _chdtri(v, p):
    return 2 * gammainccinv(0.5 * v + 0 * p, p)


@computes_op("pdtr")
def _pdtr(k, m):
    return gammaincc(np.floor(k) + 1 + 0 * m, m)


@computes_op("pdtrc")
def _pdtrc(k, m):
    return gammainc(np.floor(k) + 1 + 0 * m, m)


def _upper_binomial(k, n, p):
    """The probability of more than k successes in n trials."""
    k, n = np.floor(k) + 0 * p, n + 0 * p
    inside = k < n
    return np.where(inside, betainc(np.where(inside, k, 0) + 1, np.where(inside, n - k, 1), p), 0)


@computes_op("bdtr")
def _bdtr(k, n, p):
    return 1 - _upper_binomial(k, n, p)


@computes_op("bdtrc")
def _bdtrc(k, n, p):
    return _upper_binomial(k, n, p)


@computes_op("nbdtr")
def _nbdtr(k, n, p):
    return betainc(n + 0 * p, np.floor(k) + 1 + 0 * p, p)


@computes_op("nbdtrc")
def _nbdtrc(k, n, p):
    return betainc(np.floor(k) + 1 + 0 * p, n + 0 * p, 1 - p)
