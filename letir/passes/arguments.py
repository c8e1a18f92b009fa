"""A pass that keeps arguments as they are: without_writes."""

from letir.ast.terms import Arg, Lambda, Local
from letir.ops.effects.writes_to_arguments import changed_params, write_back
from letir.visitors.substitution import substitute


def without_writes(fn: Lambda) -> Lambda:
    """Leave out what is written into arguments; results are the new values all the same.

    What transforms start from: a derivative is one of the initial values, and changes nothing.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = write_back(%0, %1); %3 = neg(%2); return %3 }")
    >>> print(without_writes(f).listing(), end="")
    %1 = exp %0
    %2 = neg %1
    return %2
    """
    if not changed_params(fn):
        return fn
    values: dict[Local, Arg] = {}
    for bind in fn.binds:
        if bind.op is write_back:
            new = bind.args[1]
            values[bind.binders[0]] = values.get(new, new)
    kept = fn.with_binds([bind for bind in fn.binds if bind.op is not write_back])
    return substitute(kept, values)
