"""Derivatives of ``cond`` and ``switch``: the same choice, among the derivatives of the bodies.

``choice_with_residuals`` adds the residuals of the branches to the results of a bind; a residual of
a branch that was not taken is zeros. The backward pass of a bind without residuals recomputes the
branch.
"""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.liveness import live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.ops.autodiff.checkpoint_and_custom_jvp import (
    body_type,
    fit_body_keeping_numbers,
    without_effects,
)
from letir.ops.control_flow.fori_as_while import convert_number
from letir.ops.define.records import PYTHON_TYPES
from letir.ops.shape.shape_and_creation import zeros, zeros_like

# ---- for both cond and switch ----


def branches_in(attrs: dict) -> tuple[Lambda, ...]:
    """The bodies of a ``cond``, ``on_true`` first, or of a ``switch``."""
    return attrs["branches"] if "branches" in attrs else (attrs["on_true"], attrs["on_false"])


def choice_attrs(name: str, bodies: Sequence[Lambda]) -> dict:
    """The attributes of a bind with these bodies."""
    if name == "switch":
        return {"branches": tuple(bodies)}
    return dict(zip(("on_true", "on_false"), bodies, strict=True))


def emit_choice(
    name: str, choice: Any, operands: Sequence, branches: Sequence[Callable], zero: Callable
) -> tuple:
    """The results of a ``cond`` or ``switch`` over ``branches``, recorded where the operands are.

    ``branch(params)`` computes the results of a branch from parameters that stand for the operands;
    None is a result that is zero. ``zero(i, params)`` makes the array of zeros for a result that is
    None in this branch and not in another; a result that is None in all branches stays None.
    Operands that no branch reads are left out of the bind.
    """
    branch_results = []
    for branch in branches:
        builder = LetBuilder()
        params = [builder.param(v.type) if isinstance(v, Value) else v for v in operands]
        branch_results.append((builder, params, list(branch(params))))
    counts = range(len(branch_results[0][2]))
    positions = [
        i for i in counts if any(results[i] is not None for _, _, results in branch_results)
    ]
    if not positions:
        return (None,) * len(counts)
    results = [
        [zero(i, params) if returned[i] is None else returned[i] for i in positions]
        for _, params, returned in branch_results
    ]
    pairs = zip(branch_results, _match_number_types(results), strict=True)
    programs = [_build_live(builder, returned) for (builder, *_), returned in pairs]
    given_values = [operand for operand in operands if isinstance(operand, Value)]
    programs, given_values = _drop_unread_operands(programs, given_values)
    emitter = next(v.emitter for v in (choice, *operands) if isinstance(v, Value))
    op = PRIMITIVES[name]
    attrs = op.complete(choice_attrs(name, programs))
    answers = dict(zip(positions, emitter.apply(op, (choice, *given_values), attrs), strict=True))
    return tuple([answers.get(i) for i in counts])


def _match_number_types(results: Sequence[list]) -> Sequence[list]:
    """The results of the branches; a Python number is made an array if another branch has one."""
    kinds = [list(map(body_type, column)) for column in zip(*results, strict=True)]
    strong = [next((aval for aval in row if aval and not aval.weak), None) for row in kinds]
    return [
        [convert_number(x, aval) for x, aval in zip(values, strong, strict=True)]
        for values in results
    ]


def _as_body_takes(body: Lambda, args: Sequence) -> list:
    """The arguments, converted to Python numbers where the body's parameters are Python numbers."""
    return [convert_number(arg, param.type) for arg, param in zip(args, body.params, strict=True)]


def _build_live(builder: LetBuilder, results: Sequence) -> Lambda:
    """The program with these results, without dead binds."""
    program = builder.build(results)
    return program.with_binds(live_binds(program))


def _drop_unread_operands(
    programs: Sequence[Lambda], operands: Sequence
) -> tuple[list[Lambda], list]:
    """The programs and the operands, without the parameters and operands that no program reads."""
    used = {x for fn in programs for bind in fn.binds for x in bind.locals()}
    used = used.union(*[fn.ret.locals() for fn in programs])
    positions = [
        i for i in range(len(operands)) if any(program.params[i] in used for program in programs)
    ]
    fewer = [Lambda([fn.params[i] for i in positions], fn.binds, fn.ret) for fn in programs]
    return fewer, [operands[i] for i in positions]


# ---- reverse mode ----


def choice_vjp(name: str) -> Callable:
    """The vjp of ``cond`` or ``switch``."""

    def vjp(cts, outs, choice, *args, transform, wanted=None, **attrs):
        count, types = len(args), tuple(map(body_type, args))
        needed = [isinstance(arg, Value) for arg in args]
        if wanted is not None:
            needed = [a and b for a, b in zip(needed, wanted[1:], strict=True)]

        def pulled(body: Lambda) -> Callable:
            body = without_effects(fit_body_keeping_numbers(body, types))

            def branch(params):
                results = params[count : count + len(outs)]
                known = {i: v for i, v in enumerate(results) if isinstance(v, Value)}
                cts = params[count + len(outs) :]
                args = _as_body_takes(body, params[:count])
                return transform(body, args, cts, wanted=needed, known=known)

            return branch

        branches = list(map(pulled, branches_in(attrs)))
        operands = [*args, *outs, *cts]
        cotangents = emit_choice(name, choice, operands, branches, lambda i, p: zeros_like(p[i]))
        return (None, *cotangents)

    return vjp


