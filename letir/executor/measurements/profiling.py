"""``Profiled``: a plan that observes its first calls, and is then specialised to them.

The first calls run the recorded program. Python numbers among the arguments that were the same each
time then become constants, which fold: x ** 2 becomes a square. A call with another number runs a
plan that takes it as an argument.
"""

import weakref
from collections.abc import Callable

from letir.ast import LATE_BOUND
from letir.ast.attrs import token
from letir.ast.process_state import new_lock
from letir.ast.terms import Const, Lambda
from letir.eval.array_modules import array_module
from letir.eval.memory_checks import check_writable
from letir.ops.effects.writes_to_arguments import changed_params
from letir.plan.plan import Plan, plan_of
from letir.visitors.substitution import substitute

_VARIES = object()  # the token of a number that differed between calls


class Profiled:
    """Runs the recorded ``program`` for ``calls`` calls, then plans made from it by ``optimize``.

    ``profiled`` is the program specialised to the numbers that were always the same, and
    ``specialized`` its optimised form; None before they are known.
    """

    def __init__(self, program: Lambda, optimize: Callable, calls: int, reason: str = ""):
        self.program, self.optimize, self.calls = program, optimize, calls
        self.profiled, self.optimized, self.reason = program, program, reason
        self.changed, self.executed = changed_params(program), weakref.ref(program)
        self.weak = [i for i, p in enumerate(program.params) if p.type and p.type.weak]
        self.seen: dict[int, object] = {}  # position -> token of the number, or VARIES
        self.constants: dict[int, object] = {}
        self.specialized: Lambda | None = None
        self.lock = new_lock()

    def run(self, leaves: list) -> tuple:
        """Flat results for arrays and numbers of the program's types; ``leaves`` is emptied."""
        if self.changed:
            check_writable(self.program, leaves, self.changed)
        xp = array_module(leaves)
        if self.specialized is None and not self.is_profiled(leaves):
            return plan_of(self.program).run(leaves, xp)
        if any(token(leaves[i]) != constant for i, constant in self.constants.items()):
            return self.general_plan.run(leaves, xp)
        remaining = self.remaining_arguments(leaves)
        leaves.clear()
        return self.specialized_plan.run(remaining, xp)

    def remaining_arguments(self, leaves: list) -> list:
        """The arguments that are also parameters of the specialised program."""
        return [leaf for i, leaf in enumerate(leaves) if i not in self.constants]

    def run_fallback(self, leaves: list) -> tuple:
        """Flat results of the recorded program, for the same arguments as ``run``."""
        return plan_of(self.program).run(leaves, array_module(leaves))

    def is_profiled(self, leaves: list) -> bool:
        """Record the numbers of one more call; returns whether enough calls have been observed."""
        with self.lock:
            if self.specialized is not None:
                return True
            for i in self.weak:
                number = token(leaves[i])
                if self.seen.setdefault(i, number) != number:
                    self.seen[i] = _VARIES
            self.calls -= 1
            if self.calls >= 0:
                return False
            self.constants = {i: number for i, number in self.seen.items() if number is not _VARIES}
            numbers = {self.program.params[i]: Const(leaves[i]) for i in self.constants}
            self.profiled = substitute(self.program, numbers)
            optimized = self.optimize(self.profiled)
            self.optimized, self.executed = optimized, weakref.ref(optimized)
            self.specialized = optimized  # assigned last: other threads run it from now on
        return True

    @property
    def specialized_plan(self) -> Plan:
        """The plan for the numbers that were always the same."""
        return plan_of(self.specialized)

    @property
    def general_plan(self) -> Plan:
        """The plan for any numbers, made when it is needed."""
        return plan_of(self.program.memo(self.optimize))


LATE_BOUND["profiled_plan"] = Profiled
