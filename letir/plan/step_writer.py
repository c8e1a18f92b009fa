"""``StepWriter``: writes the text of a straight-line function, step by step.

The forms of operations (``letir.ops.as_numpy.quick_forms``) ask it for their operands, and for the
facts about these. ``letir.plan.straight_line`` compiles the text.
"""

import sys
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.terms import NO_TYPE, Bind, Const
from letir.ast.types import ArrayType
from letir.eval.float_warnings import is_silent
from letir.ops.as_numpy.quick_forms import quick_form, write_form
from letir.ops.as_numpy.quick_numbers import (
    FLOAT,
    NUMBER_FACTS,
    NUMBERS,
    compares_numbers,
    makes_array,
    number_form,
    number_test,
    result_fact,
    spreading_operands,
)
from letir.plan.instructions import direct_ufunc, is_kernel, kernel_ufunc
from letir.plan.other_steps import add_other
from letir.plan.reused_operands import reuse_test
from letir.plan.slot_allocation import ONE, OTHER, slots_of_step
from letir.plan.sole_memory import SoleMemory
from letir.plan.stencil_steps import stencil_form

_INT_END = 1 << 63


class LeftToSteps(Exception):
    """Raised by the generated function to leave a step to the plan."""


def _references_to_local() -> int:
    """The reference count of an array that one local variable holds."""
    x = np.empty(1)
    return sys.getrefcount(x)


# Measured, because it differs between versions of CPython.
ALONE = _references_to_local()


