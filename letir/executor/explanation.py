"""``explain``: the plan for a call, why it was compiled, the effect of each pass, and the time of
each bind.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import bodies_of
from letir.ast.builder import Value
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.eval.arguments import flat_arguments
from letir.eval.array_modules import array_module
from letir.eval.evaluator import Evaluator
from letir.eval.memory_checks import memory_owner
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.autodiff.differentiable_program import Differentiable
from letir.executor.calls import (
    PlanRequest,
    call_refused,
    executor_name,
    run_python_function,
    spec_or_error,
)
from letir.executor.compiled import Compiled, compile, kernel_mode
from letir.executor.default_pipeline import optimize_program
from letir.executor.executor import Executor
from letir.executor.jit_api import JittedFunction, PartialExecutor, jit
from letir.executor.measurements.profiling import Profiled
from letir.executor.methods import JittedMethod
from letir.executor.reports import GradientState, gradient_states

_AS_PYTHON = (
    "calls with such arguments run the Python function, not this plan: "
    "most calls needed another plan than the calls before, or the function changes what it reads, "
    "or SciPy's own functions take less time"
)
_MAX_LINES = 40  # lines of binds in the text; of more binds the slowest are shown


@frozen
class PassReport:
    """The effect of one pass: binds before and after, time, and operations removed and added.

    ``is_changed``: whether the program is another one, perhaps with the same operations.
    """

    name: str
    before: int
    after: int
    seconds: float
    removed: Counter
    added: Counter
    is_changed: bool

    @classmethod
    def from_programs(
        cls, name: str, before: Lambda, after: Lambda, seconds: float
    ) -> "PassReport":
        """The report for one step of a pipeline."""
        if after is before or after == before:
            return cls(name, len(before), len(after), seconds, Counter(), Counter(), False)
        had, has = _operation_counts(before), _operation_counts(after)
        return cls(name, len(before), len(after), seconds, had - has, has - had, True)

    @property
    def change(self) -> str:
        """A readable list of the operations removed and added."""
        removed = [f"-{n} {name}" for name, n in sorted(self.removed.items())]
        added = [f"+{n} {name}" for name, n in sorted(self.added.items())]
        return ", ".join(removed + added) or "other operands or bodies" * self.is_changed


@frozen
class BindReport:
    """One bind of the optimised program: its text, number of runs, time, and most new bytes of
    results in one run. ``depth``: the number of bodies around it.
    """

    text: str
    source: str
    depth: int
    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0


@frozen(repr=False)
class Explanation:
    """The result of ``explain``: fields for scripts, and a text for people."""

    function: str
    arguments: str
    reason: str
    is_new: bool  # whether this call compiled the plan
    program: Lambda
    optimized: Lambda
    passes: tuple[PassReport, ...]
    binds: tuple[BindReport, ...]
    graphs: tuple[str, ...] = ()  # the differentiable graphs of a call with Variables
    kernels: tuple = ()  # of PlanKernel, each of which prints as a line
    profile: Any = None  # the PlanProfile of a plan with kernels
    why_static_sizes: str = ""  # the reason why there is no plan for all sizes, or empty
    gradients: tuple[GradientState, ...] = ()  # the executors of the graphs' gradient programs
    note: str = ""  # the reason why there are no times
    why_python: str = ""  # the error of a function that is called as Python, without a plan

    @property
    def seconds(self) -> float:
        """The total time of all binds, in seconds."""
        return sum(bind.seconds for bind in self.binds)

    @property
    def shown_binds(self) -> Sequence[BindReport]:
        """The binds shown in the text: all, or the slowest, in program order."""
        if len(self.binds) <= _MAX_LINES:
            return self.binds
        ranked = sorted(self.binds, key=lambda bind: bind.seconds, reverse=True)[:_MAX_LINES]
        chosen_ids = set(map(id, ranked))
        return [bind for bind in self.binds if id(bind) in chosen_ids]

    @property
    def summary(self) -> tuple[str, ...]:
        """The first lines of the text: the call, the reason of its compile, numbers of binds."""
        if self.why_python:
            call = f"{self.function}({self.arguments})"
            return call, f"called as Python, without a plan: {self.why_python}"
        when = "by this call" if self.is_new else "by an earlier call"
        return (
            f"{self.function}({self.arguments})",
            f"compiled {when}: {self.reason}",
            *([f"no plan for all sizes: {self.why_static_sizes}"] if self.why_static_sizes else []),
            f"{len(self.program)} {'bind' if len(self.program) == 1 else 'binds'} recorded, "
            f"{len(self.optimized)} after the passes",
            *self.graphs,
            *(LATE_BOUND["kernel_lines"](self.kernels) if self.kernels else ()),
        )

    def tables(self) -> list[tuple[str, tuple, list[tuple]]]:
        """(title, column heads, rows) for the passes and for the binds."""
        passes = [
            (p.name, f"{p.before} -> {p.after}", f"{1e3 * p.seconds:.2f} ms", p.change)
            for p in self.passes
        ]
        shown = self.shown_binds
        omitted = len(self.binds) - len(shown)
        title = "binds" if not omitted else f"the {len(shown)} slowest binds of {len(self.binds)}"
        binds = [
            ("  " * b.depth + b.text, b.calls, f"{1e6 * b.seconds:.1f} us", b.bytes, b.source)
            for b in shown
        ]
        profile = self.profile
        plan = [] if profile is None else [("plan", profile.heads, profile.rows())]
        return [
            ("passes", ("pass", "binds", "time", "what changed"), passes),
            *plan,
            (title, ("bind", "runs", "time", "new bytes", "line"), binds),
        ]

    def __str__(self):
        lines = [*self.summary, *map(str, self.gradients)]
        for title, heads, rows in () if self.why_python else self.tables():
            lines += ["", f"{title}:", *_align_columns([heads, *rows])]
        return "\n".join([*lines, *([self.note] if self.note else [])]) + "\n"

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["explanation_html"](self)


def _align_columns(rows: list[tuple]) -> list[str]:
    """Rows of cells as lines of text with aligned columns."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))]
    return [
        "  " + "  ".join([f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)])
        for row in texts
    ]


