"""Complex values as pairs of real values, at the inputs and outputs of graphs.

The name of a complex value is the name of its real part; ``Graph.imaginary`` has the name of the
imaginary part. Complex inputs and outputs of a model have a last axis of length 2, as in DFT.
"""

from collections.abc import Callable, Iterable

import numpy as np

from letir.ast.terms import Local
from letir.ast.types import ArrayType
from letir.onnx.exporting.node_graph import Graph, is_complex, real_dtype


def real_type(aval: ArrayType) -> ArrayType:
    """The type of the parts of a complex type; other types are returned unchanged."""
    return ArrayType(real_dtype(aval.dtype), aval.shape) if is_complex(aval) else aval


def flat_values(g: Graph, values: Iterable[tuple[str, ArrayType]]) -> list[tuple[str, ArrayType]]:
    """Names and types of values, with both parts of complex ones."""
    result = []
    for name, kind in values:
        parts = g.parts(name) if is_complex(kind) else (name,)
        result += [(part, real_type(kind)) for part in parts]
    return result


def flat_kinds(avals: Iterable[ArrayType]) -> list[ArrayType]:
    """The types of values; of a complex value, the types of both parts."""
    return [part for aval in avals for part in [real_type(aval)] * (1 + is_complex(aval))]


def paired_values(g: Graph, names: Iterable[str], avals: Iterable[ArrayType]) -> list[str]:
    """The values whose parts have these names, in order."""
    remaining = iter(names)
    return [
        g.paired(next(remaining), next(remaining)) if is_complex(aval) else next(remaining)
        for aval in avals
    ]


def real_pairs(aval: ArrayType) -> ArrayType:
    """The type of an input or output: a last axis of both parts for complex numbers."""
    return ArrayType(real_dtype(aval.dtype), (*aval.shape, 2)) if is_complex(aval) else aval


def complex_input(g: Graph, param: Local, name: str) -> str:
    """The value of a parameter, of both parts of an input if it is complex."""
    return split_parts(g, name) if is_complex(param.type) else name


def complex_output(g: Graph, name: str, aval: ArrayType | None) -> str:
    """The value for an output, of both parts if it is complex."""
    return join_parts(g, name) if aval is not None and is_complex(aval) else name


def emit_on_parts(g: Graph, name: str, aval: ArrayType, emit: Callable[[str], str]) -> str:
    """``emit(name)``, for a complex value of each part."""
    return g.paired(*map(emit, g.parts(name))) if is_complex(aval) else emit(name)


def join_parts(g: Graph, name: str) -> str:
    """A complex value as one array with a last axis of both parts."""
    return g("Concat", *[g.unsqueeze(part, [-1]) for part in g.parts(name)], axis=-1)


def split_parts(g: Graph, name: str) -> str:
    """An array with a last axis of both parts as a complex value."""
    return g.paired(*[g("Gather", name, g.array(i, np.int64), axis=-1) for i in (0, 1)])
