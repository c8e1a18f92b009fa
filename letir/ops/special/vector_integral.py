"""``vector_integral``: the integral of a recorded function over an interval, by ``quad_vec``.

``body(t, *args)`` gives a vector. Derivatives of ``scipy.integrate.quad`` are such integrals, of
the derivatives of the integrand, and the integrand at the limits (the rule of Leibniz).
"""

from typing import Any

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.types import ArrayType
from letir.errors import MissingRule, ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import add_terms, define, takes_gradient, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.special.define import scipy_or_cupy_function
from letir.ops.special.scipy_functions import fill_form


def _integral_impl(xp, a, b, *args, call, body, points=()):
    """The integral from a to b. nan where it is not found to six digits."""
    if body.ret.args[0].type.shape == (0,) or a == b:
        return xp.zeros(body.ret.args[0].type.shape)

    def integrand(t):
        return call(body, (xp.float64(t), *args))[0]

    value, error = scipy_or_cupy_function(xp, "integrate", "quad_vec")(
        integrand, float(a), float(b), epsabs=1e-14, epsrel=1e-10, points=points or None
    )
    is_found = error <= 1e-6 * float(xp.max(abs(value))) + 1e-9
    return value if is_found else value + xp.nan


def _integral_aval(a, b, *args, body, points):
    """The type of the integrand."""
    result = body.ret.args[0].type
    if a.shape or b.shape or result is None or result.ndim != 1:
        raise ShapeError(
            f"vector_integral: the limits must be numbers, the integrand a vector; found {a}, {b} "
            f"and {result}\n  ravel the integrand"
        )
    return ArrayType(float, result.shape)


def _inner_parameters(body, args: tuple) -> tuple[LetBuilder, Value, list]:
    """(a builder, the variable of integration, the parameters for ``args``) of a new integrand."""
    builder = LetBuilder()
    t, *inner = [builder.param(param.type) for param in body.params]
    if any(arg.type is None or arg.dtype.kind == "c" for arg in args if isinstance(arg, Value)):
        raise MissingRule("integrals have no derivative with respect to complex numbers")
    return builder, t, inner


def _integral_vjp(ct, out, a, b, *args, body, points, transform):
    """The cotangents: the integrand at the limits, and integrals of its gradients."""
    needed = [takes_gradient(arg) for arg in args]
    by_args: list = [None] * len(args)
    if any(needed):
        builder, t, inner = _inner_parameters(body, args)
        weights = builder.param(ct.type)
        _, *pulled = transform(body, [t, *inner], [weights])
        chosen = [i for i, is_needed in enumerate(needed) if is_needed]
        rows = [
            (zeros_like(inner[i]) if pulled[i] is None else pulled[i]).astype(float).reshape(-1)
            for i in chosen
        ]
        total = vector_integral(
            a, b, *args, ct, body=builder.build([concatenate(rows)]), points=points
        )
        at = 0
        for i, row in zip(chosen, rows, strict=True):
            shape = inner[i].shape
            part = total[at : at + row.size].reshape(shape) if shape else total[at]
            by_args[i], at = unbroadcast(part.astype(inner[i].dtype), args[i]), at + row.size
    ends = [
        _limit_cotangent(body, end, args, ct, sign) if takes_gradient(end) else None
        for end, sign in ((a, -1.0), (b, 1.0))
    ]
    return (*ends, *by_args)


def _limit_cotangent(body, end: Value, args: tuple, ct: Value, sign: float) -> Value:
    """The cotangent of a limit: the integrand there, weighted."""
    (value,) = end.emitter.call(body, [end.astype(float), *args])
    return unbroadcast(sign * (value * ct).sum(), end)


def _integral_jvp(tangents, out, a, b, *args, body, points, transform):
    """The tangent: the integrand at the limits, and the integral of its tangent."""
    by_a, by_b, *along = tangents
    terms: list = []
    for end, change, sign in ((a, by_a, -1.0), (b, by_b, 1.0)):
        if change is not None:
            (value,) = out.emitter.call(body, [end.astype(float), *args])
            terms.append(sign * change * value)
    moving = [g for g in along if g is not None]
    if moving:
        builder, t, inner = _inner_parameters(body, args)
        inner_along = [None if g is None else builder.param(g.type) for g in along]
        (pushed,) = transform(body, [t, *inner], [None, *inner_along])
        if pushed is not None:
            new = builder.build([pushed.astype(float)])
            terms.append(vector_integral(a, b, *args, *moving, body=new, points=points))
    return add_terms(terms) if terms else None


