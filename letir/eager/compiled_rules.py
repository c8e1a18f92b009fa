"""Kernels: the functions that compute single operations, and rules as straight-line Python."""

import functools
from collections.abc import Callable
from functools import partial
from types import CodeType

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Lambda, Local
from letir.eval.array_modules import cupy_module
from letir.eval.evaluator import Evaluator, compute


def kernel(op: Primitive, attrs: Attrs) -> Callable:
    """What computes ``op`` with these attributes: NumPy's ufunc itself where it is one."""
    if cupy_module() is not None:  # the module is that of the operands, at each call
        return lambda *values: compute(op, values, attrs)
    (ufunc, *others) = [f for f in op.numpy if isinstance(f, np.ufunc)] or [None]
    # others: several NumPy functions record this one, and the ufunc may not be what impl does
    if op.elementwise and ufunc is not None and not (others or attrs or "." in op.name):
        return ufunc
    if op.holds_lambdas:
        return partial(op.impl, np, call=Evaluator(np).call, **attrs)
    return partial(op.impl, np, **attrs)


def straight_line(body: Lambda) -> Callable:
    """A Python function that computes a small program: one line a bind, each a kernel's call.

    >>> from letir.ast.text.parser import parse
    >>> straight_line(parse("lambda %0 { %1 = mul(%0, 2.0); %2 = sin(%1); return (%0, %2) }"))(0.0)
    (0.0, np.float64(0.0))
    """
    names: dict[Local, str] = {}
    space: dict[str, object] = {}

    def named(local: Local) -> str:
        names[local] = f"v{len(names)}"
        return names[local]

    def spelled(args: tuple[Arg, ...]) -> str:
        return "".join([f"{names[a] if type(a) is Local else constant(a.value)}, " for a in args])

    def constant(value) -> str:
        space[f"c{len(space)}"] = value
        return f"c{len(space) - 1}"

    params = ", ".join(map(named, body.params))
    lines = [f"def compute({params}):"]
    for bind in body.binds:
        call = f"{constant(kernel(bind.op, bind.attrs))}({spelled(bind.args)})"
        several = "" if bind.op.results is None else ", "
        lines.append(f"    {''.join([named(b) + several for b in bind.binders]) or '_'} = {call}")
    lines.append(f"    return ({spelled(body.ret.args)})")
    exec(_compiled("\n".join(lines)), space)  # the text has names of our own only, never the user's
    return space["compute"]


@functools.lru_cache(1024)
def _compiled(text: str) -> CodeType:
    """The code of a text: rules for many types have the same."""
    return compile(text, "<letir rule>", "exec")
