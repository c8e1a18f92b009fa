"""What operations mean: one ``Primitive`` record each, one file a family.

Importing it fills the table of primitives.
"""

from letir.ops import (
    bodies,
    casting,
    control,
    elementwise,
    indexing,
    loops,
    neural,
    products,
    reductions,
    scans,
    scripted,
    shaping,
    sizes,
)

FAMILIES = (
    *(elementwise, casting, sizes, shaping, reductions, scans),
    *(indexing, products, neural, control, loops, bodies, scripted),
)
