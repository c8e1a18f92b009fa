"""``check_grads``: derivatives of every order, in both modes, against differences and each other.

Each order is a program: the derivative that was checked is recorded, with its cotangents or
tangents as further arguments, and checked in turn.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ad.differentiation import differentiate
from letir.ad.forward import jvp_program
from letir.ast import LATE_BOUND, entry_point
from letir.ast.checker import retype
from letir.ast.pytrees import NAMESPACE, flatten
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import DTypeError, LetirError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.passes.dead_code_elimination import dead_code
from letir.tracing.entry import trace
from letir.transforms.directions import tangent_of
from letir.transforms.vjp_jvp import jvp, vjp

_MODES = {"rev": "reverse mode", "fwd": "forward mode"}
_WIDE = {"f": np.float64, "c": np.complex128}
_IMAGINARY_STEP = 1e-30  # its square is far below rounding, the step is not subnormal


@frozen(eq=False)
class _Point:
    """A function of arrays that returns a tuple of arrays, and its arguments in the check.

    All arguments and results are floating or complex. ``names``: what messages call the arguments.
    ``path``: the modes of the derivatives that led to the function, innermost first.
    """

    f: Callable
    args: tuple
    names: tuple[str, ...]
    path: tuple[str, ...] = ()


@frozen(eq=False)
class _Case:
    """A point, its program, the random directions of the derivatives, and the derivatives.

    ``pulled``: the cotangents of the arguments, or None without reverse mode. ``pushed``: for each
    argument the tangents of the results along its own tangent, or None without forward mode.
    """

    point: _Point
    program: Lambda
    tangents: tuple
    cts: tuple
    pulled: tuple | None
    pushed: list[tuple] | None


@frozen(eq=False)
class _Method:
    """A way to compute the change of results along a direction, and its accuracy."""

    name: str
    change: Callable  # (point, position of the argument, tangent) -> changes of the results
    rtol: float


@entry_point
def check_grads(
    f: Callable,
    args: Sequence,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    *,
    analytic: bool = False,
    rtol: float | None = None,
    step: float | None = None,
    seed: int = 0,
) -> None:
    """Raise AssertionError unless the derivatives of ``f`` at ``args`` are right up to ``order``.

    ``f``: a function or a Lambda; ``args``: pytrees, of which every floating or complex leaf is
    checked (a function gets them in double precision). For each order and each leaf the derivative
    in a random direction is compared with central differences: from ``jvp`` ("fwd") directly,
    from ``vjp`` ("rev") paired with random cotangents; with both modes also <ct, jvp(t)> with
    <vjp(ct), t>, to rounding. Cotangents of complex numbers follow the convention of JAX and
    autograd: df = Re(sum(ct * dz)).

    ``analytic``: f is real for real arguments, and made of analytic functions that NumPy has for
    complex numbers; then the first order is also compared with a complex step, which is exact to
    rounding. ``rtol`` and ``step`` follow from the precision of f unless they are given.
    Where a difference is nan nothing is compared. The message names the argument, the mode, the
    order, and both values.

    >>> check_grads(lambda x, y: np.sin(x) * y["a"], (np.ones(3), {"a": 2.0}), analytic=True)
    """
    modes = tuple(modes)
    if not modes or set(modes) - _MODES.keys():
        raise LetirError(
            f"check_grads: modes are 'rev' and 'fwd', found {modes}\n  write modes=('rev', 'fwd')"
        )
    if order < 1:
        raise LetirError(
            f"check_grads: order must be at least 1, found {order}\n"
            "  pass the highest order of derivatives to check"
        )
    if not isinstance(args, Sequence):  # an array would be taken apart
        raise DTypeError(
            "check_grads: args is a tuple with an entry for each argument of the function, found "
            f"{type(args).__name__}\n  write check_grads(f, (x,)) for a function of one argument"
        )
    point = _point_of(f, tuple(args))
    eps = coarsest_eps(*point.args, *point.f(*point.args))
    # a central difference errs by h**2 + eps / h: least, about eps**(2/3), for h = eps**(1/3)
    rtol = max(1e-6, 50 * eps ** (2 / 3)) if rtol is None else rtol
    difference = _central_difference(eps ** (1 / 3) if step is None else step)
    methods = [_Method("central differences", difference, rtol)]
    if analytic:
        methods.append(_Method("a complex step", _complex_step, 1000 * eps))
    check_point(point, order, modes, methods, np.random.default_rng(seed))


# ---- the function and its arguments ----


def _point_of(f: Callable, args: Any) -> _Point:
    """``f`` as a function of a flat list of its floating arguments."""
    f = f if isinstance(f, Lambda) else LATE_BOUND["recorded_function"](f)
    leaves, spec = flatten(args)
    paths = optree.tree_accessors(args, namespace=NAMESPACE)
    places = [i for i, leaf in enumerate(leaves) if is_inexact(leaf)]
    if not places:
        raise LetirError(
            "check_grads: no argument is floating or complex, nothing can be checked\n"
            "  pass floating arguments: 3.0 instead of 3"
        )
    # recorded at the types of these arguments
    differentiable = [
        is_inexact(out) for out in flatten(f(*spec.unflatten(_copy_arrays(leaves))))[0]
    ]

    def flat(*arrays):
        filled = list(leaves)
        for i, arg in zip(places, arrays, strict=True):
            filled[i] = arg
        filled = _copy_arrays(filled)
        outs = flatten(_retype_for(f, filled)(*spec.unflatten(filled)))[0]
        return tuple(
            out
            for out, is_differentiable in zip(outs, differentiable, strict=True)
            if is_differentiable
        )

    # recordings search f for functions to record, such as SciPy's
    flat.letir_reaches = lambda: (f, None)  # type: ignore[attr-defined]
    chosen = [leaves[i] if isinstance(f, Lambda) else _widen_leaf(leaves[i]) for i in places]
    names = [f"argument {paths[i][0].entry}{paths[i][1:].codify('')}" for i in places]
    return _Point(flat, tuple(chosen), tuple(names))


def _copy_arrays(leaves: list) -> list:
    """The arrays among the leaves copied: f may write into its arguments, and is called often."""
    return [leaf.copy() if hasattr(leaf, "dtype") else leaf for leaf in leaves]


def _retype_for(f: Callable, leaves: list) -> Callable:
    """``f``; a real Lambda retyped if an argument is complex."""
    if not isinstance(f, Lambda) or _are_traced(leaves):
        return f
    types = [type_of(leaf) for leaf in leaves]
    fits = all(t.dtype.kind == p.type.dtype.kind for t, p in zip(types, f.params, strict=True))
    return f if fits else retype(f, *types)


def is_inexact(leaf: Any) -> bool:
    """Whether ``value`` is a floating or complex array or number."""
    return leaf.dtype.kind in _WIDE if hasattr(leaf, "dtype") else type(leaf) in (float, complex)


def _widen_leaf(leaf):
    """An array in double precision; a Python number unchanged."""
    return leaf.astype(_WIDE[leaf.dtype.kind]) if hasattr(leaf, "dtype") else leaf


def coarsest_eps(*leaves: Any) -> float:
    """The largest spacing of numbers next to 1 among the dtypes of these."""
    return max(float(np.finfo(np.asarray(leaf).dtype).eps) for leaf in leaves)


def random_direction(leaf: Any, rng: np.random.Generator) -> Any:
    """Random numbers of the dtype and shape of ``leaf``, of size about 1."""
    array = np.asarray(leaf)
    # away from zero: a small component would hide its partial derivative
    result = rng.uniform(0.5, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        result = result + 1j * rng.uniform(-1.0, 1.0, array.shape)
    return np.asarray(result, array.dtype)[()]


# ---- differences ----


def step_along(arg: Any, change: Any) -> Any:
    """``arg + change`` in the kind and dtype of ``arg``."""
    return (
        type(arg)(arg + change) if type(arg) in PYTHON_NUMBERS else (arg + change).astype(arg.dtype)
    )


def _central_difference(step: float) -> Callable:
    """The ``change`` of a method that takes a step forward and a step back."""

    def change(point: _Point, i: int, tangent) -> list:
        before, arg, after = point.args[:i], point.args[i], point.args[i + 1 :]
        above = point.f(*before, step_along(arg, step * tangent), *after)
        below = point.f(*before, step_along(arg, -step * tangent), *after)
        with np.errstate(invalid="ignore"):  # inf - inf: infinite values have no derivative
            return [np.subtract(a, b) / (2 * step) for a, b in zip(above, below, strict=True)]

    return change


def _complex_step(point: _Point, i: int, tangent) -> list:
    """The ``change`` of a method that takes an imaginary step, so that nothing cancels.

    Squire and Trapp, Using complex variables to estimate derivatives of real functions, SIAM Review
    40, 1998.
    """
    steps = [_IMAGINARY_STEP * tangent if j == i else 0.0 for j in range(len(point.args))]
    args = [arg + 1j * step for arg, step in zip(point.args, steps, strict=True)]
    return [np.imag(out) / _IMAGINARY_STEP for out in point.f(*args)]


# ---- the laws ----


def check_point(
    point: _Point, order: int, modes: tuple, methods: list[_Method], rng: np.random.Generator
) -> None:
    """Check the derivatives at ``point`` up to ``order``; only the first order with all methods."""
    case = _case_at(point, modes, rng)
    for method in methods:
        changes = [method.change(point, i, tangent) for i, tangent in enumerate(case.tangents)]
        for mode in modes:
            _LAWS[mode](case, changes, method)
    if len(modes) == 2:
        _check_pairing(case)
    if order == 1:
        return
    for mode in modes:
        # a derivative takes cotangents, which are not analytic arguments: differences only
        check_point(_derivative_point(case, mode), order - 1, modes, methods[:1], rng)


def _case_at(point: _Point, modes: tuple, rng: np.random.Generator) -> _Case:
    """The case at a point, with the derivatives in these modes."""
    tangents = tuple(random_direction(arg, rng) for arg in point.args)
    cts = tuple(random_direction(out, rng) for out in point.f(*point.args))
    program = trace(point.f, *point.args)
    pulled = vjp(program, *point.args)[1](cts) if "rev" in modes else None
    alone = [
        tuple(t if j == i else None for j, t in enumerate(tangents)) for i in range(len(tangents))
    ]
    pushed = [jvp(program, point.args, t)[1] for t in alone] if "fwd" in modes else None
    return _Case(point, program, tangents, cts, pulled, pushed)


def _check_forward(case: _Case, changes: list, method: _Method) -> None:
    """The tangents of the results, for one argument's tangent at a time."""
    for name, tangents, change in zip(case.point.names, case.pushed or (), changes, strict=True):
        for expected, tangent in zip(change, tangents, strict=True):
            _compare_values(case, "fwd", name, expected, tangent, method)


