"""Distribution functions of scipy.special by incomplete gamma and beta functions."""

from typing import Any

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.onnx.exporting.programs.beta_programs import betainc, betaincinv
from letir.onnx.exporting.programs.gamma_programs import gammainc, gammaincc, gammainccinv

# ---- gamma, chi-squared and Poisson distributions ----


@computes_op("gdtr")
def _gdtr(a, b, x):
    return gammainc(b, a * x)


@computes_op("gdtrc")
def _gdtrc(a, b, x):
    return gammaincc(b, a * x)


@computes_op("chdtr")
def _chdtr(v, x):
    return np.where(x <= 0, 0.0, gammainc(0.5 * v, 0.5 * np.maximum(x, 0.0)))


@computes_op("chdtrc")
def _chdtrc(v, x):
    return np.where(x <= 0, 1.0, gammaincc(0.5 * v, 0.5 * np.maximum(x, 0.0)))


@computes_op("chdtri")
def _chdtri(v, p):
    return 2 * gammainccinv(0.5 * v, p)


@computes_op("pdtr")
def _pdtr(k, m):
    return gammaincc(np.floor(k) + 1, m)


@computes_op("pdtrc")
def _pdtrc(k, m):
    return gammainc(np.floor(k) + 1, m)


# ---- F and binomial distributions ----


@computes_op("fdtr")
def _fdtr(dfn, dfd, x):
    return betainc(0.5 * dfn, 0.5 * dfd, dfn * x / (dfd + dfn * x))


@computes_op("fdtrc")
def _fdtrc(dfn, dfd, x):
    return betainc(0.5 * dfd, 0.5 * dfn, dfd / (dfd + dfn * x))


@computes_op("fdtri")
def _fdtri(dfn, dfd, p):
    w = betaincinv(0.5 * dfn, 0.5 * dfd, p)
    return dfd * w / (dfn * (1 - w))


def _successes(k: Any, n: Any, p: Any, is_upper: bool) -> Any:
    """The probability of more than k successes in n attempts, or of at most k."""
    k = np.floor(k)
    inside = (k >= 0) & (k < n)
    a, b = np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0)
    result = betainc(a, b, p) if is_upper else betainc(b, a, 1 - p)
    return np.where(inside, result, np.where((k < 0) == is_upper, 1.0, 0.0))


@computes_op("bdtr")
def _bdtr(k, n, p):
    return _successes(k, n, p, is_upper=False)


@computes_op("bdtrc")
def _bdtrc(k, n, p):
    return _successes(k, n, p, is_upper=True)


@computes_op("nbdtr")
def _nbdtr(k, n, p):
    return betainc(n + 0 * p, k + 1 + 0 * p, p)


@computes_op("nbdtrc")
def _nbdtrc(k, n, p):
    return betainc(k + 1 + 0 * p, n + 0 * p, 1 - p)
