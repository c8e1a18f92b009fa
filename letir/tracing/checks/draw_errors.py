"""The errors for draws from hidden random state, with the lines of the draws in the code."""

import dis
import sys
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.terms import Source
from letir.errors import TraceError
from letir.tracing.checks.hidden_random_state import (
    MAX_FUNCTIONS,
    closure_of,
    generator_types,
    plain_function,
)
from letir.tracing.refusals import mark_outside_state
from letir.tracing.source_locations import at_user

_REPLACEMENTS = {
    **dict.fromkeys(("normal", "randn", "standard_normal", "gauss"), "normal(key, shape)"),
    **dict.fromkeys(("uniform", "rand", "random", "random_sample"), "uniform(key, shape)"),
    **dict.fromkeys(("randint", "randrange", "integers"), "randint(key, shape, low, high)"),
    **dict.fromkeys(("choice", "choices", "sample"), "choice(key, a, shape)"),
    **dict.fromkeys(("permutation", "shuffle", "permuted"), "permutation(key, x)"),
    **dict.fromkeys(("exponential", "expovariate"), "exponential(key, shape)"),
    **dict.fromkeys(("gamma", "standard_gamma", "gammavariate"), "gamma(key, a, shape)"),
    "binomial": "bernoulli(key, p, shape)",
    "multinomial": "categorical(key, logits)",
}


def draws_in_code_error(origin: str, f: Callable) -> TraceError:
    """The error for draws from hidden state, with the draws that appear in the code of ``f``."""
    places = list(_draws_in(f))
    where = "".join(f"\n  at {source}: {name}" for source, name in places[:5])
    return hidden_draw_error(origin, list(dict.fromkeys(name for _, name in places)), where)


def refused_draw_error(generator: Any, name: str, is_own: bool) -> TraceError:
    """The error for a draw that would be a constant of the program."""
    kind = type(generator)
    if is_own:
        source = "a generator that the function makes without a seed"
    elif generator is getattr(sys.modules.get("random"), "_inst", None):
        source = "random"
    elif generator is getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None):
        source = "numpy.random"
    elif kind.__module__ == "random":
        source = "a random.Random"
    else:
        source = "a generator that is not an argument of the function"
    return hidden_draw_error(source, [name])


def hidden_draw_error(source: str, names: list[str], where: str | None = None) -> TraceError:
    """The error for draws by methods of these names from a hidden state.

    ``where``: the lines of the draws, the user's line by default.
    """
    replacements = [
        f"letir.random.{_REPLACEMENTS[name]}" for name in names if name in _REPLACEMENTS
    ]
    remedy = " or ".join(replacements[:3]) or "letir.random"
    if where is None:
        where = f"{at_user()}: {names[0]}"
    return mark_outside_state(
        TraceError(
            f"while the function was traced, numbers were drawn from {source}: "
            f"they would be constants of the program{where}\n"
            f"  draw by a key that is an argument, {remedy}\n"
            "  or make a numpy.random.Generator an argument"
        )
    )


def _draws_in(f: Callable) -> Iterator[tuple[Source, str]]:
    """(source, method) of each call on a global or captured generator in the code of ``f``."""
    todo: list[Any] = [f]
    visited: set[FunctionType] = set()
    while todo and len(visited) < MAX_FUNCTIONS:
        function = plain_function(todo.pop())
        if function is None or function in visited:
            continue
        visited.add(function)
        names = {**vars(sys.modules["builtins"]), **function.__globals__}
        names.update(closure_of(function))
        for source, value in _values_spelled(function.__code__, names):
            if type(value) is FunctionType and value.__globals__ is function.__globals__:
                todo.append(value)
            elif _is_draw(value):
                yield source, value.__name__


def _is_draw(value) -> bool:
    """Whether an object is a method of NumPy's generators, or of ``random``'s hidden one."""
    owner = getattr(value, "__self__", None)
    if not isinstance(value, BuiltinMethodType | MethodType) or owner is None:
        return False
    return type(owner) in generator_types()


def _values_spelled(code: CodeType, names: dict) -> Iterator[tuple[Source, Any]]:
    """(source, value) of each name with attributes that a code object reads."""
    value, line = None, code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = (instruction.positions and instruction.positions.lineno) or line
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            value = names.get(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and value is not None:
            value = getattr(value, instruction.argval, None)
        elif instruction.opname != "CACHE":
            value = None
        if value is not None:
            yield Source(code.co_filename, line), value
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _values_spelled(inner, names)


LATE_BOUND["draws_in_code_error"] = draws_in_code_error
