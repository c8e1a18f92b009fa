"""Lowering before differentiation: ``without_writes`` and ``without_combinators``."""

import operator

from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Arg, Bind, Lambda, Local, substitute_args
from letir.ops.define.records import decomposition
from letir.ops.effects.writes_to_arguments import changed_params, separate_arguments
from letir.ops.elementwise.casting import copy
from letir.visitors.substitution import substitute

_is_inlined = operator.attrgetter("op.inlined")


@entry_point
def without_writes(fn: Lambda) -> Lambda:
    """Drop writes into arguments, and results that are stored in them; results still are the new
    values.

    Transforms start from this form: a derivative is taken with respect to the initial values, and
    changes no argument. If there are other arguments, a ``guard_separate`` refuses calls in which
    they share memory with those that the program wrote into.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = write_back(%0, %1); %3 = neg(%2); return %3 }")
    >>> print(without_writes(f).listing(), end="")
    %1 = exp %0
    %2 = neg %1
    return %2
    """
    if fn.out_tree is not None and fn.out_tree.stores:
        fn = LATE_BOUND["without_stores"](fn)
    changed = changed_params(fn)
    if not changed:
        return fn
    values: dict[Local, Arg] = {}
    for bind in fn.binds:
        if bind.op.role == "write_back":
            new = bind.args[1]
            values[bind.binders[0]] = values.get(new, new) if type(new) is Local else new
    binds = [bind for bind in fn.binds if bind.op.role != "write_back"]
    result = substitute(fn.with_binds(binds), values)
    test = separate_arguments(fn.params, changed)
    if test is None:
        return result
    return result.with_binds(
        [Bind((), PRIMITIVES["guard_separate"], test[0], Attrs(test[1])), *result.binds]
    )


def lower_for_derivatives(fn: Lambda) -> Lambda:
    """``fn`` in the form for derivatives: ``without_writes`` and ``without_combinators``."""
    return without_combinators(without_writes(fn))


def without_combinators(fn: Lambda) -> Lambda:
    """``fn`` with ``map``, ``reduce`` and similar operations decomposed, so that values that a
    derivative reads are computed once; ``fn`` itself without any.

    Keeps the binders of their results, and source lines. Linear in the number of resulting binds.
    """
    if not any(map(_is_inlined, fn.binds)):
        return fn
    return fn.memo(_inline_named)


def _inline_named(fn: Lambda) -> Lambda:
    """``fn`` with its own binds of named composites replaced by their bodies' binds."""
    builder, is_done = LetBuilder(), True
    for bind in fn.binds:
        if not bind.op.inlined or any(type(a) is Local and a.type is None for a in bind.args):
            builder.binds.append(bind)
            continue
        is_done = False
        builder.source = bind.source
        types = tuple([arg.type for arg in bind.args])
        program = decomposition(bind.op.decompose, types, bind.attrs)
        _bind_results(builder, bind, program)
    if is_done:  # the combinators that are left have operands of unknown types
        return fn
    # an inlined body may contain further combinators
    return without_combinators(fn.with_binds(builder.binds))


def _bind_results(builder: LetBuilder, bind: Bind, program: Lambda) -> None:
    """Append the binds of ``program``, with the original binders for its results."""
    before = len(builder.binds)
    results = builder.inline(program, bind.args)
    names: dict[Local, Local] = {}
    copied = []
    new_locals = {b for new in builder.binds[before:] for b in new.binders}
    for binder, result in zip(bind.binders, results, strict=True):
        if type(result) is Local and result in new_locals and result not in names:
            names[result] = binder
        else:  # the result is an operand, or is returned twice
            copied.append((binder, result))
    for i in range(before, len(builder.binds)):
        new = builder.binds[i]
        binders = tuple([names.get(binder, binder) for binder in new.binders])
        builder.binds[i] = new.replace(binders=binders, args=substitute_args(new.args, names))
    for binder, result in copied:
        operand = names.get(result, result) if type(result) is Local else result
        builder.binds.append(Bind((binder,), copy, (operand,), copy.complete({}), bind.source))
