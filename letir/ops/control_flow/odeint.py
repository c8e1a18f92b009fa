"""``odeint``: ordinary differential equations as one operation that holds the right-hand side.

``body(y, t, *args)`` computes dy/dt; SciPy's LSODA solves the equation, or a ``method`` of SciPy's
``solve_ivp``. The derivatives solve further equations, to the tolerances of the solver: forward
mode integrates the sensitivities, reverse mode the adjoint equation, backwards from each time of
``t`` to the one before it (Chen, Rubanova, Bettencourt and Duvenaud, Neural ordinary differential
equations, NeurIPS 2018).
"""

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.types import ArrayType, Size
from letir.errors import DTypeError, GuardError, MissingRule, ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import define, takes_gradient, unbroadcast
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.special.define import scipy_or_cupy_function


def _odeint_impl(xp, y0, t, *args, call, body, rtol=None, atol=None, method=None):
    """The solution at each time of ``t``; ``y0`` is the state at the first."""
    if len(t) == 0 or y0.size == 0:
        return xp.zeros((len(t), *y0.shape))
    _check_tolerances(y0.size, rtol, atol)

    def slope(y, s):
        return call(body, (y, t.dtype.type(s), *args))[0]

    if method is not None:
        return _solved_by_steps(
            scipy_or_cupy_function(xp, "integrate", "solve_ivp"), slope, y0, t, rtol, atol, method
        )
    return scipy_or_cupy_function(xp, "integrate", "odeint")(slope, y0, t, rtol=rtol, atol=atol)


def _solved_by_steps(solve, slope, y0, t, rtol, atol, method):
    """The rows of ``odeint`` by SciPy's ``solve_ivp``, which takes ordered times."""
    ends = (t[0], t[-1])
    solution = solve(lambda s, y: slope(y, s), ends, y0, method, t[1:], rtol=rtol, atol=atol)
    if not solution.success:
        raise GuardError(
            f"solve_ivp stopped before the last time: {solution.message}\n"
            "  call SciPy's function, which returns the solution up to that time"
        )
    return np.concatenate([y0[None], solution.y.T])


def _check_tolerances(n: int | Size, *tolerances) -> None:
    """Raise DTypeError unless each is None, a number, or a number for each of ``n`` parts."""
    for tolerance in tolerances:
        try:
            as_array = np.asarray(0.0 if tolerance is None else tolerance, dtype=float)
        except (TypeError, ValueError):
            as_array = None
        fits = as_array is not None and (
            as_array.ndim == 0
            or (as_array.ndim == 1 and (type(n) is not int or len(as_array) == n))
        )
        if not fits:
            raise DTypeError(
                f"odeint: a tolerance must be a number or a vector, found {tolerance!r}\n"
                f"  pass a number, or one for each of the {n} parts of the state"
            )


def _odeint_aval(y0, t, *args, body, rtol, atol, method):
    """One row of ``y0``'s shape for each time, in float64."""
    if y0.ndim != 1 or t.ndim != 1:
        raise ShapeError(
            f"odeint: y0 and t must have one axis, found {y0} and {t}\n"
            "  ravel the state, and pass the times as a vector"
        )
    _check_tolerances(y0.shape[0], rtol, atol)
    state = body.params[0].type
    if state is not None and state.shape != y0.shape:
        raise ShapeError(
            f"odeint: the body was traced for a state of type {state}, but y0 has type {y0}\n"
            "  trace the body again with a state of this type"
        )
    if {y0.dtype.char, t.dtype.char} != {"d"}:
        raise DTypeError(
            f"odeint computes in float64, found {y0} and {t}\n  convert them with .astype(float)"
        )
    return ArrayType(float, (*t.shape, *y0.shape))


def _derivative_tolerances(rtol, atol, method, n_integrals: int = 0) -> dict:
    """The solver's options for the equations of derivatives; ``solve_ivp`` has coarse defaults.

    The derivative of each part of the state has the tolerance of that part, integrals of
    cotangents, which come last in the state, have the least.
    """
    if method is not None:
        return {}

    def tolerance_for_all(tolerance):
        if tolerance is None or np.ndim(tolerance) == 0:
            return tolerance
        each = np.asarray(tolerance).tolist()
        return (*each, *each, *[min(each)] * n_integrals)

    return {"rtol": tolerance_for_all(rtol), "atol": tolerance_for_all(atol)}


# ---- reverse mode ----


def _flat_cotangent(ct, like) -> Value:
    """A cotangent (or tangent) as a vector; zeros for None."""
    return (zeros_like(like) if ct is None else ct).reshape(-1)


def _adjoint_body(body, args, needed: list[bool], transform):
    """The adjoint equation (y, a, ...) -> (f, -a df/dy, -a df/dargs, ...), states as one vector.

    ``needed`` says for which of ``args`` it integrates a gradient.
    """
    builder = LetBuilder()
    y_type, t_type = (param.type for param in body.params[:2])
    n = y_type.shape[0]
    sizes = [arg.size for arg, is_needed in zip(args, needed, strict=True) if is_needed]
    state = builder.param(ArrayType(float, (2 * n + sum(sizes),)))
    s = builder.param(t_type)
    inner = [builder.param(param.type) for param in body.params[2:]]
    y, a = state[:n], state[n : 2 * n]
    (slope,) = builder.call(body, [y, s, *inner])
    by_y, _, *by_args = transform(body, [y, s, *inner], [a])
    parts = [slope, -_flat_cotangent(by_y, y)]
    triples = zip(by_args, inner, needed, strict=True)
    parts += [-_flat_cotangent(ct, like) for ct, like, is_needed in triples if is_needed]
    return builder.build([concatenate(parts)])


