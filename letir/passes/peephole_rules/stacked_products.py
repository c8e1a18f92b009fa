"""``flatten_products``: a stack of matrices times one matrix as a product of two matrices.

NumPy calls BLAS once for each matrix of a stack, and BLAS copies the other factor at each call.
"""

import math

from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.linalg.matmul_einsum import matmul
from letir.ops.shape.reshape_and_ravel import reshape

_MOST_ROWS = 64  # of each matrix of the stack: products of more rows are as fast one by one
_LEAST_ROWS = 32  # of the whole stack
_LEAST_COLUMNS, _LEAST_FACTOR = 64, 1 << 14  # of the other factor: its sizes, and its elements


def flatten_products(fn: Lambda) -> Lambda:
    """Multiply all rows of a stack of small matrices by a large matrix at once.

    Bodies stay as they are. Linear time; ``fn`` itself is returned if it has no such product.

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
    found = [bind for bind in fn.binds if bind.op is matmul and _is_worth_flattening(bind)]
    if not found:
        return fn
    flattened, builder = set(map(id, found)), LetBuilder()
    for bind in fn.binds:
        if id(bind) in flattened:
            _emit_flat(builder, bind)
        else:
            builder.binds.append(bind)
    return fn.with_binds(builder.binds)


def _is_worth_flattening(bind: Bind) -> bool:
    """Whether a bind is a product of a stack of small matrices and one large matrix."""
    x, y = (arg.type for arg in bind.args)
    if any(type(arg) is not Local or arg.type is None for arg in bind.args):
        return False
    if len(y.shape) != 2 or len(x.shape) < 3 or x.dtype != y.dtype or x.dtype.kind not in "fc":
        return False
    if not is_static_shape((*x.shape, *y.shape)):
        return False
    rows, each = math.prod(x.shape[:-1]), x.shape[-2]
    is_large = min(y.shape) >= _LEAST_COLUMNS and math.prod(y.shape) >= _LEAST_FACTOR
    return bool(is_large and each <= _MOST_ROWS and rows >= max(_LEAST_ROWS, each + 1))


def _emit_flat(builder: LetBuilder, bind: Bind) -> None:
    """Emit a product of matrices in place of the product of a stack."""
    x, y = bind.args
    builder.source = bind.source
    rows = math.prod(x.type.shape[:-1]), x.type.shape[-1]
    (flat,) = builder.emit(reshape, (x,), Attrs(shape=rows, order="C"))
    (product,) = builder.emit(matmul, (flat, y))
    attrs = Attrs(shape=bind.binders[0].type.shape, order="C")
    builder.binds.append(bind.replace(op=reshape, args=(product,), attrs=attrs))
