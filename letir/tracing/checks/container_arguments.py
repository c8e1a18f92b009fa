"""Functions that store values in a list, dict or object among their arguments.

A program writes into the arrays among its arguments, but not into the containers around them.
``jit`` runs such a function as Python; ``trace`` refuses it, unless the function also returns the
values that it has stored.
"""

import operator
from typing import Any

import optree

from letir.ast import LATE_BOUND
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
    if flatten_objects(spec.unflatten(leaves))[1] != spec:
        return None  # static arguments are containers themselves
    now, tree = flatten_objects(call)
    if tree == spec and not any(map(operator.is_not, now, leaves)):
        return None
    leaf_ids = set(map(id, leaves))
    return [leaf for leaf in now if id(leaf) not in leaf_ids]


LATE_BOUND["refuse_stored_values"] = refuse_stored_values