def _odeint_vjp(ct, ys, y0, t, *args, body, rtol, atol, method, transform):
    """Integrate the adjoint state and the gradients of the arguments from the last time back."""
    if ys.type is None or type(t.shape[0]) is not int:
        raise MissingRule("odeint: its derivative needs the number of times; trace with arrays")
    needed = [takes_gradient(arg) for arg in args]
    n_integrals = sum(arg.size for arg, is_needed in zip(args, needed, strict=True) if is_needed)
    options = _derivative_tolerances(rtol, atol, method, n_integrals)
    backward = _adjoint_body(body, args, needed, transform)
    n, count = y0.shape[0], t.shape[0]
    emitter = ct.emitter
    a = zeros_like(y0)
    pieces = [
        _flat_cotangent(None, arg) for arg, is_needed in zip(args, needed, strict=True) if is_needed
    ]
    by_t: list = []
    for i in range(count - 1, 0, -1):
        (slope,) = emitter.call(body, [ys[i], t[i], *args])
        by_t.append((ct[i] * slope).sum())
        state = concatenate([ys[i], a + ct[i], *pieces])
        times = concatenate([t[i : i + 1], t[i - 1 : i]])
        cotangents = odeint(state, times, *args, body=backward, **options)[1]
        a, rest = cotangents[n : 2 * n], cotangents[2 * n :]
        pieces = [rest] if pieces else []
    if count:
        (slope,) = emitter.call(body, [y0, t[0], *args])
        by_t.append(-(a * slope).sum())  # minus: a later start shortens the integration
        a = a + ct[0]
    cotangents, at = [], 0
    for arg, is_needed in zip(args, needed, strict=True):
        if not is_needed:
            cotangents.append(None)
            continue
        cotangents.append(
            unbroadcast(rest[at : at + arg.size].reshape(arg.shape), arg) if count > 1 else None
        )
        at += arg.size
    return unbroadcast(a, y0), unbroadcast(stack(by_t[::-1]), t) if by_t else None, *cotangents


# ---- forward mode ----


def _sensitivity_body(body, args, tangents, transform):
    """The equation (y, dy) -> (f, df) of the sensitivities, with the state as one vector.

    Its parameters are those of ``body``, then one for each tangent that is not None.
    """
    builder = LetBuilder()
    y_type, t_type = (param.type for param in body.params[:2])
    n = y_type.shape[0]
    state, s = builder.param(ArrayType(float, (2 * n,))), builder.param(t_type)
    inner = [builder.param(param.type) for param in body.params[2:]]
    along = [None if g is None else builder.param(g.type) for g in tangents]
    y, dy = state[:n], state[n:]
    (slope,) = builder.call(body, [y, s, *inner])
    (change,) = transform(body, [y, s, *inner], [dy, None, *along])
    return builder.build([concatenate([slope, _flat_cotangent(change, y)])])


def _odeint_jvp(tangents, ys, y0, t, *args, body, rtol, atol, method, transform):
    """Integrate the sensitivity of the solution in the direction of the tangents."""
    by_y0, by_t, *by_args = tangents
    dy = zeros_like(y0) if by_y0 is None else by_y0
    emitter = ys.emitter
    if by_t is not None:
        (slope,) = emitter.call(body, [y0, t[0], *args])
        dy = dy - slope * by_t[0]
    forward = _sensitivity_body(body, args, by_args, transform)
    moving = [g for g in by_args if g is not None]
    state = concatenate([y0, dy])
    options = _derivative_tolerances(rtol, atol, method)
    result = odeint(state, t, *args, *moving, body=forward, **options)
    result = result[:, y0.shape[0] :]
    if by_t is None:
        return result
    slopes = [emitter.call(body, [ys[i], t[i], *args])[0] for i in range(t.shape[0])]
    return result + stack(slopes) * by_t[:, None]


def _odeint_source(write, y0, t, *args, body, rtol, atol, method):
    """A call of SciPy's function; the right-hand side is written as a separate function."""
    module = write.writer.module
    solve = module.imported("scipy.integrate", "odeint" if method is None else "solve_ivp")
    slope = write.function(body, "slope", "The right side of the differential equation.")
    operands = "".join(f", {arg}" for arg in args)
    if method is not None:
        inner = f"lambda s, y: {slope}(y, np.float64(s){operands})"
        rest = f"{method!r}, {t}[1:], rtol={rtol}, atol={atol}"
        return f"np.vstack([{y0}, {solve}({inner}, ({t}[0], {t}[-1]), {y0}, {rest}).y.T])"
    inner = f"lambda y, s: {slope}(y, np.float64(s){operands})"
    return f"{solve}({inner}, {y0}, {t}, rtol={rtol}, atol={atol})"


odeint: Primitive = define(
    "odeint",
    _odeint_impl,
    _odeint_aval,
    vjp=_odeint_vjp,
    jvp=_odeint_jvp,
    batch=LoopOverExamples(lambda: odeint),
    holds_lambdas=True,
    role="solver",
    source=_odeint_source,
    onnx=never("ONNX has no differential equations"),
)
