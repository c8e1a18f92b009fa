"""``without_constant_carry``: carried values that no step changes become captured values."""

from letir.ast.attrs import Attrs
from letir.ast.bodies import bodies_of, has_bodies, map_bodies
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret


def without_constant_carry(fn: Lambda) -> Lambda:
    """``fn`` where counted loops carry only values that may change; also in bodies.

    The gradient of a loop carries cotangents that no step changes. Linear time.
    """
    if not has_bodies(fn):
        return fn
    return map_bodies(fn, _constant_carry_level)


def _constant_carry_level(fn: Lambda) -> Lambda:
    """``fn`` with its own loops rid of carried values that no iteration changes."""
    names: dict[Local, Arg] = {}
    binds: list[Bind] = []
    for bind in fn.binds:
        new_bind = bind.substitute(names) if names else bind
        constant = _constant_places(new_bind)
        if constant:
            names.update(
                {bind.binders[k]: new_bind.args[_first_carried(new_bind) + k] for k in constant}
            )
            new_bind = _with_captured(new_bind, constant)
        binds.append(new_bind)
    if not names:
        return fn
    ret = tuple([names.get(arg, arg) if type(arg) is Local else arg for arg in fn.ret.args])
    return Lambda(fn.params, tuple(binds), Ret(ret), fn.in_tree, fn.out_tree)


def _first_carried(bind: Bind) -> int:
    """The position of the first carried operand."""
    layout = bind.op.bodies
    return 0 if layout is None else layout.ahead


def _constant_places(bind: Bind) -> list[int]:
    """The positions of carried values that no step changes."""
    layout = bind.op.bodies
    if layout is None or layout.loop not in ("elements", "numbers"):
        return []
    (body,) = bodies_of(bind)
    params = body.params[layout.steps :]
    operands = bind.args[layout.ahead :]
    return [
        k
        for k in range(layout.n_carry(bind))
        if body.ret.args[k] is params[k]
        and type(operands[k]) is Local
        and params[k].type == operands[k].type == bind.binders[k].type
    ]


def _with_captured(bind: Bind, constant: list[int]) -> Bind:
    """A loop whose carried values at these positions are captured."""
    layout = bind.op.bodies
    assert layout is not None
    (body,) = bodies_of(bind)
    ahead, steps = layout.ahead, layout.steps
    variable = [n for n in range(len(bind.args) - ahead) if n not in constant]
    results = [n for n in range(len(bind.binders)) if n not in constant]
    params = (*body.params[:steps], *[body.params[steps + n] for n in (*variable, *constant)])
    args = (*bind.args[:ahead], *[bind.args[ahead + n] for n in (*variable, *constant)])
    new_body = Lambda(params, body.binds, Ret(tuple([body.ret.args[n] for n in results])))
    counts = layout.counts(bind, results, variable)
    attrs = Attrs(**{**bind.attrs, **counts, "body": new_body})
    return Bind(tuple([bind.binders[n] for n in results]), bind.op, args, attrs, bind.source)
