"""``optimized``: the pipeline from a recorded program to the one that a plan is made of [F3].

First what every plan needs, then what makes programs smaller. Where a gradient is needed the
differentiable parts are cut out, and the last passes run on each of them; else on the whole.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial

from letir.ad.symbolic_zeros import decides, lower_grad_of, specialize_undef
from letir.ast.gc_pause import paused_gc
from letir.ast.terms import Lambda
from letir.executor.autodiff.subgraphs import (
    create_autodiff_subgraphs,
    finished_subgraphs,
    inline_autodiff_subgraphs,
    might_require_grad,
)
from letir.passes.canonicalization import canonicalize_ops
from letir.passes.constant_folding import constant_propagation
from letir.passes.cse import common_subexpressions, constant_pooling
from letir.passes.dead_code_elimination import dead_code
from letir.passes.decomposition import decompose
from letir.passes.fusion.fusing import fuse
from letir.passes.implicit_broadcast import remove_implicit_expands
from letir.passes.inlining import inline_bodies, without_barriers
from letir.passes.loops.invariant_motion import loop_invariants
from letir.passes.loops.unrolling import unroll
from letir.passes.matmul_batching import batch_matmuls
from letir.passes.memory.consumed_operands import in_place_check
from letir.passes.peephole_rules.driver import peephole
from letir.passes.pipeline import Pipeline, registered, run
from letir.passes.type_propagation import propagate_shapes


def specialize_zeros(fn: Lambda, defined: Sequence[bool | None] | None = None) -> Lambda:
    """``fn`` without the ``grad_of`` and ``autograd_add`` that need not wait for the run.

    ``defined``: what is known of the parameters; where it is not given, those of known types are.
    """
    if not fn.memo(decides):
        return fn
    if defined is None:
        defined = [True if param.type is not None else None for param in fn.params]
    found = specialize_undef(fn, defined)
    return Lambda(found.params, found.binds, found.ret, fn.in_tree, fn.out_tree)


def _required(defined: Sequence[bool | None] | None = None) -> Pipeline:
    """The passes without which a program may not run, or not as it should."""
    zeros = specialize_zeros if defined is None else partial(specialize_zeros, defined=defined)
    return zeros, lower_grad_of, remove_implicit_expands, canonicalize_ops, dead_code


_SIMPLIFYING: Pipeline = (
    *(constant_propagation, inline_bodies, propagate_shapes),
    *(dead_code, common_subexpressions, constant_pooling, peephole, constant_propagation),
    *(loop_invariants, unroll, common_subexpressions, in_place_check),
)
# rules need not be kept where no derivative is taken any more
_PARTS: Pipeline = tuple([partial(pass_, keep_rules=False) for pass_ in (inline_bodies, decompose)])


def _finishing(exact: bool) -> Pipeline:
    """The passes after which a program is no longer what a derivative is taken of."""
    # batched products may sum in another order
    return (*_PARTS, fuse) if exact else (*_PARTS, batch_matmuls, fuse)


@paused_gc()
def optimized(
    fn: Lambda,
    *,
    requires_grad: Sequence[bool] | None = None,
    defined: Sequence[bool | None] | None = None,
    optimize: bool = True,
    exact: bool = False,
    observe: Callable | None = None,
) -> Lambda:
    """``fn`` as a plan runs it: the same parameters and results, in fewer and cheaper steps.

    ``requires_grad``: the parameters of which gradients may be asked; then differentiable parts are
    ``differentiable_graph`` binds. ``defined``: which parameters are not ``Undef``. Without
    ``optimize`` only the required passes run; ``exact`` leaves out what sums in another order.
    ``observe(name, before, after, seconds)`` sees every pass. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0: float64[] { %1: float64[] = exp(%0); return %0 }")
    >>> print(optimized(f).listing(), end="")
    return %0
    """
    step = partial(run, observe=observe)
    if not optimize:
        return step(_required(defined), fn)
    fn = step((*registered("before"), *_required(defined), *_SIMPLIFYING), fn)
    last = (*registered("after"), *_finishing(exact))
    if requires_grad is not None and (any(requires_grad) or might_require_grad(fn)):
        cut = (_cutting(requires_grad), inline_autodiff_subgraphs)
        fn = step(cut, fn)
        fn = finished_subgraphs(fn, partial(step, (*registered("gradient"), *last)))
        last = registered("after")
    return step((*last, without_barriers, dead_code), fn)


def _cutting(requires_grad: Sequence[bool]) -> Callable:
    """``create_autodiff_subgraphs`` for parameters of which these require grad."""

    @functools.wraps(create_autodiff_subgraphs)  # its name is what texts say
    def cut(fn: Lambda) -> Lambda:
        return create_autodiff_subgraphs(fn, requires_grad)

    return cut
