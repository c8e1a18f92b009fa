"""``decompose_addmm``: splits ``linear`` into a matrix product and a sum."""

from letir.ast import entry_point
from letir.ast.terms import NO_TYPE, Bind, Lambda
from letir.ops.nn.embedding_linear_dropout import linear
from letir.passes.decomposition import without_composites


@entry_point
def decompose_addmm(fn: Lambda) -> Lambda:
    """Replace ``linear``, a matrix product with a bias, by a product and a sum.

    Then the sum can be fused with elementwise operations that follow. letir's record has no factors
    alpha and beta (they are 1). A ``linear`` without a bias stays.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3], %1: float64[2, 3], %2: float64[2] {
    ...   %3: float64[2] = linear(%0, %1, %2);
    ...   return %3 }''')
    >>> print(decompose_addmm(f).listing(), end="")
    %3 = transpose %1, None
    %4 = matmul %0, %3
    %5 = add %4, %2
    return %5
    """
    return without_composites(fn, lambda op: op is linear, _has_bias)


def _has_bias(bind: Bind) -> bool:
    """Whether a ``linear`` has a bias."""
    return len(bind.args) == 3 and all(arg.type is not NO_TYPE for arg in bind.args)
