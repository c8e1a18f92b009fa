"""Samples of the operations in ``letir.ops.elementwise.python_operators``."""

from letir.testing.samples.sample import exempt, of, rough

SAMPLES = {
    "python_operator": exempt(
        [
            of(2.0, 0.5, operator="div", kind="float"),
            of(2, 3, operator="div", kind="float"),
            of(1 + 2j, 2.0, operator="div", kind="complex"),
            of(2.5, 0.7, operator="floor_divide", kind="float"),
            of(7, -3, operator="floor_divide", kind="int"),
            of(2.5, 0.7, operator="remainder", kind="float"),
            of(7, -3, operator="remainder", kind="int"),
            of(2.5, 0.7, operator="power", kind="float"),
            of(-4.0, 0.5, operator="power", kind="complex"),
            of(2, 3, operator="power", kind="int"),
            of(2, -1, operator="power", kind="float"),
            of(3, 2, operator="left_shift", kind="int"),
            *exempt(
                [
                    of(2.671, 2, operator="round", kind="float"),
                    rough(2.675, 2, operator="round", kind="float"),  # a tie
                    of(25, -1, operator="round", kind="int"),
                ],
                batch="the number of digits is a parameter here, and has to be a number",
            ),
            of(-9, 2, operator="right_shift", kind="int"),
        ],
        named_rows="its operands are two numbers",
        complex_step="the kind of the result is recorded",
    ),
}