def choice_with_residuals(
    bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate: Callable
) -> Bind:
    """``bind`` with the residuals of its branches as further results; ``bind`` if there are none.

    Residuals of the same type from different branches share a result. A residual of unknown shape
    is not saved: the backward pass recomputes it.
    """
    types, count = [arg.type for arg in bind.args[1:]], len(bind.binders)
    bodies = [fit_body_keeping_numbers(body, types) for body in branches_in(bind.attrs)]
    programs = [differentiate(body, needed[1:], defined=defined).f for body in bodies]
    extra = [list(filter(_has_shape, program.ret.args[count:])) for program in programs]
    if not any(extra):
        return bind
    avals: list[ArrayType] = []  # the types of the further results
    placed = [_assign_slots(residuals, avals) for residuals in extra]
    bodies = [
        _with_results(
            program, count, [placed_results.get(i) or kind for i, kind in enumerate(avals)]
        )
        for program, placed_results in zip(programs, placed, strict=True)
    ]
    attrs = bind.op.complete(choice_attrs(bind.op.name, bodies))
    return Bind((*bind.binders, *map(Local, avals)), bind.op, bind.args, attrs, bind.source)


def _has_shape(local: Local) -> bool:
    """Whether the shape is static, so that zeros of it can be made."""
    return has_static_shape(local.type)


def _assign_slots(residuals: Sequence[Local], kinds: list) -> dict[int, Local]:
    """The place of each residual among the further results, whose types are in ``kinds``.

    Where no place of its type is free, the type is appended to ``kinds``.
    """
    result: dict[int, Local] = {}
    free: dict[ArrayType, list[int]] = {}
    for place in reversed(range(len(kinds))):  # reversed, so that pop() takes the lowest first
        free.setdefault(kinds[place], []).append(place)
    for local in residuals:
        places = free.get(local.type)
        if not places:
            places = [len(kinds)]
            kinds.append(local.type)
        result[places.pop()] = local
    return result


def _with_results(fn: Lambda, count: int, further: Sequence) -> Lambda:
    """``fn`` with its first ``count`` results and ``further`` ones.

    Each of ``further`` is a local of ``fn``, or the type of an array of zeros.
    """
    binds, results = list(fn.binds), list(fn.ret.args[:count])
    for item in further:
        if type(item) is Local or item.weak:
            results.append(item if type(item) is Local else Const(PYTHON_TYPES[item.dtype.kind]()))
            continue
        result = Local(ArrayType(item.dtype, item.shape))
        results.append(result)
        attrs = zeros.complete({"shape": item.shape, "dtype": item.dtype})
        binds.append(Bind((result,), zeros, (), attrs))  # costs no memory until written to
    return Lambda(fn.params, binds, Ret(tuple(results)))


# ---- forward mode ----


def choice_fused_jvp(name: str) -> Callable:
    """The rule ``fused_jvp`` of ``cond`` or ``switch``: one choice gives results and tangents."""

    def fused_jvp(tangents, choice, *args, transform, **attrs):
        count, types = len(args), tuple(map(body_type, args))
        inputs = [i for i, t in enumerate(tangents[1:]) if t is not None]
        bodies = [fit_body_keeping_numbers(body, types) for body in branches_in(attrs)]
        programs = [transform.program(body, inputs) for body in bodies]
        moving = sorted({i for _, outputs in programs for i in outputs})
        width = len(bodies[0].ret.args)

        def together(body: Lambda, program: Lambda, outputs) -> Callable:
            def branch(params):
                body_inputs = [*_as_body_takes(body, params[:count]), *params[count:]]
                emitter = next(v.emitter for v in params if isinstance(v, Value))
                results = emitter.call(program, body_inputs)
                along = dict(zip(outputs, results[width:], strict=True))
                further = [along[i] if i in along else zeros_like(results[i]) for i in moving]
                return [*results[:width], *further]

            return branch

        branches = [together(b, *part) for b, part in zip(bodies, programs, strict=True)]
        operands = [*args, *[tangents[1 + i] for i in inputs]]
        results = emit_choice(name, choice, operands, branches, None)
        along = dict(zip(moving, results[width:], strict=True))
        return results[:width], tuple([along.get(i) for i in range(width)])

    return fused_jvp


def choice_jvp(name: str) -> Callable:
    """The jvp of ``cond`` or ``switch``."""

    def jvp(tangents, outs, choice, *args, transform, **attrs):
        count, types = len(args), tuple(map(body_type, args))

        def pushed(body: Lambda) -> Callable:
            body = without_effects(fit_body_keeping_numbers(body, types))

            def branch(params):
                return transform(
                    body, _as_body_takes(body, params[:count]), params[count : 2 * count]
                )

            return branch

        branches = list(map(pushed, branches_in(attrs)))
        operands = [*args, *tangents[1:], *outs]
        return emit_choice(
            name, choice, operands, branches, lambda i, p: zeros_like(p[2 * count + i])
        )

    return jvp
