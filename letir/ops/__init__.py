"""What operations mean: one ``Primitive`` record each, one file a family.

Importing it fills the table of primitives with ``FAMILIES``. Those of ``RARE``, by their names, are
loaded when somebody asks for an operation or a NumPy function that the others do not have: most
programs need none of them, and their import would cost more than a first trace does.
"""

import functools
import importlib
from types import ModuleType

from letir.ast.primitive import LATE_BOUND
from letir.ops.autodiff import checkpoint_and_custom_jvp, gradient_steps, scripted
from letir.ops.control_flow import loop_over_examples
from letir.ops.define import safe_division
from letir.ops.effects import writes_to_arguments
from letir.ops.elementwise import casting, ufuncs
from letir.ops.indexing import basic
from letir.ops.linalg import matmul_einsum
from letir.ops.reductions import cumulative, reductions
from letir.ops.shape import shape_and_creation, transpose_join_split

FAMILIES = (
    *(
        ufuncs,
        safe_division,
        casting,
        shape_and_creation,
        transpose_join_split,
        reductions,
        cumulative,
    ),
    *(
        basic,
        matmul_einsum,
        gradient_steps,
        loop_over_examples,
        checkpoint_and_custom_jvp,
        scripted,
        writes_to_arguments,
    ),
)
RARE = (
    "random.keys_and_draws",
    "random.distributions",
    "random.permutation_choice",
    "special.special_functions",
    "special.bessel",
    "special.gamma_gradient",
    "random.gamma_and_truncated",
    "special.densities",
    "linalg.matrix_functions",
    "control_flow.odeint",
    "random.numpy_generator",
    "control_flow.conditionals",
    "control_flow.while_and_fori",
    "nn.embedding_linear_dropout",
    "nn.activations",
    "special.normal_cdf",
    "nn.losses",
    "nn.attention",
    "nn.normalization",
    "nn.pooling",
    "nn.convolution",
    "effects.errstate",
    "elementwise.fused",
    "elementwise.sinc_and_i0",
    "elementwise.floating",
    "elementwise.rounding",
    "elementwise.integer",
    "reductions.ufunc_methods",
    "signal.fourier_transforms",
    "indexing.ufunc_at",
    "reductions.variance_and_average",
    "reductions.covariance",
    "shape.repeat_and_diagonal",
    "indexing.take",
    "indexing.sorting",
    "shape.padding",
    "shape.linspace",
    "indexing.index_encoding",
    "shape.sliding_windows",
    "effects.printing",
    "indexing.data_dependent",
    "reductions.cumulative",
    "reductions.nan_reductions",
    "indexing.searchsorted",
    "signal.finite_differences",
    "signal.interpolation",
    "linalg.contractions",
    "linalg.svd",
    "linalg.solve_inv_det",
    "linalg.cholesky_qr",
    "linalg.eigen",
    "linalg.norms",
    "linalg.least_squares",
    "signal.convolve_correlate",
    "linalg.cross_kron_vander",
    "reductions.quantiles",
    "reductions.histograms",
    "signal.polynomials",
    "autodiff.subgraph",
    "control_flow.scans",
    "control_flow.map_reduce",
    "control_flow.scattered_updates",
)


@functools.cache  # asked at every miss
def load_rare() -> tuple[ModuleType, ...]:
    """The families of ``RARE``, loaded now."""
    return tuple([importlib.import_module(f"letir.ops.{name}") for name in RARE])


LATE_BOUND["load_rare"] = load_rare
