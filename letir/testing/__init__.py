"""Tools for tests of array programs: comparison to the last bit, checks of derivatives, samples.

    assert_same(expected, found)    kind, dtype, shape and bits
    check_grads(f, args)            derivatives of any order against differences
    SAMPLES["tanh"]                 inputs on which an operation is tested
    @given(programs())              Hypothesis: a program and its arguments
    @given(functions())             Hypothesis: a NumPy function and its arguments
    @given(control_functions())     Hypothesis: a function with lt.cond, lt.scan ..., and arguments

The strategies ``arrays``, ``avals``, ``control_functions``, ``functions`` and ``programs`` need
Hypothesis, imported on first use.
"""

from letir.ast import load_name
from letir.testing.assertions import assert_close, assert_same
from letir.testing.gradient_checks import check_grads
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import Sample, applied_program

__all__ = [
    "SAMPLES",
    "Sample",
    "applied_program",
    "arrays",
    "assert_close",
    "assert_same",
    "avals",
    "check_grads",
    "control_functions",
    "functions",
    "programs",
]

_STRATEGIES = {
    "arrays": "strategies",
    "avals": "strategies",
    "control_functions": "control_sources",
    "functions": "sources",
    "programs": "strategies",
}


def __getattr__(name: str):
    return load_name(__name__, _STRATEGIES, name)


def __dir__() -> list[str]:
    return __all__
