"""``check_grads``: derivatives of every order and in both modes, against differences and against each other.

Each order is a program: the derivative that was checked, with the cotangents (or tangents) as further arguments, is
recorded and checked in turn.
"""

from collections.abc import Callable, Sequence

import numpy as np
import optree
from attrs import frozen

from letir.ad.higher_order import jvp, vjp
from letir.ast.terms import Lambda
from letir.ast.trees import NAMESPACE, flatten
from letir.errors import LetirError
from letir.tracing.recording import trace

MODES = {"rev": "reverse mode", "fwd": "forward mode"}
WIDE = {"f": np.float64, "c": np.complex128}
IMAGINARY_STEP = 1e-30


@frozen(eq=False)
class Point:
    """A function of arrays in a row that returns a tuple of arrays, and where it is checked.

    All arguments and results are floating or complex. ``names``: what messages call the arguments. ``path``: the
    modes through which the function came about, outermost last.
    """

    f: Callable
    args: tuple
    names: tuple[str, ...]
    path: tuple[str, ...] = ()


@frozen(eq=False)
class Precision:
    """How far apart values may be, relative to their size, and the step of central differences."""

    rtol: float
    step: float


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

    ``f``: a function or a Lambda of pytrees; every floating or complex argument is checked (those of a function in
    double precision). For each order and each argument the derivative in a random direction is compared with central
    differences: ``jvp`` ("fwd") as it is, ``vjp`` ("rev") paired with random cotangents. With both modes also
    <ct, jvp(t)> = <vjp(ct), t>, to rounding. ``analytic``: f computes real results of real arguments by analytic
    functions that NumPy knows for complex numbers too; then the first order is also compared with a complex step,
    which has no cancellation. Cotangents of complex arguments follow the convention of JAX: df = Re(sum(ct * dz)).

    ``step`` and ``rtol`` are chosen by precision unless given. The message names the argument, the mode and the order.

    >>> check_grads(lambda x, y: np.sin(x) * y["scale"], (np.ones(3), {"scale": 2.0}), analytic=True)
    """
    unknown = set(modes) - MODES.keys()
    if unknown or not modes:
        raise LetirError(f"check_grads: modes are 'rev' and 'fwd', found {tuple(modes)}")
    point = point_of(f, tuple(args))
    rng = np.random.default_rng(seed)
    chosen = precision(point, rtol, step)
    check(point, order, tuple(modes), chosen, rng, analytic)


def point_of(f: Callable, args: tuple) -> Point:
    """``f`` as a function of its floating arguments in a row; those of a function are widened."""
    leaves, spec = flatten(args)
    accessors = optree.tree_accessors(args, namespace=NAMESPACE)
    names = [f"argument {a.codify('')[1:-1]}" if len(a) == 1 else f"argument {a.codify('')}" for a in accessors]
    places = [i for i, leaf in enumerate(leaves) if is_inexact(leaf)]
    if not places:
        raise LetirError("check_grads: no argument is floating or complex: there is no derivative to check")

    def flat(*given):
        filled = list(leaves)
        for i, arg in zip(places, given, strict=True):
            filled[i] = arg
        return tuple(out for out in flatten(f(*spec.unflatten(filled)))[0] if is_inexact(out))

    chosen = [leaves[i] if isinstance(f, Lambda) else widened(leaves[i]) for i in places]
    return Point(flat, tuple(chosen), tuple(names[i] for i in places))


def is_inexact(leaf) -> bool:
    """Whether it is a floating or complex array or number."""
    return leaf.dtype.kind in WIDE if hasattr(leaf, "dtype") else type(leaf) in (float, complex)


def widened(leaf):
    """An array in double precision; Python numbers as they are."""
    return leaf.astype(WIDE[leaf.dtype.kind]) if hasattr(leaf, "dtype") else leaf


def precision(point: Point, rtol: float | None, step: float | None) -> Precision:
    """What the coarsest dtype among the arguments and results allows."""
    found = [np.asarray(leaf).dtype for leaf in (*point.args, *point.f(*point.args))]
    eps = max(float(np.finfo(dtype).eps) for dtype in found)
    return Precision(max(1e-6, 50 * eps ** (2 / 3)) if rtol is None else rtol, eps ** (1 / 3) if step is None else step)


def check(point: Point, order: int, modes: tuple, precision: Precision, rng, analytic: bool = False) -> None:
    """Check the first derivatives at ``point`` and, through the programs of these, the higher ones."""
    if order < 1:
        return
    program = trace(point.f, *point.args)
    outs = point.f(*point.args)
    tangents = [direction(arg, rng) for arg in point.args]
    cts = [direction(out, rng) for out in outs]
    methods = [("central differences", central_difference, precision.rtol)]
    if analytic:
        methods.append(("a complex step", complex_step, 1e-10))
    for method, difference, rtol in methods:
        changes = [difference(point, i, tangents[i], precision.step) for i in range(len(tangents))]
        check_modes(point, program, modes, tangents, cts, changes, rtol, method)
    if len(modes) == 2:
        check_pairing(point, program, tangents, cts)
    for mode in modes:
        check(derivative(point, program, mode, tangents, cts), order - 1, modes, precision, rng)


def direction(leaf, rng):
    """Random numbers of the kind, dtype and shape of ``leaf``, of size about 1."""
    array = np.asarray(leaf)
    found = rng.uniform(0.5, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        found = found + 1j * rng.uniform(-1.0, 1.0, array.shape)
    return np.asarray(found, array.dtype)[()]


def paired(ct, tangent) -> float:
    """Re(sum(ct * tangent)): how much a result changes along ``tangent`` if ``ct`` is its cotangent."""
    return float(np.real(np.sum(np.asarray(ct) * np.asarray(tangent))))


# ---- differences ----


def moved(arg, change):
    """``arg + change`` in the dtype and kind of ``arg``; Python numbers stay Python numbers."""
    return type(arg)(arg + change) if type(arg) in (float, complex) else (arg + change).astype(arg.dtype)


def central_difference(point: Point, i: int, tangent, step: float) -> list[np.ndarray]:
    """How the results change along the tangent of argument ``i``."""
    ahead, behind = (
        point.f(*point.args[:i], moved(point.args[i], sign * step * tangent), *point.args[i + 1 :]) for sign in (1, -1)
    )
    with np.errstate(invalid="ignore"):  # infinite results do not change: their difference is no number
        return [(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in zip(ahead, behind, strict=True)]


def complex_step(point: Point, i: int, tangent, step: float) -> list[np.ndarray]:
    """The same by an imaginary step: nothing cancels.

    Squire and Trapp, Using complex variables to estimate derivatives of real functions, SIAM Review 40, 1998.
    """
    arg = point.args[i] + 1j * IMAGINARY_STEP * tangent
    return [np.imag(out) / IMAGINARY_STEP for out in point.f(*point.args[:i], arg, *point.args[i + 1 :])]


# ---- the laws ----


def check_modes(point, program, modes, tangents, cts, changes, rtol: float, method: str) -> None:
    """Compare both modes with ``changes``, how the results change along the tangent of each argument."""
    if "fwd" in modes:
        for i, name in enumerate(point.names):
            given = tuple(t if j == i else None for j, t in enumerate(tangents))
            found = jvp(program, point.args, given)[1]
            for expected, tangent in zip(changes[i], in_a_row(program, found), strict=True):
                compare(point, "fwd", name, expected, tangent, rtol, method)
    if "rev" in modes:
        cotangents = vjp(program, *point.args)[1](out_of_row(program, cts))
        for name, ct, tangent, change in zip(point.names, cotangents, tangents, changes, strict=True):
            expected = sum(paired(a, b) for a, b in zip(cts, change, strict=True))
            scale = sum(np.abs(paired_sizes(a, b)) for a, b in zip(cts, change, strict=True))
            compare(point, "rev", name, expected, paired(ct, tangent), rtol, method, scale)


def check_pairing(point, program, tangents, cts) -> None:
    """<ct, jvp(t)> = <vjp(ct), t>."""
    pushed = in_a_row(program, jvp(program, point.args, tuple(tangents))[1])
    pulled = vjp(program, *point.args)[1](out_of_row(program, cts))
    left = sum(paired(a, b) for a, b in zip(cts, pushed, strict=True))
    right = sum(paired(a, b) for a, b in zip(pulled, tangents, strict=True))
    scale = sum(paired_sizes(a, b) for a, b in zip(pulled, tangents, strict=True))
    rtol = 100 * max(float(np.finfo(np.asarray(x).dtype).eps) for x in (*tangents, *cts))
    compare(point, "rev", ", ".join(point.names), left, right, rtol, "<ct, jvp(t)> = <vjp(ct), t>", scale)


def paired_sizes(a, b) -> float:
    """The sum of the sizes of the products: what rounding errors are relative to."""
    return float(np.sum(np.abs(np.asarray(a) * np.asarray(b))))


def compare(point, mode: str, name: str, expected, found, rtol: float, method: str, scale: float = 0.0) -> None:
    """Raise the AssertionError that says which argument, mode and order is wrong; nan is equal to nan."""
    allowed = rtol * (1 + np.abs(expected) + scale)
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(expected - found) <= allowed) | (np.isnan(expected) & np.isnan(found)) | (expected == found))
    if not np.any(wrong):
        return
    at = tuple(np.argwhere(wrong)[0]) if np.ndim(wrong) else ()
    of = f" of {' of '.join(MODES[m] for m in reversed(point.path))}" if point.path else ""
    raise AssertionError(
        f"the derivative by {name} is wrong in {MODES[mode]}{of}, order {len(point.path) + 1}\n"
        f"  expected {np.broadcast_to(expected, np.shape(wrong))[at]!r} by {method}, got {np.asarray(found)[at]!r}"
    )


# ---- the next order ----


def derivative(point: Point, program: Lambda, mode: str, tangents, cts) -> Point:
    """The derivative in ``mode`` as a function of the directions and the arguments."""
    count = len(cts) if mode == "rev" else len(tangents)

    def backward(*args):
        found = vjp(program, *args[count:])[1](out_of_row(program, args[:count]))
        return tuple(ct for ct in found if ct is not None)

    def forward(*args):
        return tuple(in_a_row(program, jvp(program, args[count:], args[:count])[1]))

    what, directions = ("cotangent", cts) if mode == "rev" else ("tangent", tangents)
    names = (*(f"{what} {i}" for i in range(count)), *point.names)
    args = (*directions, *point.args)
    return Point(backward if mode == "rev" else forward, args, names, (*point.path, mode))


def in_a_row(program: Lambda, results) -> list:
    """The results of a program of arrays as a list, also where it is one."""
    return flatten(results)[0]


def out_of_row(program: Lambda, results):
    """Results in a row as the program nests them."""
    if program.out_tree is not None:
        return program.out_tree.unflatten(results)
    return results[0] if len(results) == 1 else tuple(results)
