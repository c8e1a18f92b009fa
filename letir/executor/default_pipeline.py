"""``optimize_program``: the pipeline from a recorded program to the program of a plan.

First the required passes, then the simplifying ones. If a gradient may be needed, differentiable
subgraphs are cut out and the last passes run on each of them; otherwise on the whole program.
"""

import functools
import importlib.util
import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from letir import passes
from letir.ad.symbolic_zeros import depends_on_defined, lower_grad_of, specialize_undef
from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies, bodies_of, holds_programs
from letir.ast.derivative_types import might_require_grad
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.record_fields import PRODUCTS_OF_WINDOWS
from letir.ast.source import with_errors_of_check
from letir.ast.symbolic_sizes import elementwise_size, has_static_shape
from letir.ast.terms import Bind, Const, Lambda, Local
from letir.ast.types import ArrayType, Size
from letir.passes.canonicalization import canonicalize_ops
from letir.passes.constant_folding import constant_propagation
from letir.passes.cse import common_subexpressions, constant_pooling
from letir.passes.dead_code_elimination import dead_code
from letir.passes.fusion.clustering import LONG_CHAIN, MIN_KERNEL_ELEMENTS
from letir.passes.fusion.fusing import fuse
from letir.passes.peephole_rules.driver import peephole
from letir.passes.peephole_rules.implicit_broadcast import remove_implicit_expands
from letir.passes.pipeline import Pipeline, registered_passes, run_pipeline
from letir.passes.type_propagation import propagate_shapes
from letir.plan.effect_log import is_guard

# a function is called as Python if its program has at least so many guards, and for each of them
# at most so many operations, and numbers computed by elementwise operations
_DECISIONS, _OPERATIONS_EACH, _NUMBERS_EACH = 200, 8, 64
_NUMBERS_IN_CALLBACKS = 1 << 12  # elements of all results, at most
_NUMBERS_EACH_DRAW = 1 << 14  # elements computed for each draw of an own generator, at most
_NUMBERS_BESIDE_CALLS = 1 << 14  # elements that other operations compute, at most


def specialize_zeros(fn: Lambda, defined: Sequence[bool | None] | None = None) -> Lambda:
    """``fn`` without each ``grad_of`` and ``autograd_add`` whose outcome is known before the run.

    ``defined``: for each parameter whether it is defined; by default, whether its type is known.
    """
    if not fn.memo(depends_on_defined):
        return fn
    if defined is None:
        defined = [True if param.type is not None else None for param in fn.params]
    result = specialize_undef(fn, defined)
    return Lambda(result.params, result.binds, result.ret, fn.in_tree, fn.out_tree)


def _required_passes(defined: Sequence[bool | None] | None = None) -> Pipeline:
    """The passes that a program needs in order to run correctly."""
    zeros = specialize_zeros if defined is None else partial(specialize_zeros, defined=defined)
    return zeros, lower_grad_of, remove_implicit_expands, canonicalize_ops, dead_code


def _pass_for(name: str, may_apply: Callable[[Bind], bool] = lambda bind: False):
    """The pass of this name, loaded and run only if it may apply.

    It may apply if ``may_apply`` holds for a bind, or if a bind holds bodies. It would return every
    other program unchanged.
    """

    def pass_on_demand(fn: Lambda, **options) -> Lambda:
        for bind in fn.binds:
            if bind.op.holds_lambdas or may_apply(bind):
                return getattr(passes, name)(fn, **options)
        return fn

    pass_on_demand.__name__ = name  # shown in dumps and by ``explain``
    return pass_on_demand


def _is_update(bind: Bind) -> bool:
    return bind.op.update is not None or bind.op.role == "write_back"


def _makes_array(bind: Bind) -> bool:
    """Whether a result may be a matrix product or hold parts of arrays."""
    return not bind.op.elementwise and bind.op.memory != "view" and bool(bind.args)


def _joins_arrays(bind: Bind) -> bool:
    return bind.op.moves_elements > 2


def _drop_barriers(fn: Lambda) -> Lambda:
    """``passes.without_barriers``, loaded and run where there is a barrier, also in bodies."""
    roles = {bind.op.role for body in all_bodies(fn) for bind in body.binds}
    return passes.without_barriers(fn) if "barrier" in roles else fn


_drop_barriers.__name__ = "without_barriers"  # shown in dumps and by ``explain``