def _check_reverse(case: _Case, changes: list, method: _Method) -> None:
    """The cotangent of each argument, paired with its tangent."""
    for name, ct, tangent, change in zip(
        case.point.names, case.pulled or (), case.tangents, changes, strict=True
    ):
        # size: if terms cancel, their rounding errors remain
        expected, size = pair_sum(case.cts, change)
        _compare_values(case, "rev", name, expected, pair_sum([ct], [tangent])[0], method, size)


_LAWS = {"rev": _check_reverse, "fwd": _check_forward}


def _check_pairing(case: _Case) -> None:
    """<ct, jvp(t)> = <vjp(ct), t>."""
    is_alone = len(case.tangents) == 1
    pushed = case.pushed[0] if is_alone else jvp(case.program, case.point.args, case.tangents)[1]
    expected, size = pair_sum(case.cts, pushed)
    actual, other = pair_sum(case.pulled, case.tangents)
    rtol = 1000 * coarsest_eps(*case.cts, *case.tangents)
    law = _Method("<ct, jvp(t)>, where reverse and forward mode must agree", None, rtol)
    _compare_values(case, "rev", ", ".join(case.point.names), expected, actual, law, size + other)


def pair_sum(cts: Sequence, tangents: Sequence) -> tuple[float, float]:
    """Re(sum(ct * tangent)) over all pairs, and the size of the terms."""
    products = [np.multiply(ct, t) for ct, t in zip(cts, tangents, strict=True)]
    total = sum(float(np.real(np.sum(product))) for product in products)
    return total, sum(float(np.sum(np.abs(product))) for product in products)


