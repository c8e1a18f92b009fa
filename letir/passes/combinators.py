"""``without_combinators``: a pass that the derivatives run first."""

from letir.ast.builder import LetBuilder
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.define.records import decomposition
from letir.ops.elementwise.casting import copy


def without_combinators(fn: Lambda) -> Lambda:
    """``fn`` with what ``map``, ``reduce`` and their like stand for in their place, so that values
    which a derivative reads are computed once; ``fn`` itself if there is none.

    Keeps the binders that are results of these, and lines. Linear in the number of binds that come
    out.
    """
    if not any(bind.op.inlined for bind in fn.binds):
        return fn
    return fn.memo(_inlined)


def _inlined(fn: Lambda) -> Lambda:
    builder = LetBuilder()
    for bind in fn.binds:
        if not bind.op.inlined or any(type(a) is Local and a.type is None for a in bind.args):
            builder.binds.append(bind)
            continue
        builder.source = bind.source
        types = tuple([arg.type for arg in bind.args])
        program = decomposition(bind.op.decompose, types, bind.attrs)
        bind_results(builder, bind, program)
    found = fn.with_binds(builder.binds)
    return without_combinators(found)  # a body for many may hold others


def bind_results(builder: LetBuilder, bind: Bind, program: Lambda) -> None:
    """Add the binds of ``program``, whose results get the names that they had."""
    before = len(builder.binds)
    found = builder.inline(program, bind.args)
    names: dict[Local, Local] = {}
    copied = []
    made = {b for new in builder.binds[before:] for b in new.binders}
    for binder, result in zip(bind.binders, found, strict=True):
        if type(result) is Local and result in made and result not in names:
            names[result] = binder
        else:  # an operand, or a result that is there twice
            copied.append((binder, result))
    for i in range(before, len(builder.binds)):
        new = builder.binds[i]
        args = tuple([names.get(a, a) if type(a) is Local else a for a in new.args])
        binders = tuple([names.get(b, b) for b in new.binders])
        builder.binds[i] = Bind(binders, new.op, args, new.attrs, new.source)
    for binder, result in copied:
        operand = names.get(result, result) if type(result) is Local else result
        builder.binds.append(Bind((binder,), copy, (operand,), copy.complete({}), bind.source))
