"""Reports of an executor: its plans, its counters, and the reasons for compiles.

A reason says in the caller's words how a call differs from earlier calls. An executor that compiles
in most of its calls warns.
"""

import io
import os
import re
import sys
import warnings
from opcode import opmap
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.pytrees import NAMESPACE, Tree, flatten
from letir.ast.terms import Lambda
from letir.eval.arguments import positional_names
from letir.eval.array_modules import array_module
from letir.eval.float_warnings import LEFT_OUT
from letir.executor.active_recordings import ActiveRecording, EndOfRecording
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import executor_name
from letir.executor.external_state.changes import (
    ReadsOwnChanges,
    are_restorable,
    is_never_python,
    restore_state,
)
from letir.executor.plan_making import (
    captured_state,
    contents_of,
    is_unchanged,
    search_roots,
)
from letir.plan.plan import Plan, plan_of
from letir.tracing.tracer import Tracer

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_MAX_TEXT = 160
_NOT_TRIED_AGAIN = (MemoryError, RecursionError, Warning)
_MAX_OBJECTS = 100_000  # that are searched after a recording that raises
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _argument_words(f: Any, marked: tuple[tuple, dict]) -> list[str]:
    """A phrase for each leaf of the arguments, such as ``x, the first argument`` or
    ``cfg["mode"]``.
    """
    names = positional_names(f)
    arguments: Any = marked
    result = []
    for kind, place, *rest in optree.tree_paths(arguments, namespace=NAMESPACE):
        parts, owner = "", arguments[kind][place]
        for part in rest:
            step, owner = _path_step(owner, part)
            parts += step
        if kind == 1:  # by keyword
            result.append(f"{place}{parts}")
            continue
        ordinal = _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
        name = names[place] if place < len(names) else None
        if name is None:
            result.append(f"{'part ' + parts + ' of ' if parts else ''}the {ordinal} argument")
        else:
            result.append(f"{name}{parts}" if parts else f"{name}, the {ordinal} argument,")
    return result


def _path_step(owner: Any, part: Any) -> tuple[str, Any]:
    """One step of a path as it is written in Python, and what it leads to; None if unknown."""
    if isinstance(part, int) and hasattr(owner, "_fields"):
        return f".{owner._fields[part]}", owner[part]
    if isinstance(part, str):
        if hasattr(owner, "__attrs_attrs__") or hasattr(owner, "__dataclass_fields__"):
            return f".{part}", getattr(owner, part, None)
        return f'["{part}"]', owner.get(part) if isinstance(owner, dict) else None
    is_list = isinstance(owner, list | tuple) and isinstance(part, int)
    return f"[{part!r}]", owner[part] if is_list else None


def spec_difference(f: Any, marked: tuple, spec: ArgumentSpec, other: ArgumentSpec) -> str:
    """A readable description of how the spec of these arguments differs from another one."""
    if spec.tree != other.tree or len(spec.leaves) != len(other.leaves):
        return f"its arguments nest as {_nesting_text(spec)}, earlier as {_nesting_text(other)}"
    words = _argument_words(f, marked)
    pairs = zip(words, spec.leaves, other.leaves, strict=True)
    return "; ".join([_leaf_words(*pair) for pair in pairs if pair[1] != pair[2]]) or "nothing"


def _nesting_text(spec: ArgumentSpec) -> str:
    """The nesting of arguments, abbreviated if it is long: (x, {"a": y}) is (*, {'a': *})."""
    args, kwargs = spec.tree.children()
    text = ", ".join([str(Tree(args)), *([str(Tree(kwargs))] if kwargs.num_leaves else [])])
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 4] + " ..."


def _leaf_words(word: str, now: Any, before: Any) -> str:
    """The difference of one argument from the earlier one; of an object, its attributes."""
    states = getattr(now, "value", None), getattr(before, "value", None)
    if hasattr(states[0], "__letir_difference__") and type(states[0]) is type(states[1]):
        return states[0].__letir_difference__(states[1])
    return f"{word} is {now}, was {before}"


def size_words(f: Any, marked: tuple, named: ArgumentSpec, reason: str) -> str:
    """``reason`` with the sizes of a symbolic spec as they are written in Python: x.shape[0]."""
    shapes = [getattr(getattr(leaf, "aval", None), "shape", ()) for leaf in named.leaves]
    for word, shape in zip(_argument_words(f, marked), shapes, strict=True):
        for axis, n in enumerate(shape):
            if type(n) is not int:
                size = rf"(?<![\w+*]){re.escape(str(n))}(?![\w+*])"
                reason = re.sub(size, f"{word.partition(',')[0]}.shape[{axis}]", reason)
    return reason


def warn_of_compiles(executor: Any, reason: str, why_not: str, is_python: bool) -> None:
    """Warn that an executor has compiled often, and most calls still need a plan of their own.

    ``is_python``: this call runs the Python function.
    """
    counters, calls = executor.counters, "runs the Python function" if is_python else "compiles"
    sizes = f"\n  no plan for all sizes: {why_not}" if why_not else ""
    warnings.warn(
        f"{executor_name(executor.f)} was compiled {counters['compiles']} times, and "
        f"{counters['misses']} of {counters['invocations']} calls had no plan, this one because "
        f"{reason}{sizes}\n"
        f"  this call {calls}; pass what differs as an array, or call the function without jit;\n"
        "  letir.explain(f, ...) has the details",
        RuntimeWarning,
        stacklevel=_frames_of_letir(),
    )


