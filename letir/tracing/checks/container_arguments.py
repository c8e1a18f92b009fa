"""Functions that store values in a list, dict or object among their arguments.

A program writes into the arrays among its arguments, but not into the containers around them.
``jit`` runs such a function as Python; ``trace`` refuses it, unless the function also returns the
values that it has stored.
"""

import operator
from collections import deque
from typing import Any

import optree

from letir.ast import LATE_BOUND
from letir.ast.pytrees import has_fields
from letir.errors import TraceError
from letir.tracing.checks.object_arguments import flatten_objects, has_objects
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import LIFT_STATES, Trace


def refuse_stored_values(
    new: Trace, call: tuple[Any, list, optree.PyTreeSpec], result: Any, changes_arguments: bool
) -> None:
    """Raise an error if values that the function has stored in its arguments would be lost.

    ``MustRunAsPython`` in ``jit``, also if the function has read the text of an error; TraceError
    in a program that changes its arguments, unless ``result`` has these values and no argument is
    an object, which the result may be itself. ``call``: the arguments now, and their leaves and
    structure before.
    """
    others = _other_values(*call)
    if new.draws == LIFT_STATES:
        if new.reads_errors or others is not None:
            raise MustRunAsPython
    elif others is not None and changes_arguments:
        returned = set(map(id, flatten_objects(result)[0]))
        is_lost = not others or has_objects(call)
        if is_lost or any(id(value) not in returned for value in others):
            raise TraceError(
                "the function changes a list, dict or object that is an argument, which a replay "
                "would not do\n  return the new values, and store them after the call"
            )


def _other_values(call: Any, leaves: list, spec: optree.PyTreeSpec) -> list | None:
    """The leaves of ``call`` that are not among ``leaves``; None if it has these leaves only."""
    before = spec.unflatten(leaves)
    if flatten_objects(before)[1] != spec:
        return None  # static arguments are containers themselves
    now, tree = flatten_objects(call)
    is_same = tree == spec and not any(map(operator.is_not, now, leaves))
    if is_same and _key_orders(call) == _key_orders(before):  # trees are equal in any order
        return None
    leaf_ids = set(map(id, leaves))
    return [leaf for leaf in now if id(leaf) not in leaf_ids]


def _key_orders(value: Any) -> list[list]:
    """The keys of all dicts in nested containers and objects, in their orders."""
    if isinstance(value, dict):
        parts, keys = list(value.values()), [list(value)]
    elif isinstance(value, list | tuple | deque):
        parts, keys = list(value), []
    else:
        parts, keys = list(getattr(value, "__dict__", {}).values()), []
    return keys + [order for part in parts if not _is_plain(part) for order in _key_orders(part)]


def _is_plain(value: Any) -> bool:
    """Whether a value has no dicts in it: a number, an array, a function ..."""
    if isinstance(value, dict | list | tuple | deque):
        return False
    return not (has_objects(value) or has_fields(type(value)))


LATE_BOUND["refuse_stored_values"] = refuse_stored_values
