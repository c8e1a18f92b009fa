"""Staged traces: a function of Variables, its backward pass, and the backward pass of that, as
stages of one program [semantics.md E5].

The first stage is traced. Each later stage is the gradient program of all stages before it, written
when a backward pass reaches the results of the previous stage, for the gradients that arrive.
"""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field, frozen

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import number_locals
from letir.ast import entry_point
from letir.ast.process_state import new_lock
from letir.ast.pytrees import flatten
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.text.printer import dumps
from letir.eager.hooks import Handle, PassHook, add_hook
from letir.eager.recorder import RECORDER
from letir.eager.variable import Variable
from letir.errors import TraceError
from letir.eval.arguments import mark_static
from letir.eval.evaluator import run_forward
from letir.ops.elementwise.casting import barrier
from letir.tracing.entry import record
from letir.tracing.trace_state import LAZY

# (stage, position): a result of the first stage, or the gradient of the parameter at this position
_Result = tuple[int, int]


@frozen(eq=False)
class Stage:
    """One stage: its parameters, binds and results; it may read values of earlier stages.

    The parameters of the first stage are the arguments; of a later stage, the gradients of the
    results before it.
    """

    params: tuple[Local, ...]
    binds: tuple[Bind, ...]
    results: tuple

    @property
    def program(self) -> Lambda:
        """The stage as a closed program of its parameters, followed by the values that it reads of
        earlier stages in the order of first use.
        """
        own = {*self.params, *(binder for bind in self.binds for binder in bind.binders)}
        terms: list[Any] = [*self.binds, Ret(self.results)]
        read = dict.fromkeys(local for term in terms for local in term.locals() if local not in own)
        return Lambda([*self.params, *read], self.binds, Ret(self.results))


@define(eq=False)
class _BackwardPass:
    """A backward pass that reaches results of a staged trace.

    ``arrived``: for each result with a gradient, the gradient's grad edge if it requires grad;
    ``came``: the inputs whose gradients were computed. References to edges and to the engine are
    weak: a trace keeps no values alive.
    """

    engine: weakref.ref
    arrived: dict[_Result, weakref.ref | None] = field(factory=dict)
    came: set[int] = field(factory=set)
    handles: list[Handle] = field(factory=list)  # handles of the hooks on the inputs


