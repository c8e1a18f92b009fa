"""Samples of the operations in ``letir.ops.special.special_functions``, ``bessel`` and
``gamma_gradient``.
"""

from typing import Any

import numpy as np

from letir.testing.samples.sample import EMPTY, FLOAT32, Sample, exempt, nonsmooth, sample_of


def at(*numbers: float, integer: int | None = 1) -> list[Sample]:
    """Samples of a function of one real array, smooth at these numbers."""
    row = np.array(numbers)
    result = [sample_of(row), sample_of(row.astype(FLOAT32)[:1])]
    return result if integer is None else [*result, sample_of(integer)]


def also_complex(*numbers: float) -> list[Sample]:
    """The same for a function that takes complex arrays too."""
    return [*at(*numbers), sample_of(np.array(numbers) + 0.25j)]


def pairs(x: Any, y: Any) -> list[Sample]:
    """Samples of a function of two arrays of shape (2, 3), smooth at these."""
    x, y = np.array(x), np.array(y)
    return [
        sample_of(x, y[0]),
        sample_of(float(x[0, 0]), y),
        sample_of(x[:, :1].astype(FLOAT32), y[0].astype(FLOAT32)),
    ]


def orders(x: Any) -> list[Sample]:
    """Samples of a function of an order and an array."""
    x = np.array(x)
    low = x.astype(FLOAT32)
    return [
        sample_of(np.int64(1), x),
        sample_of(np.int8(2), low),
        sample_of(np.array([2, 3, 0]), x),
        sample_of(2, float(x[1])),
    ]


POSITIVE = [[0.5, 1.25, 2.0], [1.5, 0.75, 3.625]]
OTHERS = [[1.1, 0.43, 2.7], [0.93, 1.3, 0.8]]
WITHIN = [[0.5, 0.25, 0.8], [0.15, 0.75, 0.625]]
AT_ZERO = [nonsmooth(np.zeros(2), np.zeros(2))]
OF_ORDER = [sample_of(np.int64(3), np.array([0.5, 1.25])), sample_of(3, 0.5)]
ROUNDED = "SciPy's complex form rounds a tiny imaginary part"

