"""Groups put in their places: the binds of a ``fused`` body as steps of the plan around it."""

from letir.ast.builder import renamed
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ops.fused import fused
from letir.visitors.rewriting import substitute


def spliced(fn: Lambda) -> tuple[Lambda, dict]:
    """(``fn`` with the bodies of its ``fused`` binds in their places, where those binds come from).

    The latter: {index: ((body, bind of the body), (fn, the group's bind))}, innermost first.
    """
    if not any(bind.op is fused for bind in fn.binds):
        return fn, {}
    binds: list[Bind] = []
    names: dict[Local, Arg] = {}
    origins: dict[int, tuple] = {}
    for bind in fn.binds:
        if bind.op is not fused:
            binds.append(bind)
            continue
        body = bind.attrs["body"]
        inner: dict[Local, Arg] = dict(zip(body.params, bind.args, strict=True))
        for one in body.binds:
            origins[len(binds)] = ((body, one), (fn, bind))
            args = tuple([inner[arg] if type(arg) is Local else arg for arg in one.args])
            binds.append(Bind(renamed(one.binders, inner), one.op, args, one.attrs, one.source))
        for binder, result in zip(bind.binders, body.ret.args, strict=True):
            found = inner[result] if type(result) is Local else result
            names[binder] = names.get(found, found) if type(found) is Local else found
    program = fn.with_binds(binds)
    return (substitute(program, names) if names else program), origins