inline_bodies, in_place_check = _pass_for("inline_bodies"), _pass_for("in_place_check", _is_update)
decompose = _pass_for("decompose", lambda bind: bind.op.decompose is not None)
batch_matmuls = _pass_for("batch_matmuls", _makes_array)
# powers become simpler operations for some exponents
multiply_powers = _pass_for("multiply_powers", attrgetter("op.rule_reads_numbers"))
loop_invariants, unroll = _pass_for("loop_invariants"), _pass_for("unroll")
flatten_stacks = _pass_for("flatten_stacks", _joins_arrays)
join_error_regions = _pass_for("join_error_regions")
_ALGEBRA: Pipeline = (
    *(dead_code, common_subexpressions, constant_pooling, peephole, constant_propagation),
)
# derivative rules may be dropped here: no derivative is taken after these passes
_PARTS: Pipeline = tuple([partial(pass_, keep_rules=False) for pass_ in (inline_bodies, decompose)])


def _simplifying_passes(kernels: str) -> Pipeline:
    """The passes that simplify a program; loops that will be kernels are not unrolled."""
    loops = unroll if kernels == "off" else _unroll_others(kernels)
    return (
        *(constant_propagation, inline_bodies, propagate_shapes),
        *(*_ALGEBRA, loop_invariants, loops, common_subexpressions, flatten_stacks, in_place_check),
    )


@functools.cache
def has_compiler() -> bool:
    """Whether llvmlite is installed, which the extra ``fast`` requires."""
    return importlib.util.find_spec("llvmlite") is not None


def may_have_kernels(fn: Lambda) -> bool:
    """False if no kind of kernel can pay, as its operations are few, on few elements.

    A small program then loads no module of kernels, whose own tests take several times as long.
    """
    elements = 0  # an upper bound of those that any group of operations computes
    for bind in fn.binds:
        if bind.op.product in PRODUCTS_OF_WINDOWS or holds_programs(bind):
            return True
        for part in bind.attrs["body"].binds if bind.op.role == "fused" else (bind,):
            elements += MIN_KERNEL_ELEMENTS // LONG_CHAIN
            for x in (*part.args, *part.binders):
                if type(x) is Local:
                    shape = getattr(x.type, "shape", (math.inf,))
                    if Size in map(type, shape):
                        return True
                    elements += 8 * math.prod(shape)  # as many as of a reduction with neighbours
        if elements >= MIN_KERNEL_ELEMENTS:
            return True
    return False


def _unroll_others(kernels: str) -> Callable:
    """The pass ``unroll``, under its name, without the loops that become kernels."""

    @functools.wraps(unroll)
    def unroll_others(fn: Lambda) -> Lambda:
        for bind in fn.binds:
            if holds_programs(bind) and has_compiler():
                keeps = partial(LATE_BOUND["becomes_loop_kernel"], kernels == "exact")
                return unroll(fn, keeps=keeps)
        return unroll(fn)

    return unroll_others


def _final_passes(exact: bool) -> Pipeline:
    """The last passes, after which a program can no longer be differentiated."""
    # batched products may reassociate sums, and multiplied powers differ in the last bits
    powers: Pipeline = () if exact else (batch_matmuls, multiply_powers)
    return (*_PARTS, *powers, join_error_regions, fuse)


@with_errors_of_check
@paused_gc()
def optimize_program(
    fn: Lambda,
    *,
    requires_grad: Sequence[bool] | None = None,
    defined: Sequence[bool | None] | None = None,
    optimize: bool = True,
    exact: bool = False,
    kernels: str = "off",
    observe: Callable | None = None,
) -> Lambda:
    """The optimised form of ``fn``, with the same parameters and results.

    ``requires_grad``: the parameters whose gradients may be requested; then differentiable parts
    become ``differentiable_graph`` binds. ``defined``: which parameters are not ``Undef``. Without
    ``optimize`` only the required passes run; ``exact`` leaves out passes that change bits.
    ``kernels``: the ``kernel_mode`` of the plan; loops that will be kernels are not unrolled.
    ``observe(name, before, after, seconds)`` is called after every pass. Linear time.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0: float64[] { %1: float64[] = exp(%0); return %0 }")
    >>> print(optimize_program(f).listing(), end="")
    return %0
    """
    step = partial(run_pipeline, observe=observe)
    if exact:
        fn = step((passes.keep_raising,), fn)
    if not optimize:
        return step(_required_passes(defined), fn)
    fn = step(
        (*registered_passes("before"), *_required_passes(defined), *_simplifying_passes(kernels)),
        fn,
    )
    last = (*registered_passes("after"), *_final_passes(exact))
    if requires_grad is not None and (any(requires_grad) or might_require_grad(fn)):
        cut = step((_subgraph_pass(requires_grad),), fn)
        fn = step((LATE_BOUND["inline_autodiff_subgraphs"],), cut)
        # inlining brings operations of derivatives next to operations outside of the graph
        fn = fn if fn is cut else step((*_ALGEBRA, in_place_check), fn)
        finish = partial(step, (*registered_passes("gradient"), *last))
        fn = LATE_BOUND["finished_subgraphs"](fn, finish)
        # each pass of the user runs once, and has run on the graphs
        is_all_graphs = all(bind.op.role == "subgraph" for bind in fn.binds)
        last = () if is_all_graphs and fn.binds else registered_passes("after")
    return step((*last, _drop_barriers, dead_code), fn)