@define(eq=False)
class StepWriter:
    """Writes the text of the function; the forms of operations ask it for their operands."""

    table: Any
    n_params: int
    plain: bool
    misses: bool = False  # whether a failed guard makes the function return Miss
    stacked: frozenset[int] = frozenset()  # the casts whose results are operands of stack alone
    lines: list[str] = field(factory=list)
    steps: list[int] = field(factory=list)
    may_repeat: list[bool] = field(factory=list)
    step: int = -1
    names: dict[str, Any] = field(init=False)
    facts: dict[int, str] = field(factory=dict)  # by slot, see ``result_fact``
    is_loud: bool = False
    kernels: int = 0
    has_integers: bool = False  # whether there are operators of integer scalars, which may warn
    has_arrays: bool = False  # whether any step is not an operation of Python numbers
    # state of the step that is being written:
    bind: Any = None
    slots: tuple = ()
    dying: tuple = ()
    tests: dict[Any, int] = field(factory=dict)  # the lines that test Python floats
    covered: set = field(factory=set)  # floats that another test shows to be finite
    memory: SoleMemory = field(factory=SoleMemory)
    arguments: set = field(init=False)  # the slots that hold arguments of the plan
    _globals_of: dict[int, str] = field(factory=dict)
    kept: list = field(factory=list)

    def __attrs_post_init__(self):
        # the warning registry is not a dict, see letir.plan.plan
        self.names = {
            "__warningregistry__": "see letir.plan.plan",
            "LEAVE": LeftToSteps,
            "ALONE": ALONE,
        }
        self.names |= {"__name__": __name__, "getrefcount": sys.getrefcount, "array": np.array}
        self.arguments = set(range(self.n_params))
        # slots of constants are never assigned to: their names are global ones
        for n, value in enumerate(self.table.rest):
            self.names[f"s{self.n_params + n}"] = value

    # ---- the operands and the result of a step, for quick forms ----

    def operand(self, i: int) -> str:
        """The text of an operand: a variable, a global name, or a Python number."""
        arg = self.bind.args[i]
        value = arg.value if type(arg) is Const else None
        is_plain = type(value) is int or (type(value) is float and isfinite(value))
        return f"({value!r})" if is_plain else f"s{self.slots[i]}"

    def slot(self, i: int) -> str:
        """The variable or global name of an operand."""
        return f"s{self.slots[i]}"

    def known_number(self, i: int) -> Any:
        """The number that an operand is in every call; None if it is not known."""
        arg = self.bind.args[i]
        return arg.value if type(arg) is Const else self.names.get(f"s{self.slots[i]}")

    def type(self, i: int) -> ArrayType | None:
        """The type of an operand, None if it is not known."""
        aval = self.bind.args[i].type
        return None if aval is NO_TYPE else aval

    @property
    def result(self) -> ArrayType | None:
        """The type of the result, None if it is not known."""
        aval = self.bind.binders[0].type
        return None if aval is NO_TYPE else aval

    def fact(self, i: int) -> str | None:
        """The fact about an operand: FLOAT or INT for Python numbers, SCALAR, OWNED, or None."""
        arg = self.bind.args[i]
        if type(arg) is Const:
            is_float = type(arg.value) is float
            return (
                NUMBER_FACTS.get(type(arg.value)) if not is_float or isfinite(arg.value) else None
            )
        return self.facts.get(self.slots[i])

    def is_dying(self, i: int) -> bool:
        """Whether this is the last use of an operand."""
        return self.slots[i] in self.dying

    @property
    def is_stacked(self) -> bool:
        """Whether this step is a cast whose result is only used as an operand of ``stack``."""
        return self.step in self.stacked

    def is_argument(self, i: int) -> bool:
        """Whether an operand is an argument of the plan."""
        return self.slots[i] in self.arguments

    def is_sole(self, i: int, others: tuple[int, ...] = ()) -> bool:
        """Whether after this step only the variable of operand ``i`` refers to its memory.

        ``others``: operands that may be views of it, at their last use.
        """
        views = [self.slots[n] for n in others if self.is_dying(n)]
        return self.is_dying(i) and self.memory.is_sole(self.slots[i], views)

    def constant(self, value: Any) -> str:
        """The global name of a value."""
        result = self._globals_of.get(id(value))
        if result is None:
            result = self._globals_of[id(value)] = f"c{len(self._globals_of)}"
            self.names[result] = value
            self.kept.append(value)
        return result

    # ---- writing ----

    def line(self, text: str, may_repeat: bool = True) -> None:
        """Append a line of the current step."""
        self.lines.append(text)
        self.steps.append(self.step)
        self.may_repeat.append(may_repeat)

    def start(self, n_params: int, weak_params: dict[int, str]) -> None:
        """Write the head of the function: the arguments and their checks."""
        self.line("def run(leaves):")
        if n_params:
            self.line(f" {', '.join([f's{n}' for n in range(n_params)])}, = leaves")
            self.line(" leaves.clear()")
        for n, fact in weak_params.items():
            self.line(f" if type(s{n}) is not {fact}: raise LEAVE")
        self.facts.update(weak_params)
        if self.table.unused:
            self.line(f" {self.assign_none(self.table.unused)}")

    def add(self, step: tuple, bind: Bind) -> bool:
        """Append a step; True if the text includes the next step too."""
        kind, f, i, j, k, c = step
        self.bind = bind
        self.slots, cleared = slots_of_step(kind, i, j, c)
        if kind == OTHER:
            self.dying = cleared
            add_other(self, f, i, k, c)
            return False
        self.dying = (*cleared, k)
        if self.misses and self.add_guard(f, k, cleared):
            return True
        number = self.number_step(k)
        if number is not None:
            self.add_number(*number, k, cleared)
            return True
        if bind.op.role == "write_back" and self.add_write(f, k, cleared):
            return False
        form = quick_form(self, bind)
        is_new = form is not None and makes_array(bind)
        if form is None:
            form = self.call(f, bind)
            is_new = direct_ufunc(bind) is not None or is_kernel(bind)
            test = reuse_test(self)
            if test is not None:
                # the step may not be repeated: the operand may have been overwritten
                self.is_loud, reused = True, f"{form[:-1]}, out={self.slot(test[0])})"
                self.store(f"{reused} if {test[1]} else {form}", k, cleared, may_repeat=False)
                form = None
        if form is not None:
            self.store(form, k, cleared)
        self.note(k, cleared, is_new)
        return False

    def add_guard(self, function: Callable, target: int, cleared: tuple) -> bool:
        """Append a comparison whose only use is the guard in the next step."""
        if self.step + 1 == len(self.table.steps):
            return False
        guard, (_, _, operands, _, _, guard_cleared) = (
            self.table.bind_at(self.step + 1),
            self.table.steps[self.step + 1],
        )
        value = guard.attrs.get("value")
        if (
            guard.op.role != "guard"
            or type(value) is not bool
            or operands != (target,)
            or target not in guard_cleared
        ):
            return False
        text = number_test(self, self.bind)
        if text is None:
            return False
        self.line(f" if not ({text}): return Miss" if value else f" if {text}: return Miss")
        freed = sorted({*cleared, target})
        self.line(f" {self.assign_none(freed)}")
        self.forget(freed)
        return True

    def add_write(self, function: Callable, target: int, cleared: tuple) -> bool:
        """Append a write to an argument as an assignment; False if it has no such form."""
        form = write_form(self, self.bind)
        if form is None:
            return False
        test, action = form
        self.line(f" if {test}: {action}; s{target} = {self.slot(0)}")
        self.line(f" else: s{target} = {self.call(function, self.bind)}")
        freed = [n for n in cleared if n != target]
        if freed:
            self.line(f" {self.assign_none(freed)}")
        self.forget((target, *cleared))
        return True

    def number_step(self, target: int) -> tuple[str, str] | None:
        """(text, fact) for this step and the next, which converts the result to a Python number."""
        if self.plain or self.step + 1 == len(self.table.steps):
            return None
        kind, _, operand, _, result, _ = self.table.steps[self.step + 1]
        if kind != ONE or not operand == target == result:
            return None
        return number_form(self, self.bind, self.table.bind_at(self.step + 1))

    def add_number(self, form: str, fact: str, target: int, cleared: tuple) -> None:
        """Append a Python operator, and a test that NumPy's operator gives the same number."""
        # the operands must not be cleared before the test: the plan may have to repeat the step
        variable = "t" if target in self.slots and not self.misses else f"s{target}"
        self.line(f" {variable} = {form}")
        # NumPy warns of infinite results; letir's integers have 64 bits; no draw is repeated
        test = (
            f"{variable} - {variable}"
            if fact == FLOAT
            else f"not -{_INT_END} <= {variable} < {_INT_END}"
        )
        if self.bind.op.role == "own_draw":
            self.has_arrays = True
        else:
            if fact == FLOAT:
                self.note_test()
            self.line(f" if {test}: raise LEAVE")
        if variable == "t":
            self.store("t", target, cleared)
        elif cleared:
            self.line(f" {self.assign_none(cleared)}")
        self.forget((target, *cleared))
        self.facts[target] = fact

    def note_test(self) -> None:
        """Note the test of a Python float, and the operands that it proves to be finite."""
        self.covered.update([x for x in spreading_operands(self.bind) if x in self.tests])
        self.tests[self.table.bind_at(self.step + 1).binders[0]] = len(self.lines)

    def needed_lines(self) -> list[str]:
        """The lines without the tests of floats that other tests cover."""
        dropped = {self.tests[local] for local in self.covered}
        return [line for n, line in enumerate(self.lines) if n not in dropped]

    def note(self, target: int, cleared: tuple, is_new: bool = False) -> None:
        """Store the facts about a result, and drop the facts about cleared slots.

        ``is_new``: whether an array with axes is known to have been made.
        """
        fact = result_fact(self, self.bind)
        self.has_arrays |= fact not in NUMBERS and not compares_numbers(self, self.bind)
        shared = self.memory.record_use(self.bind, self.slots)
        self.forget((target, *cleared))
        if fact is not None:
            self.facts[target] = fact
        if is_new and self.result is not None and self.result.shape:
            self.memory.add_new(target)
        elif shared is not None:  # empty if the view takes the slot of the array
            self.memory.share(target, shared)

    def forget(self, slots: Iterable[int]) -> None:
        """Drop the facts about slots."""
        for n in slots:
            self.facts.pop(n, None)
            self.arguments.discard(n)
        self.memory.forget(slots)

    def call(self, f: Callable, bind: Bind) -> str:
        """The call of a step's function."""
        kernel = None if self.plain else kernel_ufunc(bind)
        if getattr(bind.op.impl, "stencil", None) is not None and not self.plain:
            return stencil_form(self, f)
        if kernel is not None:
            facts: Any = bind.op.impl
            self.kernels = max(self.kernels, facts.least_state)
            tests = [f"{self.slot(n)}.flags.c_contiguous" for n in facts.deciding]
            if tests:
                return f"{self.call_text(kernel)} if {' and '.join(tests)} else {self.call_text(f)}"
            f = kernel
        elif direct_ufunc(bind) is None and not is_silent(bind.op):
            self.is_loud = True
        return self.call_text(f)

    def call_text(self, f: Callable) -> str:
        """The call of a function with the operands of the current step."""
        return f"{self.constant(f)}({', '.join(map(self.slot, range(len(self.slots))))})"

    def store(self, form: str, target: int, cleared: tuple, may_repeat: bool = True) -> None:
        """Store a result, and clear the variables that are not used any more."""
        if form == f"s{target}" and not cleared:
            return
        text = f" s{target} = {form}"
        if cleared:
            text += f"; {self.assign_none(cleared)}"
        self.line(text, may_repeat)

    def assign_none(self, slots: Iterable[int]) -> str:
        """The statement that clears variables."""
        return " = ".join([f"s{n}" for n in slots]) + " = None"

    def finish(self, finish: Callable) -> None:
        """Write the end of the function: the results."""
        self.step = len(self.table.steps) - 1
        self.line(f" return {self.results(finish)}", False)

    def gives_numbers(self) -> bool:
        """Whether all steps compute with Python's numbers alone, and the results are numbers."""
        constants = dict(enumerate(self.table.rest, self.n_params))
        return not self.has_arrays and all(
            self.facts.get(n) in NUMBERS or type(constants.get(n)) in (bool, *NUMBER_FACTS)
            for n in self.table.results
        )

    def results(self, finish: Callable) -> str:
        """The text of the tuple of results."""
        table = self.table
        results = "".join([f"s{n}, " for n in table.results])
        if table.constants and table.shared:
            return f"{self.constant(finish)}({self.constant(table)}, ({results}))"
        return f"({results})"
