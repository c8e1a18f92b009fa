"""What operations mean: one ``Primitive`` record each, one file a family.

Importing it fills the table of primitives with ``FAMILIES``. Those of ``RARE``, by their names, are
loaded when somebody asks for an operation or a NumPy function that the others do not have: most
programs need none of them, and their import would cost more than a first trace does.
"""

import functools
import importlib
from types import ModuleType

from letir.ast.primitive import LATE_BOUND
from letir.ops import (
    bodies,
    casting,
    control,
    elementwise,
    indexing,
    loops,
    memory,
    products,
    quotients,
    reductions,
    scans,
    scripted,
    shaping,
    sizes,
)

FAMILIES = (
    *(elementwise, quotients, casting, sizes, shaping, reductions, scans),
    *(indexing, products, control, loops, bodies, scripted, memory),
)
RARE = (
    "draws",
    "distributions",
    "random_picks",
    "special",
    "bessel",
    "gamma_slope",
    "shaped_draws",
    "densities",
    "matrix_functions",
    "ode",
    "generators",
    "conditionals",
    "repetition",
    "neural",
    "activations",
    "normal",
    "losses",
    "distances",
    "attention",
    "normalization",
    "pooling",
    "convolutions",
    "error_states",
    "fused",
    "curves",
    "angles",
    "precision",
    "floats",
    "integers",
    "folds",
    "fourier",
    "updates",
    "statistics",
    "covariance",
    "arranging",
    "taking",
    "sorting",
    "padding",
    "spacing",
    "numbering",
    "windows",
    "printing",
    "selecting",
    "cumulative",
    "nan_reductions",
    "searching",
    "differences",
    "interpolation",
    "contractions",
    "singular_values",
    "linalg",
    "decompositions",
    "eigen",
    "norms",
    "least_squares",
    "signals",
    "vectors",
    "quantiles",
    "histograms",
    "polynomials",
    "differentiable",
    "scanning",
    "combinators",
    "scattering",
)


@functools.cache  # asked at every miss
def load_rare() -> tuple[ModuleType, ...]:
    """The families of ``RARE``, loaded now."""
    return tuple([importlib.import_module(f"letir.ops.{name}") for name in RARE])


LATE_BOUND["load_rare"] = load_rare
