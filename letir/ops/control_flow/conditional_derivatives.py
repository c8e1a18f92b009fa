"""Derivatives of ``cond`` and ``switch``: the same choice again, among the bodies' derivatives.

What the way back reads of the inside of a branch is among the results of the bind that
``choice_saving`` makes, zeros where another branch was taken; a bind without these computes its
branch again.
"""

from collections.abc import Callable, Sequence

from letir.ast.builder import LetBuilder, Value
from letir.ast.liveness import live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, suited, without_effects
from letir.ops.control_flow.fori_as_while import as_kind
from letir.ops.define.records import PYTHON_TYPES
from letir.ops.shape.shape_and_creation import zeros, zeros_like

# ---- both have bodies ----


def branches_in(attrs: dict) -> tuple[Lambda, ...]:
    """The bodies of a ``cond``, the one of true first, or of a ``switch``."""
    return attrs["branches"] if "branches" in attrs else (attrs["on_true"], attrs["on_false"])


def choice_attrs(name: str, bodies: Sequence[Lambda]) -> dict:
    """The attributes of a bind with these bodies."""
    if name == "switch":
        return {"branches": tuple(bodies)}
    return dict(zip(("on_true", "on_false"), bodies, strict=True))


def choose(name: str, choice, operands: Sequence, branches: Sequence[Callable], zero: Callable):
    """What the chosen one of ``branches`` gives, recorded where the operands are.

    ``branch(params)`` gives its results, of which None is a zero, on parameters for the operands;
    ``zero(i, params)`` is that as an array, where another branch has none. None is returned for a
    result that is None in all. Operands that no branch reads are no operands of the bind.
    """
    made = []
    for branch in branches:
        builder = LetBuilder()
        params = [builder.param(v.type) if isinstance(v, Value) else v for v in operands]
        made.append((builder, params, list(branch(params))))
    counts = range(len(made[0][2]))
    given = [i for i in counts if any(results[i] is not None for _, _, results in made)]
    if not given:
        return (None,) * len(counts)
    results = [
        [zero(i, params) if found[i] is None else found[i] for i in given]
        for _, params, found in made
    ]
    pairs = zip(made, _alike(results), strict=True)
    programs = [_live(builder, found) for (builder, *_), found in pairs]
    there = [operand for operand in operands if isinstance(operand, Value)]
    programs, there = _read_only(programs, there)
    emitter = next(v.emitter for v in (choice, *operands) if isinstance(v, Value))
    op = PRIMITIVES[name]
    attrs = op.complete(choice_attrs(name, programs))
    answers = dict(zip(given, emitter.apply(op, (choice, *there), attrs), strict=True))
    return tuple([answers.get(i) for i in counts])


def _alike(results: Sequence[list]) -> Sequence[list]:
    """The results of several branches, Python numbers as arrays where others have arrays."""
    kinds = [list(map(body_type, column)) for column in zip(*results, strict=True)]
    strong = [next((kind for kind in row if kind and not kind.weak), None) for row in kinds]
    return [[as_kind(x, kind) for x, kind in zip(found, strong, strict=True)] for found in results]


def _taken(body: Lambda, args: Sequence) -> list:
    """The arguments, as Python numbers where the body takes these."""
    return [as_kind(arg, param.type) for arg, param in zip(args, body.params, strict=True)]


def _live(builder: LetBuilder, results: Sequence) -> Lambda:
    """The program with these results, of what they need."""
    program = builder.build(results)
    return program.with_binds(live_binds(program))


def _read_only(programs: Sequence[Lambda], operands: Sequence) -> tuple[list[Lambda], list]:
    """The programs, and their operands, without those that none of them reads."""
    used = {local for fn in programs for term in (*fn.binds, fn.ret) for local in term.locals()}
    kept = [
        i for i in range(len(operands)) if any(program.params[i] in used for program in programs)
    ]
    fewer = [Lambda([fn.params[i] for i in kept], fn.binds, fn.ret) for fn in programs]
    return fewer, [operands[i] for i in kept]


# ---- reverse ----


def choice_vjp(name: str) -> Callable:
    """The vjp of ``cond`` or ``switch``."""

    def vjp(cts, outs, choice, *args, transform, wanted=None, **attrs):
        count, types = len(args), tuple(map(body_type, args))
        needed = [isinstance(arg, Value) for arg in args]
        if wanted is not None:
            needed = [a and b for a, b in zip(needed, wanted[1:], strict=True)]

        def pulled(body: Lambda) -> Callable:
            body = without_effects(suited(body, types))

            def branch(params):
                results = params[count : count + len(outs)]
                known = {i: v for i, v in enumerate(results) if isinstance(v, Value)}
                cts = params[count + len(outs) :]
                args = _taken(body, params[:count])
                return transform(body, args, cts, wanted=needed, known=known)

            return branch

        branches = list(map(pulled, branches_in(attrs)))
        operands = [*args, *outs, *cts]
        found = choose(name, choice, operands, branches, lambda i, p: zeros_like(p[i]))
        return (None, *found)

    return vjp