ONE = {
    **dict.fromkeys(("expit", "log_expit"), at(0.5, -1.5, 30.0)),
    "logit": at(0.5, 0.2, integer=None),
    "exprel": at(0.5, -1.5, 0.03),
    **dict.fromkeys(("cosdg", "sindg", "tandg", "cotdg"), at(30.5, -75.0)),
    **dict.fromkeys(("erf", "erfc", "erfcx", "erfi", "dawsn"), also_complex(0.5, -1.25)),
    "wofz": [sample_of(np.array([0.5 + 0.25j, -1.0 + 1j])), sample_of(0.5 + 1j)],
    **dict.fromkeys(("ndtr", "log_ndtr"), also_complex(0.5, -1.25)),
    "erfinv": at(0.5, -0.75, integer=None),
    "erfcinv": at(0.5, 1.75, integer=None),
    "ndtri": at(0.5, 0.125, integer=None),
    "ndtri_exp": at(-0.5, -40.0, integer=-1),
    "psi": at(0.5, 2.25, -1.5),
    **dict.fromkeys(("gamma", "rgamma"), exempt(at(0.5, 2.25, -1.5), complex_step=ROUNDED)),
    "gammaln": at(0.5, 2.25, -1.5),
    "loggamma": at(0.5, 2.25),
    "gammasgn": [*at(0.5, -1.5), sample_of(EMPTY), sample_of(0.5)],
    "riemann_zeta": exempt(
        [sample_of(np.array([2, 3])), sample_of(2)], named_rows="its derivative has no closed form"
    ),
    "zetac": exempt(
        [sample_of(np.array([2, 3])), sample_of(2)], named_rows="its derivative has no closed form"
    ),
    "entr": at(0.5, 2.25),
    "expi": exempt(also_complex(0.5, 1.25), complex_step=ROUNDED),
    "exp1": also_complex(0.5, 1.25),
    "spence": at(0.5, 1.75, integer=2),
    "wrightomega": also_complex(0.5, -1.25),
    "cosm1": at(0.5, -1.25),
    **dict.fromkeys(("j0", "j1", "bessel_i0", "i1", "i0e", "i1e"), at(0.5, -1.25, 7.0)),
    **dict.fromkeys(("y0", "y1", "k0", "k1", "k0e", "k1e"), at(0.5, 1.25, 7.0)),
    **dict.fromkeys(("exp10", "special_exp2"), at(0.5, -1.25)),
    "special_expm1": also_complex(0.5, -0.25),
    "special_log1p": also_complex(0.5, -0.25),
    "special_cbrt": at(0.5, -1.25),
    "special_round": at(0.25, -1.75),
}
TWO = {
    **dict.fromkeys(("gammainc", "gammaincc", "beta", "betaln", "poch"), pairs(POSITIVE, OTHERS)),
    **dict.fromkeys(("gammaincinv", "gammainccinv"), pairs(POSITIVE, WITHIN)),
    "binom": pairs(np.add(POSITIVE, 3), OTHERS),
    **dict.fromkeys(("rel_entr", "special_kl_div"), pairs(POSITIVE, OTHERS)),
    **dict.fromkeys(("xlogy", "xlog1py"), pairs(POSITIVE, OTHERS) + AT_ZERO),
    "huber": pairs(OTHERS, np.negative(POSITIVE)),
    "pseudo_huber": pairs(OTHERS, POSITIVE),
    **dict.fromkeys(("jv", "yv", "ive"), exempt(orders([0.5, 1.25, 7.0]), complex_step=ROUNDED)),
    **dict.fromkeys(("iv", "kv", "kve"), orders([0.5, 1.25, 7.0])),
    **dict.fromkeys(("yn", "kn", "expn"), OF_ORDER),
    "zeta": [sample_of(np.int64(2), np.array(POSITIVE)), sample_of(3, 0.5)],
    "gamma_slope": exempt(
        [
            nonsmooth(np.array(POSITIVE), np.array(OTHERS), order=1),
            nonsmooth(np.float32(2.5), np.array([0.5, 4.0], FLOAT32), order=1),
            nonsmooth(np.array([2.0, 3e7]), np.array([1.0, 3.001e7]), order=1),
            sample_of(np.array([1, 2]), np.array([1, 3]), order=2),
        ],
        program_difference="its draws by rejection jump",
        program_second_derivative="it is a derivative itself, and has only one",
    ),
}
SLOPES_OF_BETA = exempt(
    [
        nonsmooth(np.array(POSITIVE), np.array(OTHERS), np.array([0.1, 0.5, 0.9]), by_a=1, by_b=0),
        nonsmooth(np.array([[1.5], [40.0]]), 0.5, np.array([0.25, 0.75]), by_a=0, by_b=1),
        nonsmooth(np.float32(2.5), np.array([0.5, 4.0], FLOAT32), 0.5, by_a=1, by_b=0),
        sample_of(np.array([1, 2]), np.array([1, 3]), 0.5, by_a=1, by_b=1),
        sample_of(2, np.array([1, 3]), np.array([0.5, 0.8]), by_a=2, by_b=0),
    ],
    program_second_derivative="it is a derivative itself, and has only one",
)
FREEDOMS = [
    sample_of(np.array([2, 8]), 3, np.array([0.5, 2.25])),
    sample_of(np.array([2.5, 8.0]), 3.0, np.array([0.5, 2.25])),
    sample_of(np.float32(2.5), np.array([3.0, 0.75], FLOAT32), np.float32(0.5)),
]
COUNTS = [sample_of(np.array([0, 3]), np.array([0.5, 2.25]))]
TRIALS = [
    sample_of(np.array([0, 3]), np.array([5, 6]), np.array([0.25, 0.5])),
    sample_of(2, 5, 0.25),
    sample_of(np.array([0, 4]), 4, 0.5),
]
BETAS = [sample_of(2, np.array([3, 1]), np.array([0.5, 0.25])), sample_of(2, 3, 0.25)]
SAMPLES = {
    **ONE,
    **TWO,
    **dict.fromkeys(("betainc", "betaincc", "betaincinv", "betainccinv"), BETAS),
    "betainc_slope": SLOPES_OF_BETA,
    **dict.fromkeys(("fdtr", "fdtrc"), FREEDOMS),
    "fdtri": [
        sample_of(np.array([2, 8]), 3, np.array([0.5, 0.25])),
        sample_of(np.array([2.5, 8.0]), 3.0, np.array([0.5, 0.25])),
    ],
    **dict.fromkeys(("gdtr", "gdtrc"), FREEDOMS),
    **dict.fromkeys(("chdtr", "chdtrc", "chdtri"), pairs(OTHERS, WITHIN)),
    **dict.fromkeys(("pdtr", "pdtrc"), COUNTS),
    **dict.fromkeys(("bdtr", "bdtrc", "nbdtr", "nbdtrc"), TRIALS),
    "polygamma": [
        sample_of(np.array(POSITIVE), n=1),
        sample_of(np.float32(2.5), n=2),
        sample_of(np.int64(2), n=0),
    ],
}
