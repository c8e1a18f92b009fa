"""``straight_line``: the steps of a plan as a Python function, one local variable for each slot.

A plan that runs often becomes such a function: it has no loop over steps, and spells operations in
the cheapest way (``letir.ops.as_numpy.quick_forms``). Any error in it, a floating-point warning
included, is left to the steps of the plan: they go on from the slots of the failed frame.
"""

import sys
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from math import isfinite
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.gc_pause import paused_gc
from letir.ast.terms import NO_TYPE, Bind, Const
from letir.ast.types import ArrayType
from letir.ops.as_numpy.quick_forms import (
    FLOAT,
    NUMBER_FACTS,
    OWNED,
    number_fact,
    number_form,
    quick_form,
    result_fact,
    write_form,
)
from letir.plan.instructions import direct_ufunc, is_silent
from letir.plan.reused_operands import reuse_test

ONE, TWO, TWO_AND_CLEAR, ONE_AND_CLEAR, MANY, OTHER = range(6)
_MOST_STEPS = 4_000  # compiling a function takes about 15 us a step
_INT_END = 1 << 63
_MOST_LEFT = 8  # runs left to the steps, before the function does without what makes them
# beside this module: not a file of users, whose lines warnings would name
_FILE = str(Path(__file__).with_name("<steps>"))


class LeftToSteps(Exception):
    """Raised by the function to leave a step to the plan."""


def _references_to_local() -> int:
    """The reference count of an array that one local variable holds."""
    x = np.empty(1)
    return sys.getrefcount(x)


# Measured, because it differs between versions of CPython.
ALONE = _references_to_local()


@frozen
class StraightLine:
    """The function of a plan, and for each of its lines the step.

    ``run(leaves)`` gives the results and empties ``leaves``. ``may_repeat``: for each line, whether
    the plan may execute its step after the line failed. ``is_loud``: whether the floating-point
    state must be set for a run, because some steps warn in NumPy's own frames.
    """

    run: Callable[[list], tuple]
    code: CodeType
    steps: tuple[int, ...]
    may_repeat: tuple[bool, ...]
    slots: tuple[str, ...]
    is_loud: bool

    def failed_at(self, error: BaseException) -> tuple[int, bool, FrameType | None]:
        """(step, whether the plan may repeat it, the frame) of an error; step -1: before them."""
        at: TracebackType | None = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code is self.code:
                line = at.tb_lineno - 1
                return self.steps[line], self.may_repeat[line], at.tb_frame
            at = at.tb_next
        return -1, False, None


@paused_gc()
def straight_line(
    table: Any, n_params: int, weak_params: dict[int, str], finish: Callable, plain: bool = False
) -> StraightLine:
    """The function for the steps of a table.

    ``weak_params``: what is known of parameters that are Python numbers. ``finish``: what is done
    with results that may share memory with constants. ``plain``: no operators of scalars, which
    warn in other words. Linear time.
    """
    text = _Writer(table, n_params, plain)
    text.start(n_params, weak_params)
    skip = False
    for n, step in enumerate(table.steps):
        if not skip:
            text.step = n
            skip = text.add(step, bind_at(table, n))
        else:
            skip = False
    text.finish(table, finish)
    if text.is_loud and text.has_integers:
        return straight_line(table, n_params, weak_params, finish, plain=True)
    return text.made()


def bind_at(table: Any, n: int) -> Bind:
    """The bind of step ``n``."""
    where = table.where[n]
    return where[0][1] if type(where) is tuple else where


