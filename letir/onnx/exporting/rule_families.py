"""Imports all export rules; ``fail_unless_guards_hold`` makes models fail where guards fail."""

from collections.abc import Sequence

import numpy as np

from letir.onnx.exporting import (
    control_nodes,
    effect_nodes,
    elementwise_nodes,
    extremum_nodes,
    index_nodes,
    layer_nodes,
    product_nodes,
    reduction_nodes,
    shape_nodes,
    shift_nodes,
)
from letir.onnx.exporting.complex_numbers import fourier_nodes
from letir.onnx.exporting.node_graph import Graph
from letir.onnx.exporting.programs import (
    array_programs,
    bessel_programs,
    beta_programs,
    distribution_programs,
    elementary_programs,
    error_function_programs,
    gamma_programs,
    matrix_programs,
    series_programs,
    spectral_programs,
)

_FAMILIES = (
    *(effect_nodes, fourier_nodes),
    *(
        control_nodes,
        elementwise_nodes,
        extremum_nodes,
        index_nodes,
        layer_nodes,
        product_nodes,
        reduction_nodes,
    ),
    *(shape_nodes, shift_nodes, elementary_programs, series_programs, error_function_programs),
    *(array_programs, bessel_programs, beta_programs, distribution_programs, gamma_programs),
    matrix_programs,
    spectral_programs,
)


def fail_unless_guards_hold(g: Graph, results: Sequence[str]) -> list[str]:
    """The results, made to fail at run time if a guard's condition is false.

    ONNX has no assertions. Instead a node, named for the user's line, reads an element at index 0
    if the condition holds, else at an index that does not exist.
    """
    results = list(results)
    for number, (holds, bind, recorded) in enumerate(g.checks):
        place = "" if bind.source is None else f" at {bind.source.short}"
        g.bind = bind
        at = g("Where", holds, g.array(0, np.int64), g.array(1 + number, np.int64))
        name = f"the model was recorded where this was {recorded}{place}"
        for i, result in enumerate(results):
            results[i] = g("Gather", g.unsqueeze(result, [0]), at, axis=0)
            g.nodes[-1].name = g.names.new(name)
    g.bind = None
    return results
