"""Dead-target elimination: branches and loops without the targets that are never read.

``Liveness`` works on the syntax of a whole script, in which a branch without results still reads
names. Reading the script drops such a branch, which may have been the last reader of a target of an
earlier branch or loop. Assignments stay.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import evolve

from letir.scripting.script_terms import (
    Block,
    Branch,
    ScriptFor,
    ScriptWhile,
    Statement,
    names_in,
    terms_in,
)


def without_unread_targets(
    statements: Sequence[Statement], read: Iterable[str]
) -> tuple[Statement, ...]:
    """The statements without unread targets of branches and loops, and without branches and loops
    that then have no targets. A target is read in a later statement, or if it is in ``read``.
    """
    live, result = set(read), []
    for statement in reversed(statements):
        narrow = _NARROWED.get(type(statement))
        narrowed = statement if narrow is None else narrow(statement, live)
        if narrowed.targets:
            live.difference_update(narrowed.targets)
            live.update(names_in(*terms_in([narrowed])))
            result.append(narrowed)
    return tuple(reversed(result))


def _values_at(values: Sequence, places: Iterable[int]) -> tuple:
    """The values at these places."""
    return tuple([values[i] for i in places])


def _narrowed_block(block: Block, places: Iterable[int]) -> Block:
    """The block with the results at these places only."""
    results = _values_at(block.results, places)
    return Block(without_unread_targets(block.body, names_in(*results)), results)


def _narrowed_branch(branch: Branch, live: set[str]) -> Branch:
    """The branch with the targets that are live after it."""
    places = [i for i, target in enumerate(branch.targets) if target in live]
    return evolve(
        branch,
        targets=_values_at(branch.targets, places),
        names=_values_at(branch.names, places),
        on_true=_narrowed_block(branch.on_true, places),
        on_false=_narrowed_block(branch.on_false, places),
    )


def _narrowed_loop(loop: ScriptWhile | ScriptFor, live: set[str]) -> ScriptWhile | ScriptFor:
    """The loop with the carried values that are live after it, or read in one of its steps.

    A round that drops nothing is the last one, so that all rounds of nested loops together are at
    most one more than there are carried values.
    """
    while True:
        places: Sequence[int] = range(len(loop.targets))
        loop = evolve(loop, block=_narrowed_block(loop.block, places))
        # initial values are read before the loop, not in a step
        inside = set(names_in(*terms_in([evolve(loop, initial=())])))
        places = [i for i in places if loop.targets[i] in live or loop.params[i] in inside]
        if len(places) == len(loop.targets):
            return loop
        loop = evolve(
            loop,
            targets=_values_at(loop.targets, places),
            params=_values_at(loop.params, places),
            initial=_values_at(loop.initial, places),
            names=_values_at(loop.names, places),
            block=Block(loop.block.body, _values_at(loop.block.results, places)),
        )


_NARROWED: dict[type, Callable[[Any, set[str]], Branch | ScriptWhile | ScriptFor]] = {
    Branch: _narrowed_branch,
    ScriptWhile: _narrowed_loop,
    ScriptFor: _narrowed_loop,
}