@define(eq=False)
class _Writer:
    """The text of a function in the making; the forms of operations ask it for operands."""

    table: Any
    n_params: int
    plain: bool
    lines: list[str] = field(factory=list)
    steps: list[int] = field(factory=list)
    may_repeat: list[bool] = field(factory=list)
    step: int = -1
    names: dict[str, Any] = field(init=False)
    facts: dict[int, str] = field(factory=dict)  # what is known of slots, see ``result_fact``
    is_loud: bool = False
    has_integers: bool = False  # operators of integer scalars, which warn where ufuncs do not
    # of the step that is being written
    bind: Any = None
    slots: tuple = ()
    dying: tuple = ()
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
        # slots of constants are never assigned to: their names are global ones
        for n, value in enumerate(self.table.rest):
            self.names[f"s{self.n_params + n}"] = value

    # ---- what forms ask for ----

    def operand(self, i: int) -> str:
        """The text of an operand: a variable, a global name, or a Python number."""
        arg = self.bind.args[i]
        value = arg.value if type(arg) is Const else None
        is_plain = type(value) is int or (type(value) is float and isfinite(value))
        return f"({value!r})" if is_plain else f"s{self.slots[i]}"

    def slot(self, i: int) -> str:
        """The variable or global name of an operand."""
        return f"s{self.slots[i]}"

    def type(self, i: int) -> ArrayType | None:
        """The type of an operand, None if it is not known."""
        kind = self.bind.args[i].type
        return None if kind is NO_TYPE else kind

    @property
    def result(self) -> ArrayType | None:
        """The type of the result, None if it is not known."""
        kind = self.bind.binders[0].type
        return None if kind is NO_TYPE else kind

    def fact(self, i: int) -> str | None:
        """What is known of an operand: FLOAT or INT for Python numbers, SCALAR, or OWNED."""
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

    def constant(self, value: Any) -> str:
        """The global name of a value."""
        found = self._globals_of.get(id(value))
        if found is None:
            found = self._globals_of[id(value)] = f"c{len(self._globals_of)}"
            self.names[found] = value
            self.kept.append(value)
        return found

    # ---- writing ----

    def line(self, text: str, may_repeat: bool = True) -> None:
        """Append a line of the current step."""
        self.lines.append(text)
        self.steps.append(self.step)
        self.may_repeat.append(may_repeat)

    def start(self, n_params: int, weak_params: dict[int, str]) -> None:
        """The head: the arguments and their checks."""
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
        """Append a step; True if the text holds the next step too."""
        kind, f, i, j, k, c = step
        self.bind = bind
        if kind == OTHER:
            self.slots, self.dying = i, c
            self.add_other(f, i, k, c)
            return False
        self.slots = (i,) if kind in (ONE, ONE_AND_CLEAR) else i if kind == MANY else (i, j)
        cleared = c if kind == MANY else () if c is None else (c,)
        self.dying = (*cleared, k)
        number = self.number_step(k)
        if number is not None:
            self.add_number(*number, k, cleared)
            return True
        form = quick_form(self, bind)
        if form is None:
            form = self.call(f, bind)
            test = reuse_test(self)
            if test is not None:
                # not to be repeated: the operand may be overwritten by then
                self.is_loud, reused = True, f"{form[:-1]}, out={self.slot(test[0])})"
                self.store(f"{reused} if {test[1]} else {form}", k, cleared, may_repeat=False)
                form = None
        if form is not None:
            self.store(form, k, cleared)
        self.note(k, cleared)
        return False

    def number_step(self, k: int) -> tuple[str, str] | None:
        """(text, fact) of this step and the next one, which makes its result a Python number."""
        if self.plain or self.step + 1 == len(self.table.steps):
            return None
        kind, _, i, _, target, _ = self.table.steps[self.step + 1]
        if kind != ONE or not i == k == target:
            return None
        return number_form(self, self.bind, bind_at(self.table, self.step + 1))

    def add_number(self, form: str, fact: str, k: int, cleared: tuple) -> None:
        """Append an operator of Python numbers, and the test whether NumPy's gives the same."""
        # the operands must be there if the step is left to the plan
        made = "t" if k in self.slots else f"s{k}"
        self.line(f" {made} = {form}")
        # NumPy warns of infinite results; letir's integers have 64 bits
        test = f"{made} - {made}" if fact == FLOAT else f"not -{_INT_END} <= {made} < {_INT_END}"
        self.line(f" if {test}: raise LEAVE")
        if made == "t":
            self.store("t", k, cleared)
        elif cleared:
            self.line(f" {self.assign_none(cleared)}")
        self.forget(cleared)
        self.facts[k] = fact

    def note(self, k: int, cleared: tuple) -> None:
        """Note what is known of a result, and forget what was known of cleared slots."""
        fact = result_fact(self, self.bind)
        self.forget((k, *cleared))
        if fact is not None:
            self.facts[k] = fact

    def forget(self, slots: Iterable[int]) -> None:
        """Forget what is known of slots."""
        for n in slots:
            self.facts.pop(n, None)

    def call(self, f: Callable, bind: Bind) -> str:
        """The call of a step's function."""
        if direct_ufunc(bind) is None and not is_silent(bind.op):
            self.is_loud = True
        return f"{self.constant(f)}({', '.join(map(self.slot, range(len(self.slots))))})"

    def store(self, form: str, k: int, cleared: tuple, may_repeat: bool = True) -> None:
        """Store a result, and clear the variables that are not used any more."""
        text = f" s{k} = {form}"
        if cleared:
            text += f"; {self.assign_none(cleared)}"
        self.line(text, may_repeat)

    def add_other(self, f: Callable, i: tuple, k: tuple, c: tuple) -> None:
        """Append a step that stores its results itself."""
        form, op = write_form(self, self.bind), self.bind.op
        made = [n for n in k if n is not None]
        value = quick_form(self, self.bind) if op.results is None and made else None
        if value is not None:
            cleared = tuple([n for n in c if n != made[0]])
            self.store(value, made[0], cleared)
            self.note(made[0], cleared)
            return
        if form is not None:
            test, action = form
            gone = [n for n in c if n not in made]
            moved = [f"s{n} = s{i[0]}" for n in made if n != i[0]]
            moved += [self.assign_none(gone)] if gone else []
            self.line(f" if {test}:")
            self.line("  " + ("; ".join([*([action] if action else []), *moved]) or "pass"))
            self.line(" else:")
        self.call_other(f, i, k, c, " " if form is None else "  ")
        self.forget((*made, *c))
        self.is_loud = self.is_loud or not is_silent(op)
        if op.update is not None and made and self.result is not None and self.result.shape:
            self.facts[made[0]] = OWNED

    def call_other(self, f: Callable, i: tuple, k: tuple, c: tuple, indent: str) -> None:
        """Append a call of a step's function with a list that holds the slots which it uses."""
        given, made = list(dict.fromkeys(i)), [n for n in k if n is not None]
        place = {n: m for m, n in enumerate(given)}
        targets = iter(range(len(given), len(given) + len(made)))
        slots = (
            tuple([place[n] for n in i]),
            tuple([None if n is None else next(targets) for n in k]),
            tuple([place[n] for n in c]),
        )
        items = ", ".join([*[f"s{n}" for n in given], *["None"] * len(made)])
        text = f"{indent}v = [{items}]; {self.assign_none(c) + '; ' if c else ''}"
        text += f"{self.constant(f)}(v, {', '.join(map(self.constant, slots))})"
        # not to be repeated: the step may have had an effect, and has cleared the variables
        self.line(text if made else f"{text}; v = None", may_repeat=False)
        if made:
            results = "".join([f"s{n}, " for n in made])
            self.line(f"{indent}{results}= v[{len(given)}:]; v = None", may_repeat=False)

    def assign_none(self, slots: Iterable[int]) -> str:
        """The statement that clears variables."""
        return " = ".join([f"s{n}" for n in slots]) + " = None"

    def finish(self, table: Any, finish: Callable) -> None:
        """The end: the results."""
        self.step = len(table.steps) - 1
        results = "".join([f"s{n}, " for n in table.results])
        if table.constants and table.shared:
            self.line(
                f" return {self.constant(finish)}({self.constant(table)}, ({results}))", False
            )
        else:
            self.line(f" return ({results})", False)

    def made(self) -> StraightLine:
        """The compiled function."""
        text = "\n".join(self.lines)
        code = compile(text, _FILE, "exec")
        exec(code, self.names)  # the text holds names and numbers only
        run: Any = self.names.pop("run")  # else the function would hold itself
        n_slots = self.n_params + len(self.table.rest)
        return StraightLine(
            *(run, run.__code__, tuple(self.steps), tuple(self.may_repeat)),
            *(tuple([f"s{n}" for n in range(n_slots)]), self.is_loud or self.plain),
        )