def _retry_once_as_python(
    executor: Any, marked: tuple, holders: list, before: list, error: Exception
) -> None:
    """Make ``executor`` call its function, after the recording has raised ``error``.

    If the function raises no error, a library cannot compute with traced values, and
    ``run_python_function`` makes the executor call the function from now on. If the function's own
    module raised the error, it is called only if the error holds traced values, if it has changed
    objects before, which may hold some, or if there are lists or dicts among the arguments, which
    it may have changed. To end the recording, ReadsOwnChanges is raised. Does nothing if the
    changes that the function has made so far cannot be undone.
    """
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        link = link.tb_next
    file = getattr(getattr(executor.f, "__code__", None), "co_filename", None)
    code = None if link is None else link.tb_frame.f_code
    is_own = code is None or code.co_filename == file
    if is_own and code is not None and type(error) is TypeError:  # of a function in C
        is_own = code.co_code[link.tb_lasti] == opmap["RAISE_VARARGS"]
    if isinstance(error, _NOT_TRIED_AGAIN) or is_never_python(executor.f, error):
        return
    if is_own:
        is_changed = not all(map(is_unchanged, holders, before)) or _holds_traced(error)
        is_changed |= _has_list_or_dict((*marked[0], *marked[1].values()))
        if is_changed and are_restorable(holders, before):
            restore_state(holders, before, generators=True)
            raise ReadsOwnChanges
    elif code.co_filename.startswith(_PACKAGE):
        _retry_as_python(executor, holders, before, error)
    elif are_restorable(holders, before):
        restore_state(holders, before, generators=True)
        executor.raised_recording = f"{type(error).__name__}: {error}"
        raise ReadsOwnChanges


def _has_list_or_dict(value: Any) -> bool:
    """Whether a value is a list or dict, or a tuple that holds one at any depth."""
    todo = [value]
    for part in todo:
        if isinstance(part, list | dict):
            return True
        todo += part if isinstance(part, tuple) else ()
    return False


def _holds_traced(error: Exception) -> bool:
    """Whether the arguments or attributes of an error contain traced values."""
    return any(isinstance(x, Tracer) for x in flatten((error.args, list(vars(error).values())))[0])


def _retry_as_python(executor: Any, holders: list, before: list, error: Exception) -> None:
    """Make ``executor`` call its function, after letir has raised ``error`` in its recording.

    If the function raises an error too, ``run_python_function`` raises letir's ``error``, which is
    more helpful. To end the recording, ReadsOwnChanges is raised. Does nothing for classes and
    generators, and if the changes that the function has made so far cannot be undone.
    """
    if not is_never_python(executor.f, error) and are_restorable(holders, before):
        restore_state(holders, before, generators=True)
        executor.raised_recording = error
        raise ReadsOwnChanges


def retry_refused(executor: Any, request: Any, searched: tuple, error: Exception) -> None:
    """Make ``executor`` call its function, if letir's ``error`` in its recording allows that.

    ``searched``: a function that makes the recording again, and the state found before, as in
    ``_state_or_search``.
    """
    is_outside = hasattr(error, "letir_changes_outside") and not isinstance(executor.f, type)
    is_all, holders, before = searched[1]
    if executor.watches_state and is_outside:
        state = _state_or_search(searched, search_roots(executor, request))
        if state[0]:
            LATE_BOUND["call_as_python"](executor, *state[1:], error)
    if executor.changed_state:  # Python has called it and left values that cannot be recorded
        LATE_BOUND["refuse_changes"](executor, request.marked, holders, before, None)
    if is_all and executor.watches_state and array_module(request.leaves) is np:
        _retry_as_python(executor, holders, before, error)


def retry_raising(executor: Any, request: Any, searched: tuple, error: Exception) -> None:
    """``retry_refused`` for an ``error`` that is not letir's."""
    if executor.watches_state and not hasattr(error, "letir_runs_python"):
        state = _state_or_search(searched, search_roots(executor, request))
        if state[0]:
            _retry_once_as_python(executor, request.marked, state[1], state[2], error)


def _state_or_search(searched: tuple, roots: list) -> tuple:
    """(whether a recording that raises leaves all objects unchanged, these objects, their
    contents).

    ``searched``: a function that makes the recording again, and the result if all objects were
    known before. The objects are those that its function reaches; to search so many of them before
    every recording would take too long.
    """
    do, state = searched
    if state[0]:
        return state
    iterators, holders, is_all = captured_state(roots, _MAX_OBJECTS)
    before = [contents_of(holder) for holder in holders]
    if not (is_all and all(isinstance(iterator, io.IOBase) for iterator in iterators)):
        return False, holders, before
    has_moved = False  # whether the position in a file has changed
    try:
        with ActiveRecording() as recording:
            recording.state = holders, before, is_all
            has_moved = LATE_BOUND["run_watching_iterators"](iterators, do)[1]
    except (Exception, EndOfRecording) as raised:
        has_moved = hasattr(raised, "letir_is_final")
    is_kept = not has_moved and all(map(is_unchanged, holders, before))
    if not is_kept:
        restore_state(holders, before)
    return is_kept, holders, before