def _compare_values(
    case: _Case, mode: str, name: str, expected, actual, method: _Method, size=0.0
) -> None:
    """Raise AssertionError unless the values are close; anything is close to a nan difference."""
    expected, actual = np.broadcast_arrays(expected, actual)
    with np.errstate(invalid="ignore"):
        near = np.abs(expected - actual) <= method.rtol * (1 + np.abs(expected) + size)
    wrong = ~(near | np.isnan(expected) | (expected == actual))  # ==: equal infinities
    if not wrong.any():
        return
    first = tuple(np.argwhere(wrong)[0])
    path = case.point.path
    modes = " of ".join(_MODES[m] for m in (mode, *reversed(path)))
    raise AssertionError(
        f"the derivative with respect to {name} is wrong in {modes}, order {len(path) + 1}\n"
        f"  expected {expected[first]} by {method.name}, got {actual[first]}"
    )


# ---- the next order ----


def _are_traced(leaves: Sequence) -> bool:
    return any(hasattr(leaf, "emitter") for leaf in leaves)


def _cotangents_of(program: Lambda) -> Callable:
    """``vjp`` of a program as a function of (primals, cotangents) that differentiates it once."""
    gradient = differentiate(program)
    places = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]

    def cotangents(primals: tuple, cts: tuple) -> tuple:
        _, residuals = gradient.forward(*primals)
        return gradient.backward(residuals, *[cts[i] for i in places])

    return cotangents