def _integral_source(write: Any, a, b, *args, body, points):
    """A call of SciPy's function; the integrand is written as a separate function."""
    integrate = write.writer.module.imported("scipy.integrate", "quad_vec")
    name = write.function(body, "integrand", "The function that is integrated.")
    operands = "".join(f", {arg}" for arg in args)
    inner = f"lambda t: {name}(np.float64(t){operands})"
    rest = f"epsabs=1e-14, epsrel=1e-10, points={points or None!r}"
    return f"{integrate}({inner}, float({a}), float({b}), {rest})[0]"


vector_integral: Primitive = define(
    "vector_integral",
    _integral_impl,
    _integral_aval,
    vjp=_integral_vjp,
    jvp=_integral_jvp,
    batch=LoopOverExamples(lambda: vector_integral),
    holds_lambdas=True,
    source=_integral_source,
    onnx=never("ONNX has no adaptive quadrature"),
)


# ---- scipy.integrate.quad ----

_FINE = frozenset(["epsabs", "epsrel", "limit", "points"])  # other options change the integrand


def _as_integral(args: tuple, first: int, arguments: Any, body: Any) -> tuple:
    """(lower limit, upper limit, the integrand as a vector, singular points) of a quad.

    ``args[:first]``: the operands of SciPy's function. Raises MissingRule for other options.
    """
    positional, keywords = fill_form(arguments, iter(args[:first]), [None])
    given = {**dict(zip(("func", "a", "b"), positional, strict=False)), **keywords}
    points = given.get("points")
    points = () if points is None else tuple(points) if type(points) in (list, tuple) else (points,)
    is_plain = len(positional) <= 3 and given.keys() <= _FINE | {"func", "a", "b"}
    if not is_plain or not all(type(p) in (int, float) for p in points):
        raise MissingRule(
            "scipy.integrate.quad has a derivative with the options epsabs, epsrel, limit and "
            "points (numbers) only\n  write the weight into the function"
        )
    builder = LetBuilder()
    inner = [builder.param(param.type) for param in body.params]
    (value,) = builder.call(body, inner)
    value = value if isinstance(value, Value) else zeros_like(inner[0]) + value
    return given["a"], given["b"], builder.build([value.astype(float).reshape(1)]), points


def only_cotangent(function: str, cts: tuple, place: int) -> Value | None:
    """The cotangent of the one result that has a derivative; nan where another one is not zero.

    Raises MissingRule if it is known that another result has a cotangent.
    """
    given = [ct for i, ct in enumerate(cts) if i != place and ct is not None]
    if given and any(ct is None for ct in cts):
        raise MissingRule(
            f"scipy.{function} has no derivative with respect to these results: only roots and "
            "integrals have\n"
            "  letir.stop_gradient(x) treats a result as a constant; solve for the zero of the "
            "gradient with\n  scipy.optimize.root, or write letir.custom_vjp"
        )
    # where all are there, some of them may be zeros for results that are not used
    ct = cts[place]
    for other in [ct for ct in given if ct.type.inexact]:
        ct = ct + where((other != 0).any(), np.nan, 0.0)
    return ct


def quad_vjp(
    cts: tuple, args: tuple, first: int, arguments: Any, body: Any, transform: Any
) -> tuple:
    """The cotangents of the operands and the captured values of ``scipy.integrate.quad``."""
    result: list = [None] * len(args)
    ct = only_cotangent("integrate.quad", cts, 0)
    if ct is None:
        return tuple(result)
    a, b, integrand, points = _as_integral(args, first, arguments, body)
    ct = ct.reshape(1).astype(float)
    pulled = _integral_vjp(
        ct, None, a, b, *args[first:], body=integrand, points=points, transform=transform
    )
    for end, change in zip((a, b), pulled, strict=False):
        place = next((i for i, arg in enumerate(args[:first]) if arg is end), None)
        if change is not None and place is not None:
            result[place] = add_terms([result[place], change])
    return (*result[:first], *pulled[2:])


def quad_jvp(
    tangents: tuple, outs: tuple, args: tuple, first: int, arguments: Any, body: Any, transform: Any
) -> tuple:
    """The tangents of the results of ``quad``; nan for the estimate of the error."""
    a, b, integrand, points = _as_integral(args, first, arguments, body)
    along = [
        next((g for arg, g in zip(args[:first], tangents, strict=False) if arg is end), None)
        for end in (a, b)
    ]
    out = outs[0].reshape(1)
    pushed = _integral_jvp(
        [*along, *tangents[first:]],
        out,
        a,
        b,
        *args[first:],
        body=integrand,
        points=points,
        transform=transform,
    )
    change = None if pushed is None else pushed[0]
    return (change, *[zeros_like(x) + np.nan if x.type.inexact else None for x in outs[1:]])
