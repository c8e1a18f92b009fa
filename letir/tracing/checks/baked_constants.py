"""``refuse_baked``, for ``trace(..., check=True)``: record again, and compare the programs.

For the same values, the programs differ if the function reads state that changes between calls: a
counter, the clock, random numbers. For other values they differ if a number was baked into the
program. The comparison ends at a guard with another answer, because the paths differ from there on
[semantics.md B2].
"""

import copy
from collections.abc import Callable, Iterator

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.process_state import float_errors
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ShapeDtype
from letir.errors import TraceError
from letir.eval.arguments import unflatten_arguments
from letir.eval.array_modules import is_array
from letir.tracing.checks.object_arguments import flatten_objects

_MAX_LEAVES = 16  # leaves that are perturbed one by one
_MAX_LINES = 24  # lines of the two programs in a message
_AT_SAME_VALUES = (
    "recorded a second time, at the same values, the function gives another program",
    "it reads what changes between calls: a counter, the clock, random numbers, the id of an "
    "object\n  make that an argument",
)
_AT_OTHER_VALUES = (
    "recorded at other values, the function gives another program",
    "a value of its arguments is in the program as a number: compute with the traced value, or\n"
    "  take letir.concrete(x), which records a guard",
)


def refuse_baked(fn: Lambda, leaves: list, again: Callable[[list], Lambda]) -> None:
    """Raise TraceError if ``again``, at these or at perturbed leaves, records another program."""
    _compare_programs(fn, again(leaves), _AT_SAME_VALUES)
    for changed in _perturbed_arguments(leaves):
        try:
            other = again(changed)
        except Exception:
            continue
        _compare_programs(fn, other, _AT_OTHER_VALUES)


def refuse_another_result(f: Callable, fn: Lambda, args: tuple, kwargs: dict) -> None:
    """Raise TraceError unless the results of the program and the function agree up to rounding.

    They differ if the function uses something that a recording cannot see: ``x is y``, ``str(x)``.
    """
    leaves, spec = flatten_objects((args, kwargs))
    if any(isinstance(leaf, ShapeDtype) for leaf in leaves):
        return

    def results_of(call: Callable) -> list:
        # on copies: both may write into their arguments, or draw from generators
        own_args, own_kwargs = unflatten_arguments(spec, [*map(_copy_leaf, leaves)])
        return flatten_objects(call(*own_args, **own_kwargs))[0]

    expected, results = results_of(f), results_of(fn)
    alike = len(expected) == len(results) and all(map(_results_agree, expected, results))
    if not alike:
        raise TraceError(
            "check: the program and the function give different results\n"
            f"  the function: {expected!r:.300}\n  the program:  {results!r:.300}\n"
            "  it reads what a recording cannot see: the type, "
            "identity or text of an argument\n"
            "  use isinstance(x, numpy.ndarray), which answers as for an array"
        )


def _copy_leaf(leaf):
    """A copy of an array, a set or a random generator; other values unchanged."""
    # recognised by its attribute, because NumPy loads ``numpy.random`` only on use
    is_changeable = isinstance(leaf, np.ndarray | set) or hasattr(leaf, "bit_generator")
    return copy.deepcopy(leaf) if is_changeable else leaf


def _results_agree(expected, result) -> bool:
    """Whether two arrays agree up to rounding; results that are not arrays always agree."""
    if not is_array(expected) or not is_array(result):
        return True
    rtol = 1e3 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0.0
    return np.shape(expected) == np.shape(result) and np.allclose(
        expected, result, rtol=rtol, atol=rtol, equal_nan=expected.dtype.kind in "fc"
    )


def _perturbed_arguments(leaves: list) -> Iterator[list]:
    """The arguments with all values perturbed, then with one argument perturbed at a time."""
    random = np.random.default_rng(0)
    new = [_nearby_values(leaf, random) for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if new[i] is not leaf]
    if places:
        yield new
    # if all perturbations together change a guard, a single one may not
    for i in places[:_MAX_LEAVES] if len(places) > 1 else ():
        yield [*leaves[:i], new[i], *leaves[i + 1 :]]


