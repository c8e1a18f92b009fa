"""``odeint`` of traced values: the right-hand side is recorded once, as a body."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ShapeDtype
from letir.errors import ShapeError
from letir.eval.array_modules import is_array
from letir.scipy.namespace import as_array_or_traced, find_in_scipy, is_traced, refusal_error
from letir.tracing.entry import record
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
    rtol: float | None = None,
    atol: float | None = None,
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
    y0, t = (_as_double(np.atleast_1d(as_array_or_traced(x))) for x in (y0, t))
    places = [i for i, arg in enumerate(args) if isinstance(arg, Value) or is_array(arg)]

    def slope(y, s, *given):
        every = list(args)
        for place, arg in zip(places, given, strict=True):
            every[place] = arg
        out = func(s, y, *every) if tfirst else func(y, s, *every)
        slopes = np.atleast_1d(_as_double(as_array_or_traced(out)))
        if slopes.shape != y.shape:
            raise ShapeError(
                f"odeint: func returns an array of shape {slopes.shape}, found a state of shape "
                f"{y.shape}\n  return one derivative for each element of the state"
            )
        return slopes

    operands = [args[i] for i in places]
    kinds = [ShapeDtype(x.shape, x.dtype) for x in (y0, *operands)]
    recording = record(slope, (kinds[0], ShapeDtype((), float), *kinds[1:]), {}, ABSTRACT)
    operands += recording.lifted
    if not is_traced(y0, t, *operands):
        return find_in_scipy("integrate", "odeint")(
            func, y0, t, args, rtol=rtol, atol=atol, tfirst=tfirst, **options
        )
    if options:
        raise refusal_error("odeint", f"leave out {', '.join(options)}")
    return PRIMITIVES["odeint"](y0, t, *operands, body=recording.fn, rtol=rtol, atol=atol)
