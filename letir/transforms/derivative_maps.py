"""``LinearMap``, the linear function that vjp and linearize return."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen

from letir.ad.gradient_program import zeros_for
from letir.ast import entry_point
from letir.ast.pytrees import Tree
from letir.ast.signatures import dir_of
from letir.ast.terms import Lambda, Local
from letir.errors import DTypeError
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.evaluator import run_flat
from letir.plan.plan import Plan, plan_of
from letir.tracing.source_locations import at_user
from letir.transforms.directions import as_direction
from letir.transforms.program_call import copy_shared_results, tree_of_results

_RUNS_BEFORE = 2  # of a program, before its plan is made


class LinearProgram:
    """A linear program that many calls may run: the first ones without a plan."""

    __slots__ = ("plan", "program", "runs")

    def __init__(self, program: Lambda) -> None:
        self.program = program
        self.plan: Plan | None = None
        self.runs = 0  # without the plan, approximately: threads may count at once

    def run(self, leaves: list) -> tuple:
        """The flat results; the list ``leaves`` is emptied."""
        if not ARRAY_CLASSES.issuperset(map(type, leaves)):
            return run_flat(self.program, leaves)
        if self.plan is None:
            self.runs += 1
            if self.runs <= _RUNS_BEFORE:
                return run_flat(self.program, leaves)
            self.plan = plan_of(self.program)
        return self.plan.run(leaves)


@frozen(eq=False)
class LinearMap:
    """The linear function that ``vjp`` and ``linearize`` return, with its ``program``.

    The parameters of the program are the flattened arguments, then the ``captured`` primal values.
    """

    _linear: LinearProgram = field(repr=False)
    captured: tuple
    _flat: Callable[[tuple], list] = field(repr=False)  # nested arguments -> leaves
    _nested: Callable[[Sequence], Any] = field(repr=False)  # leaves -> nested results
    __dir__ = dir_of("captured", "program")

    @property
    def program(self) -> Lambda:
        """The linear program."""
        return self._linear.program

    @entry_point
    def __call__(self, *args: Any) -> Any:
        leaves = [*self._flat(args), *self.captured]
        return self._nested(copy_shared_results(self._linear.run(leaves[:]), leaves))


def cotangents_of(tree: Tree, places: Sequence[int], types: Sequence, args: tuple) -> list:
    """The cotangents that ``pull`` is called with, of the results at ``places``.

    ``tree``: the nesting of the results; ``types``: of the results at ``places``.
    """
    if len(args) != 1:
        raise DTypeError(
            f"pull takes one cotangent, nested as the result; {len(args)} were given"
            f"{at_user()}\n  pass several in a tuple: pull((ct, other))"
        )
    is_single = tree is tree_of_results(1) and type(args[0]) in ARRAY_CLASSES
    leaves = args if is_single else tree.leaves_of(args[0], "pull")
    pairs = zip(places, types, strict=True)
    return [as_direction(leaves[i], aval, "cotangent") for i, aval in pairs]


def nest_cotangents(
    tree: Tree, params: Sequence[Local], by_place: dict[int, int], xp: Any, cts: Sequence
) -> tuple:
    """The cotangents of the positional arguments, nested as ``tree``.

    ``by_place``: the position of a parameter -> the position of its cotangent in ``cts``; other
    parameters have the cotangent None.
    """
    leaves = [
        zeros_for(p, cts[by_place[i]], xp) if i in by_place else None for i, p in enumerate(params)
    ]
    return tree.nest(leaves)[0]
