"""Whether what holds bodies, as a choice or a loop, is linear in some of its operands."""

from collections.abc import Callable, Collection

from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.errors import LetirError
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body
from letir.ops.control_flow.loop_analysis import (
    params_reaching,
    propagate_needed,
    results_requiring_grad,
)

# operands before those of the bodies, parameters of the body before those that are operands
OFFSETS = {"cond": (1, 0), "switch": (1, 0), "while_loop": (0, 0), "while_scan": (0, 0)}
OFFSETS |= {"fori_loop": (2, 1), "scan": (0, 0)}
# by the name of the attribute: a body that may stand in their place
_ONE_BODY = dict.fromkeys(["checkpoint", "errstate", "fused"], "body")
_ONE_BODY |= {"differentiable_graph": "f"}
OFFSETS |= dict.fromkeys(_ONE_BODY, (0, 0))


def _alternatives(bind: Bind) -> tuple[Lambda, ...]:
    """The bodies of which one is run, once, on the operands; none of a loop."""
    attrs = bind.attrs
    if bind.op.name in _ONE_BODY:
        body = attrs[_ONE_BODY[bind.op.name]]
        return (fit_body(body, tuple([arg.type for arg in bind.args])),)
    if "body" in attrs:
        return ()
    return attrs.get("branches") or (attrs["on_true"], attrs["on_false"])


def obstacle_in_bodies(
    bind: Bind, chosen: Collection[Local], dependent: Collection[Local], vanishes, check: Callable
) -> str | None:
    """Why ``bind`` is not linear in these operands, of which these results depend; None if it is.

    ``vanishes(arg)``: whether an operand is zero where the linear ones are. ``check(fn, params)``
    raises LetirError for a program that is not linear in these parameters.
    """
    before, leading = OFFSETS[bind.op.name]
    places = [i - before for i, arg in enumerate(bind.args) if arg in chosen]
    if min(places) < 0:
        return "is not linear"
    results = [i for i, binder in enumerate(bind.binders) if binder in dependent]
    if bodies := _alternatives(bind):
        return (
            None if all(_is_linear(b, places, results, check) for b in bodies) else "is not linear"
        )
    body = bind.attrs["body"]
    n_carry = bind.attrs.get("n_carry", len(bind.binders))
    if bind.op.name == "while_scan" and not bind.attrs["numbered"]:
        if n_carry in results:
            return "does not give floating numbers"
        results = [i - (i > n_carry) for i in results]
    moving = sorted({i for i in results if i < n_carry} | {i for i in places if i < n_carry})
    if not all(vanishes(bind.args[before + i]) for i in moving):
        return "adds what does not depend on it"
    params = [*moving, *[i for i in places if i >= n_carry]]
    if "test" in bind.attrs and _reads(bind.attrs["test"], params):
        return "is not linear"
    inside = [leading + i for i in params]
    wanted = sorted({*results, *moving})
    return None if _is_linear(body, inside, wanted, check) else "is not linear"


def depending(bind: Bind, chosen: Collection[Local]) -> list[Local]:
    """The results that depend on these operands, and are floating."""
    before, leading = OFFSETS[bind.op.name]
    flags = [arg in chosen for arg in bind.args[before:]]
    attrs = bind.attrs
    if bodies := _alternatives(bind):
        found = [
            any(row)
            for row in zip(*[results_requiring_grad(b, flags) for b in bodies], strict=True)
        ]
        return [binder for binder, there in zip(bind.binders, found, strict=True) if there]
    n_carry = attrs.get("n_carry", len(bind.binders))
    body = attrs["body"]
    body = Lambda([*body.params[leading:], *body.params[:leading]], body.binds, body.ret)
    flags = propagate_needed(body, [*flags, *[False] * leading], n_carry)
    found = results_requiring_grad(body, flags)
    if bind.op.name == "while_scan" and not attrs["numbered"]:
        found.insert(n_carry, False)
    return [
        binder
        for i, (binder, there) in enumerate(zip(bind.binders, found, strict=True))
        if there or (i < n_carry and flags[i])
    ]


def _reads(test: Lambda, places: Collection[int]) -> bool:
    """Whether the result of ``test`` depends on parameters in these places."""
    read = params_reaching(test, [True] * len(test.ret.args))
    return any(read[i] for i in places)


def _is_linear(body: Lambda, places, results, check: Callable) -> bool:
    """Whether these results are linear in the parameters in these places."""
    fn = Lambda(body.params, body.binds, Ret(tuple([body.ret.args[i] for i in results])))
    try:
        check(fn, [body.params[i] for i in places])
    except LetirError:
        return False
    return True
