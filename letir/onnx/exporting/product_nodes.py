"""Products of matrices."""

import string

import numpy as np

from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind
from letir.onnx.exporting.elementwise_nodes import is_not
from letir.onnx.exporting.node_graph import Graph, exports_op, result_types
from letir.onnx.exporting.reduction_nodes import wide_dtype


@exports_op("matmul")
def _matmul(g: Graph, bind: Bind) -> str:
    return _product(g, bind, "MatMul")


@exports_op("dot")
def _dot(g: Graph, bind: Bind) -> str:
    x, y = (arg.type.ndim for arg in bind.args)
    if min(x, y) == 0:
        return _product(g, bind, "Mul")
    if y <= 2:
        return _product(g, bind, "MatMul")
    # the last axis of x, the second to last of y
    left = "abcdefgh"[: x - 1]
    right = "pqrstuvw"[: y - 2]
    equation = f"{left}z,{right}zy->{left}{right}y"
    return _product(g, bind, "Einsum", equation=equation)


@exports_op("einsum")
def _einsum(g: Graph, bind: Bind) -> str:
    (result,) = result_types(bind)
    is_static = all(is_static_shape(aval.shape) for aval in (result, *[a.type for a in bind.args]))
    if is_static and any(0 in arg.type.shape for arg in bind.args):
        return g.array(np.zeros(result.shape, result.dtype))  # onnxruntime would divide by 0
    return _product(g, bind, "Einsum", equation=_without_ellipsis(bind))


def _without_ellipsis(bind: Bind) -> str:
    """The subscripts with letters in place of ``...``.

    In NumPy ``...`` may stand for fewer axes in one operand than in another, in ONNX not.
    """
    subscripts = bind.attrs["subscripts"].replace(" ", "")
    if "..." not in subscripts:
        return subscripts
    terms, _, result = subscripts.partition("->")
    free = [c for c in string.ascii_letters if c not in subscripts]
    ranks = [
        arg.type.ndim - len(term) + 3 if "..." in term else 0
        for term, arg in zip(terms.split(","), bind.args, strict=True)
    ]
    letters = "".join(free[: max(ranks)])
    filled = [
        term.replace("...", letters[len(letters) - rank :])
        for term, rank in zip(terms.split(","), ranks, strict=True)
    ]
    return f"{','.join(filled)}->{result.replace('...', letters)}"


def _product(g: Graph, bind: Bind, kind: str, **attrs) -> str:
    result_dtype = result_types(bind)[0].dtype
    wide = wide_dtype(result_dtype)
    names, ranks = g.operands(bind, wide), [arg.type.ndim for arg in bind.args]
    if kind == "MatMul" and 1 in ranks:
        result = _vector_product(g, names, ranks)
    else:
        result = g(kind, *names, **attrs)
    if result_dtype.kind == "b":
        return is_not(g, result, wide, 0)
    return g.cast(result, wide, np.dtype(result_dtype))


def _vector_product(g: Graph, names: list[str], ranks: list[int]) -> str:
    """A product with vectors, as matrices of one row or column.

    onnxruntime 1.32 merges a Transpose into MatMul wrongly if the other operand is a vector.
    """
    (x, y), (left, right) = names, ranks
    x = g.unsqueeze(x, [0]) if left == 1 else x
    y = g.unsqueeze(y, [1]) if right == 1 else y
    rank = max(left, right, 2)
    dropped = [rank - 2] * (left == 1) + [rank - 1] * (right == 1)
    return g.squeeze(g("MatMul", x, y), dropped)
