"""``SAMPLES``: the inputs on which each operation is tested, a file for each file of ``letir.ops``.

Adding an operation is its record and its samples here. Together the samples of a record cover 0-d,
empty and broadcast operands, negative axes and tuples of them, ``keepdims``, masks, ties, Python
numbers, single and half precision, integers, and complex numbers where the operation takes them.
Derivatives exist at a sample and agree with differences there, unless it is ``rough``.
"""

from letir.ops import load_rare
from letir.testing.samples import (
    activations,
    arranging,
    attention,
    bodies,
    casting,
    combinators,
    conditionals,
    contractions,
    control,
    convolutions,
    covariance,
    cumulative,
    curves,
    differences,
    differentiable,
    draws,
    elementwise,
    error_states,
    floats,
    folds,
    fourier,
    fused,
    histograms,
    indexing,
    integers,
    interpolation,
    linalg,
    loops,
    losses,
    memory,
    nan_reductions,
    neural,
    normalization,
    numbering,
    padding,
    polynomials,
    pooling,
    printing,
    products,
    quantiles,
    quotients,
    reductions,
    repetition,
    scanning,
    scans,
    scattering,
    scipy,
    scripted,
    searching,
    selecting,
    shaping,
    signals,
    sizes,
    sorting,
    spacing,
    special,
    statistics,
    taking,
    updates,
    vectors,
    windows,
)
from letir.testing.samples.sample import Sample

load_rare()  # whoever goes through all records means these too
FAMILIES = (
    *(elementwise, quotients, casting, sizes, shaping, reductions, statistics, scans),
    *(indexing, products, control, bodies, loops, scripted),
    *(neural, activations, losses, attention, normalization, convolutions, pooling),
    *(arranging, taking, sorting, padding, spacing, numbering, windows),
    *(printing,),
    *(curves, error_states, fused, floats, integers, folds, fourier, updates),
    *(memory,),
    *(covariance,),
    *(contractions, linalg),
    *(draws, special, scipy),
    *(selecting,),
    *(
        cumulative,
        nan_reductions,
    ),
    *(
        searching,
        differences,
        interpolation,
    ),
    *(
        signals,
        vectors,
    ),
    *(quantiles,),
    *(histograms,),
    *(polynomials,),
    *(differentiable,),
    *(conditionals, repetition, scanning, combinators, scattering),
)
SAMPLES: dict[str, list[Sample]] = {
    name: samples for family in FAMILIES for name, samples in family.SAMPLES.items()
}
