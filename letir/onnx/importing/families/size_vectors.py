"""Operators on vectors of sizes of which some are symbolic: ``ON_SIZES``.

Models compute shapes by operators, as in Shape, Gather, Concat, Reshape.
"""

import math
from typing import Any

import numpy as np

from letir.ast.sizes.size import sizes_differ
from letir.ast.types import Size
from letir.errors import ShapeError
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import as_array, vector_of_sizes


def _sizes_equal(a: Any, b: Any) -> Any:
    """Equal of vectors of sizes. Raises ShapeError if it depends on the symbolic sizes."""
    a, b = np.broadcast_arrays(a, b)
    result = [_same_size(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    return np.array(result, bool).reshape(a.shape)


def _same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal; a symbolic size is never negative or 0."""
    sizes = [n for n in (a, b) if type(n) is Size]
    if not sizes:
        return bool(a == b)
    size, other = sizes[0], b if type(a) is Size else a
    if type(other) is not Size and other <= 0:
        return False
    differ = sizes_differ(size, other)
    if differ is None:
        raise ShapeError(
            f"the model asks whether the size {size} is {other}, which is not known\n"
            "  give the size a number: letir.onnx.load(model, sizes={...}), or pass args"
        )
    return not differ


def _sizes_where(condition: Any, a: Any, b: Any) -> Any:
    """Where, of vectors of sizes."""
    condition, a, b = np.broadcast_arrays(condition, a, b)
    pairs = zip(condition.ravel(), a.ravel(), b.ravel(), strict=True)
    return vector_of_sizes([x if c else y for c, x, y in pairs]).reshape(a.shape)


def _sizes_cast(x: Any, **attrs: Any) -> Any:
    """Cast of a vector of sizes to integers."""
    to = dtype_of(attrs["to"])
    return x if to.kind in "iu" else as_array(x).astype(to)


def _sizes_product(x: Any, axes: Any = None, **attrs: Any) -> Any:
    """ReduceProd of a vector of sizes."""
    result = vector_of_sizes([math.prod(x.ravel())])
    return result if attrs.get("keepdims", 1) else result.reshape(())


def _sizes_gather(x: Any, indices: Any, axis: int = 0) -> Any:
    """Gather from a vector of sizes."""
    result = x[indices]
    return result if type(result) is np.ndarray else vector_of_sizes([result]).reshape(())


def _sizes_remainder(a: Any, b: Any, fmod: int = 0) -> Any:
    """Mod of vectors of sizes; with ``fmod`` of their numbers."""
    return np.fmod(as_array(a), as_array(b)) if fmod else np.mod(a, b)


# {operator: the function that replaces it for vectors with symbolic sizes}
ON_SIZES: dict[str, Any] = {
    **{"Equal": _sizes_equal, "Where": _sizes_where, "Cast": _sizes_cast},
    **{"ReduceProd": _sizes_product, "Gather": _sizes_gather},
    **{"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide},
    **{"Mod": _sizes_remainder, "Identity": lambda x: x},
}
# operators whose usual functions take vectors with symbolic sizes
TAKES_SIZES = frozenset(
    [
        *("Reshape", "Squeeze", "Unsqueeze", "Concat", "Slice", "ConstantOfShape", "Expand"),
        *("Tile", "Range", "Shape", "Split", "Flatten"),
        *("If", "Loop", "Scan", "SequenceConstruct", "SequenceInsert", "SequenceAt"),
        *("Resize", "Upsample", "OneHot", "Pad", "TopK", "CenterCropPad"),
    ]
)