def _tangents_of(program: Lambda) -> Callable:
    """``jvp`` of a program as a function of (primals, tangents) that differentiates it once."""
    both, outputs = jvp_program(program, range(len(program.params)))
    both, count = dead_code(both), len(program.ret.args)

    def tangents(primals: tuple, directions: tuple) -> tuple:
        results = run_flat(both, [*primals, *directions])
        by_output = dict(zip(outputs, results[count:], strict=True))
        return tuple(tangent_of(r, by_output.get(i), np) for i, r in enumerate(results[:count]))

    return tangents


def _derivative_point(case: _Case, mode: str) -> _Point:
    """The derivative in ``mode`` as a function of the directions and the arguments."""
    point, program = case.point, case.program
    directions = case.cts if mode == "rev" else case.tangents
    count = len(directions)
    evaluated = _cotangents_of(program) if mode == "rev" else _tangents_of(program)

    def backward(*args):
        if not _are_traced(args):
            return evaluated(args[count:], args[:count])
        cotangents = vjp(program, *args[count:])[1](args[:count])
        return tuple(ct for ct in cotangents if ct is not None)

    def forward(*args):
        if not _are_traced(args):
            return evaluated(args[count:], args[:count])
        return jvp(program, args[count:], args[:count])[1]

    direction = "cotangent" if mode == "rev" else "tangent"
    names = (*(f"{direction} {i}" for i in range(count)), *point.names)
    f = backward if mode == "rev" else forward
    return _Point(f, (*directions, *point.args), names, (*point.path, mode))