class StagedTrace:
    """The result of ``staged_trace``; ``str`` shows it stage by stage.

    It holds programs, but no values.

    >>> x = Variable(3.0, requires_grad=True)
    >>> trace, y = staged_trace(lambda x: x * x, x, derivatives=1)
    >>> trace.is_complete
    False
    >>> y.backward()
    >>> trace.is_complete, [len(stage.binds) for stage in trace.stages]
    (True, [1, 2])
    """

    def __init__(self, fn: Lambda, inputs: list, derivatives: int):
        self.derivatives = derivatives
        self._stages = [Stage(fn.params, fn.binds, fn.ret.args)]
        self._whole = fn  # all stages as one program, with the results of each stage
        self._results: list[_Result] = [(0, i) for i in range(len(fn.ret.args))]
        # the parameters of all stages: the grad edges of those that require grad
        self._inputs: list[Any] = [
            weakref.ref(v.arg) if _requires_grad(v) else None for v in inputs
        ]
        self._watched: dict[_Result, tuple[weakref.ref, Handle]] = {}
        self._pass: _BackwardPass | None = None
        self._lock = new_lock(threading.RLock)  # the workers of a backward pass call hooks

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages seen so far."""
        with self._lock:
            self._close()
        return tuple(self._stages)

    @property
    def program(self) -> Lambda:
        """All stages as one program, with the parameters and results of each stage in order."""
        with self._lock:
            self._close()
        return self._whole

    @property
    def is_complete(self) -> bool:
        """Whether all stages have been seen."""
        return len(self.stages) > self.derivatives

    @property
    def is_expired(self) -> bool:
        """Whether the missing stages can no longer be seen, because the results no longer exist."""
        if self.is_complete:
            return False
        last = len(self._stages) - 1
        return all(edge() is None for (n, _), (edge, _) in self._watched.items() if n == last)

    def watch(self, result: _Result, value: Any) -> Any:
        """``value``, a result of the last stage, with a new grad edge. Only users of the result
        have this edge, and a hook on it reports when the gradient arrives.
        """
        if not _requires_grad(value) or result[0] >= self.derivatives:
            return value
        watched = RECORDER.apply(barrier, (value,))
        hook = PassHook(lambda ct, engine: self._note_arrival(result, ct, engine))
        handle = add_hook(watched.arg.own_notes().hooks, hook)
        self._watched[result] = weakref.ref(watched.arg), handle
        return watched

    def _note_arrival(self, result: _Result, ct: Variable, engine: Any) -> None:
        """Note that the gradient of a result has arrived."""
        with self._lock:
            is_first = self._pass is None or self._pass.engine() is not engine
            if is_first:
                self._close()
            if result not in self._watched:  # the stage that was just written is the last one
                return
            if self._pass is None:
                self._pass = _BackwardPass(weakref.ref(engine))
            self._pass.arrived[result] = weakref.ref(ct.arg) if ct.requires_grad else None
            for place, reference in enumerate(self._inputs if is_first else ()):
                edge = reference and reference()
                if edge is not None:
                    hook = PassHook(partial(self._note_input_gradient, place))
                    self._pass.handles.append(add_hook(edge.own_notes().hooks, hook))

    def _note_input_gradient(self, place: int, ct: Variable, engine: Any) -> Any:
        """Note the gradient of an input as a result of the current stage; returns it."""
        with self._lock:
            if self._pass is None or self._pass.engine() is not engine:
                self._close()  # this pass reached an input without passing the results
                return ct
            self._pass.came.add(place)
            return self.watch((len(self._stages), place), ct)

    def _close(self) -> None:
        """Write the stage of the backward pass that was noted, if it has reached the last stage."""
        ended, self._pass = self._pass, None
        if ended is None:
            return
        for handle in ended.handles:
            handle.remove()
        number = len(self._stages)
        if ended.came and any(stage == number - 1 for stage, _ in ended.arrived):
            self._write(ended)
        if len(self._stages) == number or len(self._stages) > self.derivatives:
            unused = [r for r in self._watched if r[0] >= number or number == self.derivatives]
            for result in unused:
                self._watched.pop(result)[1].remove()

    def _write(self, ended: _BackwardPass) -> None:
        """Append the stage: the gradient program for the gradients that arrived."""
        whole = self._whole
        requires = [edge is not None for edge in self._inputs]
        defined = [result in ended.arrived for result in self._results]
        pair = differentiate(whole, requires, defined=defined)
        params = pair.df.params[: len(pair.df_input_vjps)]
        pairs = zip(pair.df_output_vjps, pair.df.ret.args, strict=True)
        results = {place: arg for place, arg in pairs if type(arg) is Local}  # others are zero
        self._inputs += [ended.arrived[self._results[i]] for i in pair.df_input_vjps]
        self._results += [(len(self._stages), place) for place in results]
        self._stages.append(Stage(params, pair.df.binds, tuple(results.values())))
        ret = Ret((*whole.ret.args, *results.values()))
        self._whole = Lambda([*whole.params, *params], [*whole.binds, *pair.df.binds], ret)

    def __str__(self):
        numbers = number_locals(self.program)
        lines = iter(dumps(self.program).splitlines()[1:])
        parts = []
        for i, stage in enumerate(self.stages):
            params = ", ".join(_parameter_text(p, numbers) for p in stage.params)
            parts.append(f"stage {i} ({params}):")
            parts += [next(lines) for _ in stage.binds]
            results = ", ".join(numbers.get(r, repr(r)) for r in stage.results)
            parts.append(f"  return ({results})")
        if not self.is_complete:
            state = "expired" if self.is_expired else "not complete"
            parts.append(f"{state}: {len(self.stages)} of {self.derivatives + 1} stages")
        return "\n".join(parts)

    __repr__ = __str__


def _parameter_text(param: Local, numbers: dict[Local, str]) -> str:
    """A parameter as in the text of a program, with its name and type."""
    name = f":{param.name}" if param.name else ""
    return f"{numbers[param]}{name}: {param.type!r}"


def _requires_grad(value) -> bool:
    """Whether a value is a Variable that requires grad."""
    return isinstance(value, Variable) and value.requires_grad


@entry_point
def staged_trace(f: Callable, *args: Any, derivatives: int = 1) -> tuple[StagedTrace, object]:
    """(trace, f(*args)) for arguments that are Variables, in any nesting.

    The trace starts with one stage. Each ``backward`` or ``gradients`` through the results adds
    one, up to ``derivatives`` of them; for more than one pass ``create_graph=True``.

    >>> x = Variable(3.0, requires_grad=True, name="x")
    >>> trace, y = staged_trace(lambda x: x * x, x)
    >>> y.backward()
    >>> print(trace)
    stage 0 (%0:x: float64[]):
      %2: float64[] = mul(%0, %0)  # <doctest letir.eager.staged_tracing.staged_trace[1]>:1
      return (%2)
    stage 1 (%1: float64[]):
      %3: float64[] = mul(%1, %0)  # <doctest letir.eager.staged_tracing.staged_trace[1]>:1
      %4: float64[] = add(%3, %3)  # <doctest letir.eager.staged_tracing.staged_trace[1]>:1
      return (%4)
    """
    if type(derivatives) is not int or derivatives < 0:
        raise TraceError(
            "staged_trace: derivatives must be an integer that is not negative, "
            f"found {derivatives!r}\n"
            "  pass the number of derivatives to record, from 0"
        )
    fn = record(f, *mark_static(f, args, {}, (), ()), LAZY).fn
    inputs = flatten(args)[0] if fn.in_tree is None else fn.in_tree.leaves_of((args, {}), "tracing")
    trace = StagedTrace(fn, inputs, derivatives)
    out = run_forward(fn, *args)
    leaves, nesting = flatten(out)
    watched = [trace.watch((0, position), result) for position, result in enumerate(leaves)]
    return trace, nesting.unflatten(watched)