def _subgraph_pass(requires_grad: Sequence[bool]) -> Callable:
    """The pass ``create_autodiff_subgraphs`` for these ``requires_grad`` flags."""

    create_autodiff_subgraphs = LATE_BOUND["create_autodiff_subgraphs"]

    @functools.wraps(create_autodiff_subgraphs)  # dumps show this name
    def cut(fn: Lambda) -> Lambda:
        return create_autodiff_subgraphs(fn, requires_grad)

    return cut


def computes_nothing(fn: Lambda) -> bool:
    """Whether all results of a program are constants, and it has no effects other than guards.

    Users call its function for effects that no program has: it prints, raises errors, or reports
    a setting.
    """
    for arg in fn.ret.args:
        if type(arg) is not Const:
            return False
    binds = [bind for bind in fn.binds if has_effect(bind)]
    return all(is_guard(bind) or bind.op.role == "guard_computed" for bind in binds)


def is_faster_in_python(f: Callable, fn: Lambda) -> bool:
    """Whether Python runs ``f`` in less time than the plan of ``fn``, its program, would take."""
    roles = [bind.op.role for bind in fn.binds]
    guards = roles.count("guard")
    if guards >= _DECISIONS and _is_mostly_decisions(fn, guards):
        return True
    if "draw" in roles and _is_mostly_draws(fn):
        return True
    is_of_scipy = ("solver" in roles and _is_mostly_callbacks(fn)) or (
        "library" in roles and _is_mostly_calls(fn)
    )
    return is_of_scipy and not LATE_BOUND["calls_letir"](f)


def _is_mostly_decisions(fn: Lambda, guards: int) -> bool:
    """Whether a program makes many decisions, ``guards``, between few operations on few numbers.

    A plan would be no faster than Python, and other arguments would need another plan.
    """
    if len(fn.binds) > _OPERATIONS_EACH * guards:
        return False
    return elementwise_size(fn.binds) <= _NUMBERS_EACH * guards


def _is_mostly_draws(fn: Lambda) -> bool:
    """Whether a program draws from a generator that the function makes, and does little else.

    The plan makes a generator of the state in the program, and a state of the generator, for each
    draw. A state among the parameters is a generator, which draws directly.
    """
    own, states = 0, {b for bind in fn.binds if bind.op.role == "constant" for b in bind.binders}
    for bind in fn.binds:
        if bind.op.role == "draw" and bind.args[0] in states:
            own += 1
            states.update(bind.binders)
    return own > 0 and elementwise_size(fn.binds) <= _NUMBERS_EACH_DRAW * own


def _is_mostly_calls(fn: Lambda) -> bool:
    """Whether a program with calls of SciPy has too few other operations for a kernel.

    The plan would make the same calls, and call a function again for each attribute of its result.
    """
    if any(bodies_of(bind) for bind in fn.binds):
        return False
    others = [bind for bind in fn.binds if bind.op.role != "library"]
    return elementwise_size(others) <= _NUMBERS_BESIDE_CALLS


def _is_mostly_callbacks(fn: Lambda) -> bool:
    """Whether a program calls solvers of SciPy with functions of few numbers, and does little else.

    SciPy calls a Python function in less time than the plan of its body; its odeint is faster, too.
    """
    solvers = [bind for bind in fn.binds if bind.op.role == "solver"]
    programs = [fn, *[body for bind in solvers for body in bodies_of(bind)]]
    binds = [bind for program in programs for bind in program.binds if bind.op.role != "solver"]
    if any(bind.op.holds_lambdas for bind in binds):
        return False
    avals = [binder.type for bind in binds for binder in bind.binders]
    if any(type(aval) is not ArrayType or not has_static_shape(aval) for aval in avals):
        return False
    return sum(aval.size for aval in avals) <= _NUMBERS_IN_CALLBACKS


def with_limit(executor: Any, request: Any, do: Callable) -> Callable:
    """``do``, a recording of the user's function, with a limit; see ``record_limited``."""
    is_method = hasattr(executor.f, "letir_reaches")
    is_partial = functools.partial in (type(executor.f), type(executor.held))
    # not the derivative of a function, which Python cannot call in its place
    if not (executor.is_plain or is_method or is_partial) or request.spec.is_on_device:
        return do
    return partial(LATE_BOUND["record_limited"], executor, do)
