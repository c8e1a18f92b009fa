"""Derivative rules as straight-line Python, and the function that computes one operation."""

import functools
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Lambda, Local
from letir.eval.array_modules import cupy_module
from letir.eval.evaluator import Evaluator, compute


def compiled_kernel_of(op: Primitive, attrs: Attrs) -> Callable:
    """A function that computes ``op`` with these attributes: NumPy's ufunc if there is one."""
    if cupy_module() is not None:  # the operands decide the array module at each call
        return lambda *values: compute(op, values, attrs)
    (ufunc, *others) = [f for f in op.numpy if isinstance(f, np.ufunc)] or [None]
    # several NumPy functions record one operation, whose impl may differ from their ufuncs
    if op.elementwise and ufunc is not None and not (others or attrs or op.is_user_defined):
        return ufunc
    if op.holds_lambdas:
        return partial(op.impl, np, call=Evaluator(np).call, **attrs)
    return partial(op.impl, np, **attrs)


def straight_line_rule(body: Lambda) -> Callable:
    """A Python function that computes a small program, one line with one call for each bind.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = mul(%0, 2.0); %2 = sin(%1); return (%0, %2) }")
    >>> straight_line_rule(f)(0.0)
    (0.0, np.float64(0.0))
    """
    names: dict[Local, str] = {}
    space: dict[str, Any] = {}

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
        call = f"{constant(compiled_kernel_of(bind.op, bind.attrs))}({spelled(bind.args)})"
        several = "" if bind.op.results is None else ", "
        lines.append(f"    {''.join([named(b) + several for b in bind.binders]) or '_'} = {call}")
    lines.append(f"    return ({spelled(body.ret.args)})")
    # the source contains generated names only, no names of users
    exec(_compile_source("\n".join(lines)), space)
    return space["compute"]


@functools.lru_cache(1024)
def _compile_source(text: str) -> CodeType:
    """The compiled source, cached: rules for many types have the same source."""
    return compile(text, "<letir rule>", "exec")
