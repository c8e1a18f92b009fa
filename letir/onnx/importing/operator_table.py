"""The table of operators: a function of arrays for each operator of ONNX.

A function takes the inputs in order (None for one that is left out) and the attributes by name, and
returns a result or a tuple. With a parameter ``opset`` it gets the version of the operators, with
``outputs`` the number of results that the node names. An operator without a function here is
replaced by the function that ONNX itself defines for it, if there is one.
"""

from typing import Any

from letir.onnx.importing.families import (
    activations,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    losses,
    normalizations,
    pooling,
    products,
    quantization,
    recurrent,
    reductions,
    resizing,
    sampling,
    sequences,
    shapes,
    signal,
    size_vectors,
)
from letir.onnx.importing.families.ml import linear, support_vectors, trees

_FAMILIES = (
    *(
        activations,
        control_flow,
        convolutions,
        elementwise,
        indexing,
        losses,
        normalizations,
        pooling,
    ),
    *(products, quantization, recurrent, reductions, resizing, sampling, sequences),
    *(shapes, signal),
)
OPERATORS: dict[tuple[str, str], Any] = {
    ("", name): run for family in _FAMILIES for name, run in family.OPERATORS.items()
}
OPERATORS |= {
    ("ai.onnx.ml", name): run
    for table in (
        *(indexing.ML_OPERATORS, linear.OPERATORS, support_vectors.OPERATORS, trees.OPERATORS),
    )
    for name, run in table.items()
}
SHAPE_OPERATORS, ON_SIZES = size_vectors.TAKES_SIZES, size_vectors.ON_SIZES