# ---- runs of plans ----


def straight_line_of(plan: Any, plain: bool = False) -> StraightLine | None:
    """The function for the steps of a plan, None if the plan has too many or special ones."""
    table = plan.table
    if not 0 < len(table.steps) <= _MOST_STEPS or table.donated or table.log is not None:
        return None
    weak = {
        n: fact
        for n, param in enumerate(plan.params)
        if (fact := number_fact(param.type)) is not None and n not in table.unused
    }
    return straight_line(table, len(plan.params), weak, LATE_BOUND["without_constants"], plain)


def rest_of_run(plan: Any, straight: StraightLine, error: BaseException, outer: Any) -> tuple:
    """(slots, step) from which the plan finishes a run that failed.

    Raises ``error`` with its place if the step cannot be repeated.
    """
    table = plan.table
    at, may_repeat, frame = straight.failed_at(error)
    if frame is None or not may_repeat or not isinstance(error, Exception):
        LATE_BOUND["forget_values"](error, outer)
        plan.say_where(error, table, at)
        raise error
    plan.left += 1
    if plan.left == _MOST_LEFT:
        plan.straight = straight_line_of(plan, plain=True)
    initial = chain(repeat(None, len(plan.params)), table.rest)
    found = frame.f_locals
    v = [found.get(name, value) for name, value in zip(straight.slots, initial, strict=True)]
    del found
    frame.clear()  # else it would hold the values
    return v, max(at, 0)


LATE_BOUND.update(rest_of_run=rest_of_run, straight_line_of=straight_line_of)