def _nearby_values(leaf, random: "np.random.Generator"):
    """Other values of the same type: perturbed floats, permuted or neighbouring integers.

    The leaf itself if no other values are certainly valid.
    """
    if type(leaf) in PYTHON_NUMBERS:
        return (
            leaf ^ 1 if type(leaf) is int else type(leaf)(_nearby_values(np.asarray(leaf), random))
        )
    if isinstance(leaf, Value) or not is_array(leaf) or leaf.dtype.kind not in "biufc":
        return leaf
    if leaf.dtype.kind in "biu":
        if not leaf.ndim:
            return leaf ^ leaf.dtype.type(1)
        other = np.roll(leaf, 1)  # indices and labels stay in bounds
        return leaf if np.array_equal(other, leaf) else other
    step = max(1e-3, 8 * float(np.finfo(leaf.dtype).eps))
    with float_errors(all="ignore"):
        other = leaf * (1 + step * random.uniform(0.5, 1.0, leaf.shape)).astype(leaf.dtype)
        other = np.where(leaf == 0, step, other).astype(leaf.dtype)
    return other if leaf.ndim or type(leaf) is np.ndarray else other[()]


# ---- comparison ----


def _compare_programs(f: Lambda, g: Lambda, why: tuple[str, str]) -> None:
    """Raise TraceError with the first different bind, unless a guard differs before it."""
    pairs: dict[Local, Local] = dict(zip(f.params, g.params, strict=False))
    for i, (a, b) in enumerate(zip(f.binds, g.binds, strict=False)):
        if not _binds_agree(a, b, pairs):
            if not _is_guarded(f, g, i):
                raise _baked_constant_error(f, g, a, why)
            return
        pairs.update(zip(a.binders, b.binders, strict=True))
    if len(f) != len(g):
        longer = f if len(f) > len(g) else g
        raise _baked_constant_error(f, g, longer.binds[min(len(f), len(g))], why)
    if not _operands_agree(f.ret.args, g.ret.args, pairs) or f.out_tree != g.out_tree:
        raise _baked_constant_error(f, g, None, why)


def _binds_agree(a: Bind, b: Bind, pairs: dict[Local, Local]) -> bool:
    """Whether two binds are equal and have corresponding operands."""
    types = [x.type is y.type for x, y in zip(a.binders, b.binders, strict=False)]
    same = a.op is b.op and a.attrs == b.attrs and len(a.binders) == len(b.binders)
    return same and all(types) and _operands_agree(a.args, b.args, pairs)


def _operands_agree(
    left: tuple[Arg, ...], right: tuple[Arg, ...], pairs: dict[Local, Local]
) -> bool:
    """Whether operands correspond."""
    return len(left) == len(right) and all(
        y == x if type(x) is Const else pairs.get(x) is y for x, y in zip(left, right, strict=True)
    )


def _is_guarded(f: Lambda, g: Lambda, i: int) -> bool:
    """Whether the different binds at ``i`` are guards, or have a result that the next binds guard,
    such as the number of elements selected by ``nonzero``.
    """
    a, b = f.binds[i], g.binds[i]
    if "guard_raised" in (a.op.role, b.op.role):  # one raised, the other did not
        return True
    if a.op is not b.op or not a.binders:
        return a.op is b.op and a.op.role == "guard"
    return all(
        len(h) > i + 1
        and h.binds[i + 1].op.role == "guard"
        and h.binds[i + 1].args[0] in h.binds[i].binders
        for h in (f, g)
    )


def _baked_constant_error(
    f: Lambda, g: Lambda, bind: Bind | None, why: tuple[str, str]
) -> TraceError:
    """The error that shows the different bind, and both programs around it."""
    problem, remedy = why
    at = f"\n  at {bind.source}: {bind.source.excerpt}" if bind is not None and bind.source else ""
    lines = str(LATE_BOUND["diff"](f, g)).splitlines()
    shown = "\n".join([f"    {line}" for line in lines[:_MAX_LINES]])
    more = f"\n    ... {len(lines) - _MAX_LINES} more lines" if len(lines) > _MAX_LINES else ""
    return TraceError(f"check: {problem}{at}\n{shown}{more}\n  {remedy}")


LATE_BOUND.update(refuse_baked=refuse_baked, refuse_another_result=refuse_another_result)
