"""``flatten_products``: a stack of matrices times one matrix as a product of two matrices.

NumPy calls BLAS once for each matrix of a stack, and BLAS copies the other factor at each call.
"""

import math

from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.linalg.contractions import tensordot
from letir.ops.linalg.matmul_einsum import dot, matmul
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.transpose import transpose
from letir.passes.fusion.clustering import MIN_ITEMS

_MAX_ROWS = 64  # of each matrix of the stack: products of more rows are as fast one by one
_MIN_ROWS = 32  # of the whole stack
_MIN_COLUMNS, _MIN_FACTOR = 64, 1 << 14  # of the other factor: its sizes, and its elements
_MAX_OF_ROW = 16  # rows and columns of another factor for which a kernel computes each row


def flatten_products(fn: Lambda) -> Lambda:
    """Multiply all rows of a stack of small matrices by a large matrix at once.

    Bodies do not change. Linear time; ``fn`` itself is returned if it has no such product.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float32[50, 8, 256], %1: float32[256, 128] {
    ...   %2: float32[50, 8, 128] = matmul(%0, %1);
    ...   return %2 }''')
    >>> print(flatten_products(f).listing(), end="")
    %2 = reshape %0, (400, 256), 'C'
    %3 = matmul %2, %1
    %4 = reshape %3, (50, 8, 128), 'C'
    return %4
    """
    products = {bind for bind in fn.binds if bind.op in _PRODUCTS and _is_worth_flattening(bind)}
    if not products:
        return fn
    builder = LetBuilder()
    for bind in fn.binds:
        if bind in products:
            _emit_flat(builder, bind)
        else:
            builder.binds.append(bind)
    return fn.with_binds(builder.binds)


_PRODUCTS = {matmul, dot, tensordot}


def _is_worth_flattening(bind: Bind) -> bool:
    """Whether a bind is a product of a stack of small matrices and one matrix, which saves time if
    all rows are multiplied at once.
    """
    if any(type(arg) is not Local or arg.type is None for arg in bind.args):
        return False
    x, y = (arg.type for arg in bind.args)
    if len(y.shape) != 2 or len(x.shape) < 3 or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    if not is_static_shape((*x.shape, *y.shape)):
        return False
    rows, each = math.prod(x.shape[:-1]), x.shape[-2]
    if bind.op is dot:  # NumPy does not call BLAS
        return bool(rows >= _MIN_ROWS and y.size)
    largest = max(x.size, rows * y.shape[1])
    is_of_rows = largest > _MAX_OF_ROW * x.shape[0]  # matrices of few elements are items themselves
    if rows >= MIN_ITEMS and y.size and max(y.shape) <= _MAX_OF_ROW and is_of_rows:
        return bind.op is matmul or _multiplies_rows(bind)
    is_large = min(y.shape) >= _MIN_COLUMNS and math.prod(y.shape) >= _MIN_FACTOR
    is_stack = each <= _MAX_ROWS and rows >= max(_MIN_ROWS, each + 1)
    return bool(is_large and is_stack and bind.op is matmul)


def _multiplies_rows(bind: Bind) -> bool:
    """Whether a tensordot sums the last axis of its first operand, with one of the second."""
    last, inner = bind.attrs["axes"]
    return len(last) == len(inner) == 1 and last[0] in (-1, len(bind.args[0].type.shape) - 1)


def _emit_flat(builder: LetBuilder, bind: Bind) -> None:
    """Emit a product of matrices in place of the product of a stack."""
    x, y = bind.args
    builder.source = bind.source
    rows = math.prod(x.type.shape[:-1]), x.type.shape[-1]
    (flat,) = builder.emit(reshape, (x,), Attrs(shape=rows, order="C"))
    if bind.op is tensordot and bind.attrs["axes"][1][0] in (1, -1):
        (y,) = builder.emit(transpose, (y,), Attrs(axes=(1, 0)))
    (product,) = builder.emit(matmul, (flat, y))
    attrs = Attrs(shape=bind.binders[0].type.shape, order="C")
    builder.binds.append(bind.replace(op=reshape, args=(product,), attrs=attrs))