# ---- making an explanation ----


@entry_point
def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Explain what ``jit`` does with the call ``f(*args, **kwargs)``: the plan that runs, why it
    was compiled, the effect of each pass, and the time and bytes of every bind.

    ``f``: an executor, a function (which is jitted), or a Lambda. The call runs, and the optimised
    program runs once more bind by bind for the times, unless it has effects.

    >>> import numpy as np
    >>> from letir import jit
    >>> found = explain(jit(lambda x: np.sin(x) + np.sin(x)), np.ones(3))
    >>> print(*found.summary, sep="\\n")
    <lambda>(float64[3])
    compiled by this call: it is the first call
    3 binds recorded, 1 after the passes
    """
    if isinstance(f, Lambda):
        f = compile(f)
    if isinstance(f, Compiled | Differentiable):
        leaves = flat_arguments(f.program, args, kwargs)
        f.run_flat(list(leaves))
        return _explain_plan(
            f, "program", ArgumentSpec.from_arguments(tuple(leaves), {})[0], True, leaves, {}
        )
    if isinstance(f, JittedMethod):
        return f.as_function(explain, *args, **kwargs)
    if not callable(f):
        LATE_BOUND["refuse_unless_function"]("explain", f)
    f = f.__letir_executor__ if isinstance(f, JittedFunction) else f
    if not isinstance(f, Executor):
        return explain(jit(f), *args, **kwargs)
    positional = (f.bound, *args) if isinstance(f, PartialExecutor) else args
    marked = f.marker.mark(positional, kwargs)
    spec, leaves, refused = spec_or_error(marked)
    if refused is not None:
        call_refused(f, positional, kwargs, marked, refused)
        return _explain_python(f, "")
    before = f.cache.compiles
    entry, compiled, _ = f.run_first_fitting(PlanRequest(next(f.calls), spec, leaves, marked))
    if compiled is None and f.raised_recording:
        run_python_function(f, positional, kwargs)
    if compiled is None and (f.why_python or f.ended_recording or f.effect):
        return _explain_python(f, spec)
    if entry.runs_python or (compiled is None and f.changed_state):
        plain = Executor(f.f, f.options)
        plain.watches_state = False
        return evolve(explain(plain, *positional, **kwargs), note=_AS_PYTHON)
    options: dict = {"optimize": f.options.optimize, "exact": f.options.exact}
    if type(compiled) is Compiled:
        options["kernels"] = kernel_mode(f.options.kernels, **options)
    is_new = f.cache.compiles > before
    result = _explain_plan(compiled, executor_name(f.f), entry.key, is_new, leaves, options)
    if entry.key.has_names:
        return result
    return evolve(result, why_static_sizes=f.families.why_not(spec, list(f.cache.entries)))


def _explain_python(f: Executor, arguments: Any) -> Explanation:
    """The explanation of a call of a function that cannot be recorded."""
    empty = Lambda((), (), Ret(()))
    return Explanation(
        function=executor_name(f.f),
        arguments=str(arguments),
        reason="",
        is_new=False,
        program=empty,
        optimized=empty,
        passes=(),
        binds=(),
        why_python=f.why_python or f.ended_recording or f.effect,
    )


def _explain_plan(
    compiled, name: str, spec: ArgumentSpec, is_new: bool, leaves: list, options: dict
) -> Explanation:
    """The explanation of one plan for these arguments."""
    steps: list[PassReport] = []

    def note(*step) -> None:
        steps.append(PassReport.from_programs(*step))

    requires = getattr(compiled, "requires_grad", None)
    optimized, source = compiled.optimized, compiled.program
    if isinstance(compiled, Profiled):
        source, leaves = compiled.profiled, compiled.remaining_arguments(leaves)
    optimize_program(source, requires_grad=requires, observe=note, **options)
    silent = not compiled.changed and not any(map(has_effect, optimized.binds))
    times = _timed_run(optimized, leaves) if silent else {}
    kernels = compiled.kernels if isinstance(compiled, Compiled) else ()
    return Explanation(
        function=name,
        arguments=str(spec),
        reason=compiled.reason,
        is_new=is_new,
        program=compiled.program,
        optimized=optimized,
        passes=tuple(steps),
        binds=tuple(_bind_reports(optimized, times)),
        graphs=tuple(map(str, getattr(compiled, "graphs", ()))),
        kernels=kernels,
        profile=compiled.plan.profile(leaves) if kernels and silent else None,
        gradients=gradient_states(compiled),
        note="" if silent else "no times: a second run would have its effects again",
    )


@define
class _Measured:
    """Calls, seconds and bytes measured for one bind."""

    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0


@define
class _Clock:
    """Observes every bind of a run, bodies included, and takes the time since the previous one."""

    measured: dict[int, _Measured] = field(factory=dict)  # by the id of a bind
    last: float = field(factory=time.perf_counter)

    def __call__(self, bind: Bind, results: tuple) -> None:
        seconds = time.perf_counter() - self.last
        measured = self.measured.setdefault(id(bind), _Measured())
        measured.calls += 1
        measured.seconds += seconds
        measured.bytes = max(measured.bytes, sum(map(_new_bytes, results)))
        self.last = time.perf_counter()


@paused_gc()
def _timed_run(fn: Lambda, leaves: list) -> dict[int, _Measured]:
    """The measurements of a run of ``fn`` bind by bind."""
    arrays = [leaf.array if isinstance(leaf, Value) else leaf for leaf in leaves]
    clock = _Clock()
    Evaluator(array_module(arrays), clock).call(fn, arrays)
    return clock.measured


def _new_bytes(result) -> int:
    """The bytes of a result, 0 for a view."""
    return getattr(result, "nbytes", 0) if memory_owner(result) is result else 0


def _bind_reports(fn: Lambda, times: dict[int, _Measured]) -> list[BindReport]:
    """A report for each bind of ``fn`` and of its bodies, in the order of the text."""
    result: list[BindReport] = []
    names: dict[Local, str] = {}
    stack: list[tuple[Lambda, int, int]] = [(fn, 0, 0)]
    while stack:  # (program, index of the next bind, depth)
        body, at, depth = stack.pop()
        if at == 0:
            for param in body.params:
                names[param] = f"%{len(names)}"
        for i in range(at, len(body.binds)):
            bind = body.binds[i]
            for binder in bind.binders:
                names[binder] = f"%{len(names)}"
            result.append(_bind_report(bind, names, depth, times.get(id(bind), _Measured())))
            inner = [
                b for b in bodies_of(bind) if any(id(inner_bind) in times for inner_bind in b.binds)
            ]
            if inner:
                stack.append((body, i + 1, depth))
                stack += [(b, 0, depth + 1) for b in reversed(inner)]
                break
    return result


def _bind_report(
    bind: Bind, names: dict[Local, str], depth: int, measured: _Measured
) -> BindReport:
    """The report for one bind."""
    binders = ", ".join([names[binder] for binder in bind.binders])
    args = ", ".join([names[a] if type(a) is Local else repr(a) for a in bind.args])
    avals = ", ".join([str(binder.type) for binder in bind.binders])
    text = f"{binders} = {bind.op.name}({args}): {avals}" if binders else f"{bind.op.name}({args})"
    source = bind.source.short if bind.source else ""
    return BindReport(text, source, depth, measured.calls, measured.seconds, measured.bytes)


def _operation_counts(fn: Lambda) -> Counter:
    """The number of binds of each operation in a program, without bodies."""
    return Counter([bind.op.name for bind in fn.binds])
