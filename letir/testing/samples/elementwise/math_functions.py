"""Samples of the operations in ``letir.ops.elementwise.math_functions``."""

from letir.testing.samples.sample import exempt, sample_of

_OF_ONE = """asin atan atanh cos cosh degrees erf erfc exp expm1 fabs gamma lgamma log log10 log1p
log2 radians sin sinh sqrt tan tanh acos asinh"""
_OF_TWO = "atan2 copysign fmod hypot pow"

_OF_COMPLEX = """acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh"""

SAMPLES = {
    "complex_math_function": exempt(
        [
            *(sample_of(0.7 + 0.4j, name=name) for name in _OF_COMPLEX.split()),
            sample_of(1.5, 0.7, name="rect"),
            sample_of(0.7 + 0.4j, 2.5 - 0.3j, name="log"),
        ],
        named_rows="its operands are numbers",
    ),
    "math_function": exempt(
        [
            *(sample_of(0.7, name=name) for name in _OF_ONE.split()),
            *(sample_of(2.5, 0.7, name=name) for name in _OF_TWO.split()),
            sample_of(1.5, name="acosh"),
        ],
        named_rows="its operands are numbers",
    ),
    "math_reduction": exempt(
        [sample_of(0.7, 2.5, -1.5, name="fsum"), sample_of(0.7, 2.5, -1.5, name="hypot")],
        named_rows="its operands are numbers",
    ),
}
