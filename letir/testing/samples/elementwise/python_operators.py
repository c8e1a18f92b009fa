"""Samples of the operations in ``letir.ops.elementwise.python_operators``."""

from letir.testing.samples.sample import exempt, nonsmooth, sample_of

SAMPLES = {
    "python_operator": exempt(
        [
            sample_of(2.0, 0.5, operator="div", kind="float"),
            sample_of(2, 3, operator="div", kind="float"),
            sample_of(1 + 2j, 2.0, operator="div", kind="complex"),
            sample_of(1 + 2j, 3 - 0.5j, operator="mul", kind="complex"),
            sample_of(2.5, 0.7, operator="floor_divide", kind="float"),
            sample_of(7, -3, operator="floor_divide", kind="int"),
            sample_of(2.5, 0.7, operator="remainder", kind="float"),
            sample_of(7, -3, operator="remainder", kind="int"),
            sample_of(2.5, 0.7, operator="power", kind="float"),
            sample_of(-4.0, 0.5, operator="power", kind="complex"),
            sample_of(2, 3, operator="power", kind="int"),
            sample_of(2, -1, operator="power", kind="float"),
            sample_of(3, 2, operator="left_shift", kind="int"),
            *exempt(
                [
                    sample_of(2.671, 2, operator="round", kind="float"),
                    nonsmooth(2.675, 2, operator="round", kind="float"),  # a tie
                    sample_of(25, -1, operator="round", kind="int"),
                ],
                batch="the number of digits is a parameter here, and has to be a number",
            ),
            sample_of(-9, 2, operator="right_shift", kind="int"),
        ],
        named_rows="its operands are two numbers",
        complex_step="the kind of the result is recorded",
    ),
}
