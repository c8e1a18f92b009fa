"""``odeint`` and ``solve_ivp`` of traced values: the right-hand side is recorded as a body."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ShapeDtype
from letir.errors import ShapeError
from letir.eval.array_modules import is_array
from letir.scipy.namespace import find_in_scipy, is_traced, refusal_error
from letir.tracing.entry import record
from letir.tracing.operands import traced_or_array
from letir.tracing.trace_state import ABSTRACT, ACTIVE, Trace


def _as_double(x):
    """``x`` as float64, the precision in which SciPy solves."""
    return x if x.dtype == np.float64 else x.astype(np.float64)


@entry_point
def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    args: Sequence = (),
    *,
    rtol: float | Sequence[float] | None = None,
    atol: float | Sequence[float] | None = None,
    tfirst: bool = False,
    **options: Any,
) -> Any:
    """scipy.integrate.odeint, differentiable in ``y0``, ``t`` and ``args``.

    Solves dy/dt = func(y, t, *args); ``y0`` is the state at the first time of ``t``. ``func`` is
    recorded without values, so it cannot branch with ``if``. The derivatives solve the adjoint
    equation (docs/scipy.md), with the same tolerances.
    """
    LATE_BOUND["refuse_unless_function"]("odeint: func", func)
    args = args if isinstance(args, tuple) else (args,)
    if not isinstance(ACTIVE.get(), Trace) and not is_traced(y0, t, *args):
        return find_in_scipy("integrate", "odeint")(
            func, y0, t, args, rtol=rtol, atol=atol, tfirst=tfirst, **options
        )
    y0, t = (_as_double(np.atleast_1d(traced_or_array(x))) for x in (y0, t))
    right_side, operands = _recorded_slope("odeint", func, y0, args, tfirst)
    if not is_traced(y0, t, *operands):
        return find_in_scipy("integrate", "odeint")(
            func, y0, t, args, rtol=rtol, atol=atol, tfirst=tfirst, **options
        )
    if options:
        raise refusal_error("odeint", f"leave out {', '.join(options)}")
    tolerances = {"rtol": _tolerance_array(rtol), "atol": _tolerance_array(atol)}
    return PRIMITIVES["odeint"](y0, t, *operands, body=right_side, **tolerances)


def _tolerance_array(tolerance: Any) -> Any:
    """A list of tolerances as an array; a number unchanged."""
    return np.asarray(tolerance, float) if isinstance(tolerance, list | tuple) else tolerance


def _recorded_slope(name: str, func: Callable, y0: Any, args: tuple, tfirst: bool) -> tuple:
    """(the right-hand side as a program of state, time and operands, the operands)."""
    places = [i for i, arg in enumerate(args) if isinstance(arg, Value) or is_array(arg)]

    def slope(y, s, *extra):
        every = list(args)
        for place, arg in zip(places, extra, strict=True):
            every[place] = arg
        out = func(s, y, *every) if tfirst else func(y, s, *every)
        slopes = np.atleast_1d(_as_double(traced_or_array(out)))
        if slopes.shape != y.shape:
            raise ShapeError(
                f"{name}: func returns an array of shape {slopes.shape}, found a state of shape "
                f"{y.shape}\n  return one derivative for each element of the state"
            )
        return slopes

    operands = [args[i] for i in places]
    kinds = [ShapeDtype(x.shape, x.dtype) for x in (y0, *operands)]
    recording = record(slope, (kinds[0], ShapeDtype((), float), *kinds[1:]), {}, ABSTRACT)
    return recording.fn, [*operands, *recording.lifted]


@entry_point
def _times_with_ends(times: Any, span: Any) -> Any:
    """The start, the times ``times``, and the end of ``span`` unless it is the last of them."""
    first, last = (_as_double(traced_or_array(s)).reshape(1) for s in span)
    ends = [] if bool(times[-1] == last[0]) else [last]
    return np.concatenate([first, times, *ends])


def solve_ivp(
    fun: Callable,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """scipy.integrate.solve_ivp at given times, differentiable like ``odeint``.

    SciPy's ``method`` computes the values; the derivatives are derivatives of the exact solution.
    The result has ``t``, ``y``, ``status``, ``message`` and ``success``.
    """
    LATE_BOUND["refuse_unless_function"]("solve_ivp: fun", fun)
    extra = () if args is None else tuple(args)
    scipys = find_in_scipy("integrate", "solve_ivp")
    rest = (method, t_eval, dense_output, events, vectorized, args)
    if not isinstance(ACTIVE.get(), Trace) and not is_traced(t_span, y0, t_eval, *extra):
        return scipys(fun, t_span, y0, *rest, **options)
    start = _as_double(np.atleast_1d(traced_or_array(y0)))
    right_side, operands = _recorded_slope("solve_ivp", fun, start, extra, True)
    if not is_traced(t_span, start, t_eval, *operands):
        return scipys(fun, t_span, y0, *rest, **options)
    tolerances = {"rtol": options.pop("rtol", 1e-3), "atol": options.pop("atol", 1e-6)}
    has_own = dense_output or events is not None or type(method) is not str
    _refuse_options(bool(options or has_own), t_eval)
    evaluated = _as_double(traced_or_array(t_eval))
    times = _times_with_ends(evaluated, t_span)
    solution = PRIMITIVES["odeint"](
        start, times, *operands, body=right_side, method=method, **tolerances
    )
    states = solution[1 : 1 + evaluated.shape[0]].T
    return sys.modules[scipys.__module__].OdeResult(
        **{"t": evaluated, "y": states, "sol": None, "t_events": None},
        **{"y_events": None, "status": 0, "success": True},
        message="The solver successfully reached the end of the integration interval.",
    )


def _refuse_options(has_others: bool, t_eval: Any) -> None:
    """Raise MissingRule for options of solve_ivp that are not recorded, or without ``t_eval``."""
    if has_others:
        raise refusal_error(
            "solve_ivp",
            "of the options only rtol and atol are supported, "
            "no events, dense_output or methods of your own",
        )
    if t_eval is None:
        raise refusal_error("solve_ivp", "its times depend on the values: pass t_eval")
