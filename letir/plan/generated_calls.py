"""``generated_call``: one Python function that tests the arguments of a call, runs the steps of a
plan, and nests the results.

A call of a small function spends most of its time calling other functions. The function made here
is for plans whose only effects are writes to arguments after all other steps: if it raises, the
call can be repeated in another way.
"""

import time
from collections.abc import Callable, Sequence
from itertools import repeat
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.liveness import has_effect
from letir.ast.terms import Bind
from letir.eval.float_warnings import (
    ERROR_STATE,
    KERNEL_STATES,
    SETTING_FILES,
    STRICT,
    current_state,
    file_left_out,
    leave_out_of_warnings,
)
from letir.ops.random.generator_snapshots import restore_snapshot, snapshot_text
from letir.plan.effect_log import is_guard
from letir.plan.plan import Miss
from letir.plan.straight_line import weak_params, written_steps

_MAX_STEPS = 1_500  # compiling the function takes about 15 us a step
_CALLS_TIMED = 5
_MAX_TIME = 2_000_000  # nanoseconds
_FILE = file_left_out(__file__)
SETTING_FILES.update((__file__, _FILE))


_UNUSED = SimpleNamespace()
_UNNOTED = {"ENTRY": _UNUSED, "LATEST": _UNUSED, "PROGRAM": None}  # calls of no plan


@frozen(eq=False)
class GeneratedCall:
    """The code of a function ``call(a0, a1, ...)`` of the arguments of an executor."""

    code: CodeType
    names: dict[str, Any]
    run: Callable[[tuple, dict], Any]
    gives_numbers: bool  # whether the steps compute with Python's numbers alone

    @classmethod
    def from_text(cls, text: str, names: dict[str, Any], gives_numbers: bool) -> "GeneratedCall":
        """The call whose ``run(args, kwargs)`` gives results or ``Miss``."""
        code = compile(text, _FILE, "exec")
        function = _function_of(code, {**names, **_UNNOTED, "CALLS": repeat(0), "EXECUTOR": None})
        return cls(code, names, lambda args, kwargs: function(*args, **kwargs), gives_numbers)

    def shortest_time(self, args: tuple, kwargs: dict) -> int:
        """The nanoseconds of the fastest of some calls."""
        return shortest_time(self.run, args, kwargs)

    def function(self, **names: Any) -> Callable:
        """The function with these names for the values that depend on the executor."""
        return _function_of(self.code, {**self.names, **_UNNOTED, **names})


leave_out_of_warnings(vars(GeneratedCall)["from_text"].__func__)


def shortest_time(run: Callable[[tuple, dict], Any], args: tuple, kwargs: dict) -> int:
    """The nanoseconds of the fastest of some calls of ``run(args, kwargs)``."""
    times: list[int] = []
    # the longest call does not count: another process may have had the core during it
    while len(times) < 2 or (len(times) < _CALLS_TIMED and sum(times) - max(times) < _MAX_TIME):
        begun = time.perf_counter_ns()
        run(args, kwargs)
        times.append(time.perf_counter_ns() - begun)
    return min(times)


def _function_of(code: CodeType, names: dict[str, Any]) -> Callable:
    """The function ``call`` of a module's code, whose globals are ``names``."""
    exec(code, names)
    result: Callable = names.pop("call")  # else the function would hold itself
    return result


def generated_call(
    plan: Any,
    tests: Sequence[str],
    leaves: Sequence[str],
    names: dict,
    nest: Callable,
    drawing: Sequence[tuple[int, str, Any]],
    count: int,
) -> GeneratedCall | None:
    """The function of ``count`` arguments a0, a1, ... that gives the nested results.

    ``tests``: conditions on the arguments; ``leaves``: the texts of the plan's arguments;
    ``names``: the values of names in both; ``nest(texts)``: the lines that set ``found`` to the
    nested results, for the texts of the flat ones; ``drawing``: the position, the text and an
    example of each random generator among the arguments; they get back their states if the function
    gives no results. None if the plan is long or has effects.
    """
    table = plan.table
    binds = [table.bind_at(n) for n in range(len(table.steps))]
    while binds and binds[-1].op.role == "write_back":
        binds.pop()
    if len(table.steps) > _MAX_STEPS or any(map(_is_once, binds)):
        return None
    weak = weak_params(plan)
    text = written_steps(table, len(plan.params), weak, plan.left > 0, misses=True)
    body = text.needed_lines()[1 + 2 * bool(plan.params) + len(weak) :]
    lines = [f" if not ({test}): return Miss" for test in tests]
    if text.kernels:
        lines.append(f" if STATES[current_state()] < {text.kernels}: return Miss")
    lines += [f" s{n} = {leaf}" for n, leaf in enumerate(leaves)]
    results = [f"s{n}" for n in table.results]
    if table.constants and table.shared:
        body.append(f" r = {text.results(LATE_BOUND['without_constants'])}")
        results = [f"r[{n}]" for n in range(len(results))]
    body += nest(results)
    saved = [(text, value) for n, text, value in drawing if not _starts_with_seed(plan, binds, n)]
    if saved:
        body = _restoring_states(body, saved, names)
    lines += _wrap_in_strict_state(body) if text.is_loud or text.plain else body
    names = {**names, **text.names, "STATES": KERNEL_STATES, "SHARED": np.may_share_memory}
    names |= {"STRICT": STRICT, "ERROR_STATE": ERROR_STATE, "current_state": current_state}
    names |= {"MISSING": Miss, "shorten": LATE_BOUND["shorten_traceback"]}
    return GeneratedCall.from_text(_as_function(lines, count), names, text.gives_numbers())