def warn_of_python(executor: Any) -> None:
    """Warn once that an executor calls its function as Python, because it cannot be recorded."""
    executor.has_warned = True
    warnings.warn(
        f"jit calls {executor_name(executor.f)} as Python, without a plan: {executor.why_python}",
        RuntimeWarning,
        stacklevel=_frames_of_letir(),
    )


def _frames_of_letir() -> int:
    """The number of innermost frames that belong to letir, as ``stacklevel`` counts them."""
    frame, level = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        is_counted = LEFT_OUT not in frame.f_code.co_filename
        frame, level = frame.f_back, level + is_counted
    return level + 1


@frozen(eq=False)
class GradientState:
    """The executor of one gradient program of a differentiable graph.

    ``forward`` and ``graph``: the programs of the graph and of its gradient, for the results with a
    gradient in ``has_gradient`` and the operands in ``wanted``. ``plans``: the plans made so far,
    for arrays, or under ``create_graph`` for Variables.
    """

    forward: Lambda
    graph: Lambda
    has_gradient: tuple[bool, ...]
    wanted: tuple[bool, ...]
    plans: tuple

    def __str__(self):
        reached = ", ".join(str(i) for i, is_there in enumerate(self.has_gradient) if is_there)
        return (
            f"executor of a gradient: {len(self.graph)} binds for the gradient of result "
            f"{reached}, {len(self.plans)} plans"
        )


def gradient_states(compiled: Any) -> tuple[GradientState, ...]:
    """The gradient executors of a plan for Variables that have run; () for other plans."""
    return tuple(
        GradientState(graph.f, backward.program, mask, requires, tuple(backward.plans.values()))
        for graph in getattr(compiled, "graphs", ())
        for (mask, requires), backward in list(graph.backwards.items())
    )


@frozen(eq=False)
class PlanState:
    """The state of one plan: its spec, and the reason why it was made.

    ``graph`` is the recorded program and ``fallback`` its plan; ``optimized`` is the program after
    the passes and ``plan`` the plan that runs; ``gradients`` are the executors of its gradients.
    """

    spec: object
    reason: str
    used: int  # the number of the last call with these arguments
    graph: Lambda
    optimized: Lambda
    plan: Any
    gradients: tuple[GradientState, ...] = ()

    @property
    def fallback(self) -> Plan:
        """The plan of the recorded graph, which runs where the optimised plan must not."""
        return plan_of(self.graph)

    @property
    def kernels(self) -> tuple:
        """The kernels of the plan, see ``Plan.kernels``."""
        return getattr(self.plan, "kernels", ())

    def memory(self, **sizes: int) -> Any:
        """The most bytes that the next call holds at once, see ``Plan.memory``."""
        return self.plan.memory(**sizes)

    def _repr_html_(self):
        return LATE_BOUND["plan_html"](self)

    def __str__(self):
        return (
            f"({self.spec}): {len(self.optimized)} binds of {len(self.graph)}, "
            f"last used by call {self.used}, made because {self.reason}"
            + "".join([f"\n    {gradient}" for gradient in self.gradients])
        )


@frozen(eq=False, repr=False)
class ExecutorState:
    """The plans of an executor, most recently used first, and its counters."""

    function: str
    counters: dict[str, int]
    plans: tuple[PlanState, ...]

    @property
    def graph(self) -> Lambda | None:
        """The recorded program of the most recently used plan; None before the first call."""
        return self.plans[0].graph if self.plans else None

    @property
    def fallback(self) -> Plan:
        """The plan of the most recently used recorded program, without optimisation."""
        return self.plans[0].fallback if self.plans else None

    def __repr__(self):
        counted = ", ".join(f"{n} {name}" for name, n in self.counters.items())
        return "\n".join([f"{self.function}: {counted}", *[f"  {plan}" for plan in self.plans]])

    def _repr_html_(self):
        return LATE_BOUND["state_html"](self)


def executor_state(executor: Any, name: str) -> ExecutorState:
    """The state of the executor of this name."""
    entries = sorted(executor.cache.entries.values(), key=lambda e: e.used, reverse=True)
    plans = [
        PlanState(
            *(entry.key, getattr(compiled, "reason", ""), entry.used),
            *(compiled.program, compiled.optimized, getattr(compiled, "plan", compiled)),
            gradient_states(compiled),
        )
        for entry in entries
        for compiled in entry.plans
    ]
    return ExecutorState(name, executor.counters, tuple(plans))


LATE_BOUND.update(
    executor_state=executor_state,
    size_words=size_words,
    spec_difference=spec_difference,
    warn_of_compiles=warn_of_compiles,
    retry_raising=retry_raising,
    retry_refused=retry_refused,
    warn_of_python=warn_of_python,
)
