"""Linearity of operations with bodies, such as branches and loops, in some of their operands."""

from collections.abc import Callable, Collection

from letir.ast.activity import carry_requiring_grad, results_requiring_grad
from letir.ast.bodies import bodies_of
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.errors import LetirError
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body_keeping_numbers
from letir.ops.control_flow.loop_analysis import params_reaching


def is_decided_by_bodies(bind: Bind) -> bool:
    """Whether ``bind`` is linear in an operand if its bodies are linear in it."""
    return bind.op.bodies is not None and bind.op.bodies.is_linear


def _fitted_bodies(bind: Bind) -> list[Lambda]:
    """The bodies of a bind that is not a loop, fitted to the types of its operands.

    Only bodies that compute results are included, not bodies that are derivative rules.
    """
    layout, bodies = bind.op.bodies, bodies_of(bind)
    types = [arg.type for arg in bind.args[layout.ahead :]]
    return [
        fit_body_keeping_numbers(body, types)
        for body in (bodies[:1] if layout.runs_first else bodies)
    ]


def obstacle_in_bodies(
    bind: Bind,
    chosen: Collection[Local],
    dependent: Collection[Local],
    vanishes: Callable[[Arg], bool],
    check: Callable,
) -> str | None:
    """Why ``bind`` is not linear in the operands ``chosen``; None if it is.

    ``dependent``: the results that depend on them. ``vanishes(arg)``: whether an operand is zero if
    the linear ones are. ``check(fn, params)`` raises LetirError if ``fn`` is not linear in
    ``params``.
    """
    layout = bind.op.bodies
    places = [i - layout.ahead for i, arg in enumerate(bind.args) if arg in chosen]
    if min(places) < 0:
        return "is not linear"
    results = [i for i, binder in enumerate(bind.binders) if binder in dependent]
    if layout.loop is None:
        linear = all(_is_linear(b, places, results, check) for b in _fitted_bodies(bind))
        return None if linear else "is not linear"
    *tests, body = bodies_of(bind)
    n_carry, own = layout.n_carry(bind), layout.own(bind)
    if any(n_carry <= i < n_carry + own for i in results):
        return "does not give floating numbers"
    results = [i if i < n_carry else i - own for i in results]
    moving = sorted({i for i in results if i < n_carry} | {i for i in places if i < n_carry})
    if not all(vanishes(bind.args[layout.ahead + i]) for i in moving):
        return "adds a term that does not depend on it"
    params = [*moving, *[i for i in places if i >= n_carry]]
    if any(_test_depends(test, params) for test in tests):
        return "is not linear"
    inside = [layout.steps + i for i in params]
    positions = sorted({*results, *moving})
    return None if _is_linear(body, inside, positions, check) else "is not linear"


def dependent_results(bind: Bind, chosen: Collection[Local]) -> list[Local]:
    """The floating results of ``bind`` that depend on the operands ``chosen``."""
    layout = bind.op.bodies
    flags = [arg in chosen for arg in bind.args[layout.ahead :]]
    if layout.loop is None:
        rows = [results_requiring_grad(body, flags) for body in _fitted_bodies(bind)]
        dependent = [any(row) for row in zip(*rows, strict=True)]
        return [
            binder
            for binder, is_dependent in zip(bind.binders, dependent, strict=True)
            if is_dependent
        ]
    n_carry, leading = layout.n_carry(bind), layout.steps
    body = bodies_of(bind)[-1]
    body = Lambda([*body.params[leading:], *body.params[:leading]], body.binds, body.ret)
    flags = carry_requiring_grad(body, [*flags, *[False] * leading], n_carry)
    dependent = results_requiring_grad(body, flags)
    dependent[n_carry:n_carry] = [False] * layout.own(bind)
    return [
        binder
        for i, (binder, is_dependent) in enumerate(zip(bind.binders, dependent, strict=True))
        if is_dependent or (i < n_carry and flags[i])
    ]


def _test_depends(test: Lambda, places: Collection[int]) -> bool:
    """Whether the result of ``test`` depends on the parameters at these positions."""
    read = params_reaching(test, [True] * len(test.ret.args))
    return any(read[i] for i in places)


def _is_linear(body: Lambda, places, results, check: Callable) -> bool:
    """Whether the results at positions ``results`` are linear in the parameters at ``places``."""
    fn = Lambda(body.params, body.binds, Ret(tuple([body.ret.args[i] for i in results])))
    try:
        check(fn, [body.params[i] for i in places])
    except LetirError:
        return False
    return True