def call_of_function(
    f: Callable, tests: Sequence[str], names: dict, count: int, named: bool
) -> GeneratedCall:
    """The call of the Python function ``f`` for arguments that fulfil the tests.

    ``named``: whether there are keyword arguments. A call without ``**`` takes less time. No
    program counts as run.
    """
    head, positional, forget = _parameters(count)
    tested = " and ".join(["not rest", *[f"({test})" for test in tests]])
    text = "\n".join(
        [
            f"def call({head}*rest, **kwargs):",
            " try:",
            f"  if {tested}:",
            f"   found = FUNCTION({positional}{'**kwargs' if named else ''})",
            "   ENTRY.used = next(CALLS)",
            "   return found",
            "  if EXECUTOR is None: return MISSING",
            f"  return EXECUTOR().call_generally(({positional}*rest,), kwargs, True)",
            " except BaseException as raised:",
            f"  {forget}",
            "  shorten(raised)",
            "  raise",
        ]
    )
    names = {**names, "FUNCTION": f, "MISSING": Miss, "shorten": LATE_BOUND["shorten_traceback"]}
    return GeneratedCall.from_text(text, names, True)


def _parameters(count: int) -> tuple[str, str, str]:
    """The parameters of a call with ``count`` positional arguments, these arguments, and the line
    that forgets all arguments.
    """
    positional = "".join([f"a{n}, " for n in range(count)])
    head = "".join([f"a{n}=MISSING, " for n in range(count)]) + ("/, " if count else "")
    return head, positional, f"{positional.replace(', ', ' = ')}rest = kwargs = None"


def _as_function(lines: Sequence[str], count: int) -> str:
    """The text of the function with these lines, which set ``found``, or return ``Miss``.

    Then, and after an error of the plan, the executor makes the call in another way. A stored error
    must not keep the arguments alive. A trace records the Python function.
    """
    head, positional, forget = _parameters(count)
    body = [line.replace("return Miss", "break") for line in lines]
    return "\n".join(
        [
            f"def call({head}*rest, **kwargs):",
            " error = None",
            " try:",
            "  try:",
            "   while not rest and is_tracing() is None:",
            *[f"   {line}" for line in body],
            "    ENTRY.used = next(CALLS)",
            "    LATEST.graph = PROGRAM",
            "    return found",
            "  except Exception as caught: error = caught",
            f"  given = ({positional}*rest,)",
            "  if EXECUTOR is not None:",
            "   return EXECUTOR().call_generally(given, kwargs, error is None)",
            "  if error is not None: raise error",
            "  return MISSING",
            " except BaseException as raised:",
            "  error = given = None",
            f"  {forget}",
            "  shorten(raised)",
            "  raise",
        ]
    )


def tests_of_writes(written: Sequence[int], leaves: Sequence[tuple[str, bool]]) -> list[str]:
    """Conditions under which a program may write to the arguments at some positions.

    ``leaves``: the text of each argument, and whether it is an array. The arrays must be writable
    and share memory with no other array.
    """
    if not written:
        return []
    pairs = list(
        dict.fromkeys(
            tuple(sorted((n, m)))
            for n in written
            for m, (_, is_array) in enumerate(leaves)
            if is_array and m != n
        )
    )
    names = [(leaves[n][0], leaves[m][0]) for n, m in pairs]
    tests = [f"{leaves[n][0]}.flags.writeable" for n in written]
    if names:
        # two arrays that own their memory share none; NumPy's test takes longer
        owners = [f"{x}.base is None" for x in dict.fromkeys([x for pair in names for x in pair])]
        owned = " and ".join([*owners, *[f"{x} is not {y}" for x, y in names]])
        shared = " or ".join([f"SHARED({x}, {y})" for x, y in names])
        tests.append(f"({owned} or not ({shared}))")
    return tests


def _wrap_in_strict_state(body: list[str]) -> list[str]:
    """The lines in a state of NumPy that raises where the caller's warns."""
    return [
        " state = STRICT[current_state()]",
        " if state is False: return Miss",
        " token = None if state is None else ERROR_STATE.set(state)",
        " try:",
        *[f" {line}" for line in body],
        " finally:",
        "  if token is not None: ERROR_STATE.reset(token)",
    ]


def _restoring_states(body: list[str], drawing: Sequence[tuple[str, Any]], names: dict) -> list:
    """The lines with a ``try`` statement that restores the states of generators."""
    names["restore"], saved, restored = restore_snapshot, [], []
    for n, (text, generator) in enumerate(drawing):
        state, used = snapshot_text(generator, text)
        names.update(used)
        saved.append(f" g{n} = {state}")
        restored.append(f"restore({text}, g{n})")
    restore_text = "; ".join(restored)
    body_lines = [
        f" {line.replace('return Miss', f'{restore_text}; return Miss')}" for line in body
    ]
    return [*saved, " try:", *body_lines, f" except BaseException: {restore_text}; raise"]


def _starts_with_seed(plan: Any, binds: Sequence[Bind], n: int) -> bool:
    """Whether the first thing that happens to a generator, argument ``n``, is that it gets a state.

    Then its state before the call does not matter to a call that is repeated.
    """
    first = next((bind for bind in binds if plan.params[n] in bind.args), None)
    return first is not None and first.op.role == "own_seed"


def _is_once(bind: Bind) -> bool:
    """Whether a bind must not be executed twice, unless generators get back their states."""
    op = bind.op
    if op.role in ("own_draw", "own_seed"):
        return False
    is_effect = (op.effect and not is_guard(bind)) or op.random or op.is_user_defined
    return is_effect or (op.holds_lambdas and has_effect(bind))


LATE_BOUND["generated_call"] = generated_call
