"""Functions recorded for symbolic sizes, without leaving the changes of a second recording."""

import functools
from typing import TYPE_CHECKING, Any

from letir.ast import LATE_BOUND
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.eval.arguments import TypedLeaf, is_static
from letir.executor.active_recordings import ActiveRecording, EndOfRecording
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import PlanRequest
from letir.executor.default_pipeline import with_limit
from letir.executor.plan_making import (
    captured_state,
    contents_of,
    is_unchanged,
    record_function,
    refuse_changed_state,
    search_roots,
)
from letir.executor.symbolic_shapes import NoSymbolicProgram, check_agrees, record_for_symbols

if TYPE_CHECKING:
    from letir.executor.executor import Executor


def record_for_sizes(executor: "Executor", request: PlanRequest, key: ArgumentSpec) -> Lambda:
    """The function recorded with the symbolic sizes of ``key``.

    Raises NoSymbolicProgram if the function needs fixed sizes, may take values of iterators outside
    of it, or is too long to be recorded. The function is recorded for the sizes of the request,
    too; what it changes outside of itself is changed once, or not at all if there is an error.
    """
    iterators, holders, is_all = captured_state(search_roots(executor, request))
    if iterators:
        raise NoSymbolicProgram("it has an iterator outside of it")
    if executor.ended_recording:  # it would be recorded several times, without a limit
        raise NoSymbolicProgram(executor.ended_recording)
    before = kept = [contents_of(holder, whole=True) for holder in holders]
    try:
        with ActiveRecording() as recording:
            if is_all and executor.watches_state:
                recording.state = holders, before, is_all
            do = functools.partial(record_function, executor.f, request.marked)
            fixed, _ = with_limit(executor, request, do)()
            refuse_changed_state(executor, request, recording, (holders, before, fixed))
        now = [contents_of(holder, whole=True) for holder in holders]
        fn = record_for_symbols(
            lambda kinds: record_function(executor.f, _with_types(request.marked, kinds))[0], key
        )
        check_agrees(fn, fixed, request.leaves)
        kept = now
    except EndOfRecording:
        raise NoSymbolicProgram(recording.effect) from None
    except Exception as error:
        if hasattr(error, "letir_drops_plans") or isinstance(error, NoSymbolicProgram):
            raise
        # the recording for the fixed sizes alone will raise it
        raise NoSymbolicProgram(f"{type(error).__name__}: {error}") from None
    finally:
        if not all(map(is_unchanged, holders, kept)):
            LATE_BOUND["restore_state"](holders, kept)
    return fn


def _with_types(marked: tuple[tuple, dict], kinds: list) -> tuple[tuple, dict]:
    """Marked arguments in which arrays have these types, whose sizes may be symbolic."""
    leaves, tree = flatten(marked)
    new = iter(kinds)
    typed: Any = tree.unflatten(
        [leaf if is_static(leaf) else _typed_argument(leaf, next(new)) for leaf in leaves]
    )
    return typed


def _typed_argument(leaf, aval):
    """An argument of this type."""
    # a 0-d array differs from a scalar: += changes it in place
    return TypedLeaf(aval, leaf) if aval.shape else leaf


LATE_BOUND["record_for_sizes"] = record_for_sizes
