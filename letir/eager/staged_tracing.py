"""Staged traces: a function of Variables, its backward pass, and the backward pass of that, as
stages of one program [E5].

The first stage is traced. Each later stage is the gradient program of all stages before it, written
when a backward pass reaches the results of the previous stage, for the gradients that arrive.
"""

import weakref
from collections.abc import Callable
from typing import Any

from attrs import frozen

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import number_locals
from letir.ast.pytrees import flatten
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.text.printer import dumps
from letir.eager.grad_mode import is_grad_enabled
from letir.eager.hooks import Handle, add_hook
from letir.eager.variable import Variable
from letir.errors import TraceError
from letir.eval.evaluator import run_forward
from letir.tracing.entry import mark_static, record
from letir.tracing.trace_state import LAZY


@frozen(eq=False)
class Stage:
    """One stage: its parameters, binds and results; it may read values of earlier stages.

    The parameters of the first stage are the arguments, those of a later one the gradients of the
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
        made = {*self.params, *(binder for bind in self.binds for binder in bind.binders)}
        terms: list[Any] = [*self.binds, Ret(self.results)]
        read = dict.fromkeys(
            local for term in terms for local in term.locals() if local not in made
        )
        return Lambda([*self.params, *read], self.binds, Ret(self.results))


class StagedTrace:
    """The result of ``staged_trace``; ``str`` shows it stage by stage.

    It holds programs, but no values.
    """

    def __init__(self, fn: Lambda, inputs: list, derivatives: int):
        self.derivatives = derivatives
        self._stages = [Stage(fn.params, fn.binds, fn.ret.args)]
        self._whole = fn  # all stages, with the results of the last
        self._requires = [_requires_grad(value) for value in inputs]
        # weak references: the trace is expired once the results no longer exist
        self._inputs: list[Any] = [
            weakref.ref(v.arg) if _requires_grad(v) else None for v in inputs
        ]
        self._watched: dict[int, weakref.ref] = {}  # origins of results of the last stage
        self._arrived: dict[int, bool] = {}  # which have a gradient, whether that requires grad
        self._handles: list[Handle] = []
        self._coming: dict[int, Handle] = {}  # of inputs whose gradients are results to come
        self._places: list[int] = []  # of the inputs whose gradients the last stage gives

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages seen so far."""
        self._close()
        return tuple(self._stages)

    @property
    def program(self) -> Lambda:
        """All stages as one program, with the parameters and results of each stage in order."""
        results = tuple(result for stage in self.stages for result in stage.results)
        return Lambda(self._whole.params, self._whole.binds, Ret(results))

    @property
    def is_complete(self) -> bool:
        """Whether all stages have been seen."""
        return len(self.stages) > self.derivatives

    @property
    def is_expired(self) -> bool:
        """Whether the missing stages can no longer be seen, because the results no longer exist."""
        return not self.is_complete and all(origin() is None for origin in self._watched.values())

    def watch(self, position: int, result: Any) -> None:
        """Watch for the gradient of a result of the last stage."""
        if _requires_grad(result) and len(self._stages) <= self.derivatives:
            self._watched[position] = weakref.ref(result.arg)
            self._handles.append(result.register_hook(lambda ct: self._arrives(position, ct)))

    def _arrives(self, position: int, ct: Variable) -> None:
        """Note that the gradient of a result has arrived."""
        is_first = not self._arrived
        self._arrived[position] = ct.requires_grad
        if is_first and is_grad_enabled():  # the next stage has a history: its results come
            for place, reference in enumerate(self._inputs):
                origin = reference and reference()
                if origin is not None:
                    self._coming[place] = add_hook(
                        origin.noted().hooks, lambda ct, place=place: self._comes_out(place, ct)
                    )

    def _comes_out(self, place: int, ct: Variable) -> None:
        """Note the gradient of an input: a result of the current stage."""
        self._coming.pop(place).remove()  # it belongs to this backward, not to the next one
        self._close()
        if place in self._places:
            self.watch(self._places.index(place), ct)

    def _close(self) -> None:
        """Write the stage whose gradients have arrived."""
        if not self._arrived:
            return
        whole = self._whole
        defined = [i in self._arrived for i in range(len(whole.ret.args))]
        pair = differentiate(whole, self._requires, defined=defined)
        params = pair.df.params[: len(pair.df_input_vjps)]
        found = zip(pair.df_output_vjps, pair.df.ret.args, strict=True)
        results = {place: arg for place, arg in found if type(arg) is Local}  # others are zero
        self._places = list(results)
        ret = Ret(tuple(results.values()))
        self._stages.append(Stage(params, pair.df.binds, ret.args))
        self._whole = Lambda([*whole.params, *params], [*whole.binds, *pair.df.binds], ret)
        self._requires += [self._arrived[i] for i in pair.df_input_vjps]
        self._inputs += [None] * len(params)
        for handle in self._handles:
            handle.remove()
        self._arrived, self._watched, self._handles = {}, {}, []

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
            f"found {derivatives!r}"
        )
    fn = record(f, *mark_static(f, args, {}, (), ()), LAZY).fn
    inputs = flatten(args)[0] if fn.in_tree is None else fn.in_tree.leaves_of((args, {}), "tracing")
    trace = StagedTrace(fn, inputs, derivatives)
    out = run_forward(fn, *args)
    for position, result in enumerate(flatten(out)[0]):
        trace.watch(position, result)
    return trace, out
