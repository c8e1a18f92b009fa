"""What operations mean: one ``Primitive`` record each, one file a family. Importing it fills the table."""

from letir.ops import control, elementwise, indexing, neural, products, reductions, shaping, sizes

FAMILIES = (elementwise, sizes, shaping, reductions, indexing, products, neural, control)
