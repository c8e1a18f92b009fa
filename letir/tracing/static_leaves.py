"""Static arguments, to whose values a program is specialised.

Loaded when a function is recorded with such arguments, or with options such as ``static_argnums``.
"""

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from letir.ast import LATE_BOUND
from letir.errors import DTypeError, TraceError
from letir.eval.arguments import StaticLeaf, parameters_of, positional_names, static_value
from letir.eval.array_modules import is_array
from letir.tracing.stand_ins import stand_in_of
from letir.tracing.trace_state import Trace


def with_static(
    f: Callable[..., Any],
    args: tuple,
    kwargs: dict,
    argnums: int | Sequence[int],
    argnames: str | Sequence[str],
) -> tuple[tuple, dict]:
    """The arguments with the static ones wrapped. Raises TraceError for a missing one."""
    argnums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    argnames = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    names = positional_names(f)[: len(args)]
    for number in argnums:
        if not -len(args) <= number < len(args):
            raise TraceError(
                f"static_argnums: there is no argument {number} among {len(args)}\n"
                "  count positional arguments from 0"
            )
    for name in argnames:
        if name not in kwargs and name not in parameters_of(f):
            raise TraceError(
                f"static_argnames: the function has no parameter {name!r}\n"
                "  name a parameter of the function"
            )
    static = {n % len(args) for n in argnums} | {i for i, n in enumerate(names) if n in argnames}
    labels = dict(enumerate(names))
    marked = [_static_leaf(a, labels.get(i, i)) if i in static else a for i, a in enumerate(args)]
    named = {k: _static_leaf(v, k) if k in argnames else v for k, v in kwargs.items()}
    return tuple(marked), named


def with_static_leaves(new: Trace, statics: dict[int, object], tracers: Sequence) -> list:
    """The arguments of the call that ``new`` records: traced values, and the static ones in their
    positions. Functions of NumPy and math among them record traced values.
    """
    rest = iter(tracers)
    values = {i: static_value(leaf) for i, leaf in statics.items()}
    new.functions = tuple([value for value in values.values() if callable(value)])
    if new.functions and new.intercepts:
        values = {i: stand_in_of(value) or value for i, value in values.items()}
    return [values[i] if i in values else next(rest) for i in range(len(statics) + len(tracers))]


def _static_leaf(value: Any, name: Any) -> StaticLeaf:
    """``value`` marked as static. Raises DTypeError if it is not hashable: it could change."""
    if type(value).__name__ in ("Generator", "RandomState", "Random"):
        raise DTypeError(
            f"static argument {name}: a random generator changes with each draw\n"
            "  pass a numpy.random.Generator as an ordinary argument, or a key: letir.random"
        )
    try:
        hash(value)
    except TypeError:
        remedy = "an array as an ordinary argument" if is_array(value) else "a tuple for a list"
        raise DTypeError(
            f"static argument {name}: a static argument must be hashable, found "
            f"{type(value).__name__}\n"
            f"  pass {remedy}"
        ) from None
    return StaticLeaf(value)


def refuse_ambiguous_options(args: tuple, kwargs: dict, options: Collection[str]) -> None:
    """Raise TraceError if an option given to ``trace`` is a parameter of the function, too."""
    f: Any = args[0] if args else kwargs.get("f")
    bound = f.keywords if isinstance(f, functools.partial) else ()
    parameters = parameters_of(f) if callable(f) else ()
    clash = [
        name for name in kwargs if name in options and name in parameters and name not in bound
    ]
    if clash:
        raise TraceError(
            f"{clash[0]!r} is an option of trace and a parameter of the function: "
            "a keyword would go to trace\n"
            f"  bind it first: functools.partial(f, {clash[0]}=...)"
        )


LATE_BOUND.update(
    refuse_ambiguous_options=refuse_ambiguous_options,
    with_static=with_static,
    with_static_leaves=with_static_leaves,
)