def choice_saving(bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate):
    """``bind`` with further results, what the ways back through its branches read; itself where it
    has them. Branches share results of one type; what has no known shape is computed again.
    """
    types, count = [arg.type for arg in bind.args[1:]], len(bind.binders)
    bodies = [suited(body, types) for body in branches_in(bind.attrs)]
    programs = [differentiate(body, needed[1:], defined=defined).f for body in bodies]
    extra = [list(filter(_has_shape, program.ret.args[count:])) for program in programs]
    if not any(extra):
        return bind
    kinds: list = []  # of the further results
    placed = [_slots(residuals, kinds) for residuals in extra]
    bodies = [
        _with_results(program, count, [there.get(i) or kind for i, kind in enumerate(kinds)])
        for program, there in zip(programs, placed, strict=True)
    ]
    attrs = bind.op.complete(choice_attrs(bind.op.name, bodies))
    return Bind((*bind.binders, *map(Local, kinds)), bind.op, bind.args, attrs, bind.source)


def _has_shape(local: Local) -> bool:
    """Whether its shape is known, so that there are zeros like it."""
    return has_static_shape(local.type)


def _slots(residuals: Sequence[Local], kinds: list) -> dict[int, Local]:
    """A place among the further results, whose types ``kinds`` are, for each residual; types are
    added where there is no place left.
    """
    found: dict[int, Local] = {}
    free: dict[ArrayType, list[int]] = {}
    for place in reversed(range(len(kinds))):  # the first last, which is taken first
        free.setdefault(kinds[place], []).append(place)
    for local in residuals:
        places = free.get(local.type)
        if not places:
            places = [len(kinds)]
            kinds.append(local.type)
        found[places.pop()] = local
    return found


def _with_results(fn: Lambda, count: int, further: Sequence) -> Lambda:
    """``fn`` with its first ``count`` results and further ones: its locals, or types of zeros."""
    binds, results = list(fn.binds), list(fn.ret.args[:count])
    for what in further:
        if type(what) is Local or what.weak:
            results.append(what if type(what) is Local else Const(PYTHON_TYPES[what.dtype.kind]()))
            continue
        results.append(Local(ArrayType(what.dtype, what.shape)))
        attrs = zeros.complete({"shape": what.shape, "dtype": what.dtype})
        binds.append(Bind((results[-1],), zeros, (), attrs))  # no memory until it is written to
    return Lambda(fn.params, binds, Ret(tuple(results)))


# ---- forward ----


def choice_joint(name: str) -> Callable:
    """(results, their tangents) by one choice in the place of that of the results."""

    def joint(tangents, choice, *args, transform, **attrs):
        count, types = len(args), tuple(map(body_type, args))
        inputs = [i for i, t in enumerate(tangents[1:]) if t is not None]
        bodies = [suited(body, types) for body in branches_in(attrs)]
        programs = [transform.program(body, inputs) for body in bodies]
        moving = sorted({i for _, outputs in programs for i in outputs})
        width = len(bodies[0].ret.args)

        def together(body: Lambda, program: Lambda, outputs) -> Callable:
            def branch(params):
                given = [*_taken(body, params[:count]), *params[count:]]
                emitter = next(v.emitter for v in params if isinstance(v, Value))
                found = emitter.call(program, given)
                along = dict(zip(outputs, found[width:], strict=True))
                further = [along[i] if i in along else zeros_like(found[i]) for i in moving]
                return [*found[:width], *further]

            return branch

        branches = [together(b, *made) for b, made in zip(bodies, programs, strict=True)]
        operands = [*args, *[tangents[1 + i] for i in inputs]]
        found = choose(name, choice, operands, branches, None)
        along = dict(zip(moving, found[width:], strict=True))
        return found[:width], tuple([along.get(i) for i in range(width)])

    return joint


def choice_jvp(name: str) -> Callable:
    """The jvp of ``cond`` or ``switch``."""

    def jvp(tangents, outs, choice, *args, transform, **attrs):
        count, types = len(args), tuple(map(body_type, args))

        def pushed(body: Lambda) -> Callable:
            body = without_effects(suited(body, types))

            def branch(params):
                return transform(body, _taken(body, params[:count]), params[count : 2 * count])

            return branch

        branches = list(map(pushed, branches_in(attrs)))
        operands = [*args, *tangents[1:], *outs]
        return choose(name, choice, operands, branches, lambda i, p: zeros_like(p[2 * count + i]))

    return jvp
