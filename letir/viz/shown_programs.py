"""The program or the plan that a function of ``letir.viz`` shows for its argument, and the user's
lines."""

import ast
import linecache
from functools import cache
from typing import Any

from letir.ad.gradient_program import Gradient
from letir.ast.source import Source
from letir.ast.terms import Lambda
from letir.errors import DTypeError
from letir.executor.compiled import Compiled
from letir.executor.compiled import compile as compile_program
from letir.executor.jit_api import JittedFunction
from letir.plan.plan import Plan


def shown_program(name: str, value: Any) -> Lambda:
    """The program to show for ``value``: for a Gradient both of its programs as one, for a plan the
    optimised program.

    Raises DTypeError for other values; ``name`` is the calling function, for the message.
    """
    if isinstance(value, Lambda):
        return value
    if isinstance(value, Gradient):
        return value.joined()
    if isinstance(value, Compiled):
        return value.optimized
    raise _no_program(name, value)


def shown_plan(name: str, value: Any) -> Plan:
    """The plan to show for ``value``: for a program the plan that ``compile`` makes, for a jitted
    function the plan of its last call.
    """
    if isinstance(value, JittedFunction):
        plans = value.debug_state().plans
        if plans and isinstance(plans[0].plan, Plan):
            return plans[0].plan
        raise DTypeError(
            f"{name}: {getattr(value, '__name__', 'the function')} has no plan yet\n"
            "  call it first, or pass a program: letir.trace(f, ...)"
        )
    if isinstance(value, Compiled):
        return value.plan
    return compile_program(shown_program(name, value)).plan


def _no_program(name: str, value: Any) -> DTypeError:
    return DTypeError(
        f"{name} shows a program, a Gradient or a compiled program, found {type(value).__name__}\n"
        "  record a function with letir.trace(f, ...)"
    )


# ---- the user's lines ----


def source_line_of(source: Source | None) -> str:
    """The user's line as it is in the file; empty if that cannot be known."""
    if source is None:
        return ""
    if source.text is not None:  # from a text: a file of this name may be a different one
        return source.text
    return linecache.getline(source.file, source.line).strip()


def function_of(source: Source | None) -> str:
    """The name of the function that contains a line, or its file if that cannot be known."""
    if source is None:
        return ""
    if source.text is None:
        for first, last, name in functions_in_file(source.file):
            if first <= source.line <= last:
                return name
    return source.short_file


@cache
def functions_in_file(file: str) -> list[tuple[int, int, str]]:
    """(first line, last line, name) of the functions in a file, inner ones first."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    result = [
        (node.lineno, node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]
    return sorted(result, key=lambda span: span[1] - span[0])
