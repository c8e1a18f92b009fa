"""Groups put in their places: the binds of a ``fused`` body as steps of the plan around it."""

from letir.ast.builder import renamed
from letir.ast.gc_pause import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ops.elementwise.fused import fused


@paused_gc()
def spliced(fn: Lambda) -> tuple[Lambda, dict]:
    """(``fn`` with the bodies of its ``fused`` binds in their places, where those binds come from).

    The latter: {index: ((body, bind of the body), (fn, the group's bind))}, innermost first.
    """
    if not any(bind.op is fused for bind in fn.binds):
        return fn, {}
    binds: list[Bind] = []
    names: dict[Local, Arg] = {}  # what results of groups are
    origins: dict[int, tuple] = {}
    for bind in fn.binds:
        args = tuple([names.get(arg, arg) if type(arg) is Local else arg for arg in bind.args])
        if bind.op is not fused:
            binds.append(Bind(bind.binders, bind.op, args, bind.attrs, bind.source))
            continue
        body, origin = bind.attrs["body"], (fn, bind)
        inner: dict[Local, Arg] = dict(zip(body.params, args, strict=True))
        for one in body.binds:
            origins[len(binds)] = ((body, one), origin)
            args = tuple([inner[arg] if type(arg) is Local else arg for arg in one.args])
            binds.append(Bind(renamed(one.binders, inner), one.op, args, one.attrs, one.source))
        for binder, result in zip(bind.binders, body.ret.args, strict=True):
            names[binder] = inner[result] if type(result) is Local else result
    ret = [names.get(arg, arg) if type(arg) is Local else arg for arg in fn.ret.args]
    return Lambda(fn.params, binds, Ret(tuple(ret))), origins
