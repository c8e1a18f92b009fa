"""Plans for symbolic sizes, which an executor tries when the same rank comes with a second size
[semantics.md B10].

The sizes that differ become symbols, equal sizes the same symbol, and the function is recorded for
them. A comparison of a size is recorded as a guard. If Python needs a symbolic size as an integer,
as ``range`` does, there is no such plan, only one for each size. Sizes 0 and 1 always have separate
plans, because they broadcast and reduce differently. A symbolic size is written as ``n0+2``, so
that it is known to be at least 2.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.process_state import float_errors
from letir.ast.sizes.size import Size
from letir.ast.sizes.size_reads import SIZE_READS, SizeReads
from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.eval.arguments import fits_type, sizes_of
from letir.executor.argument_spec import ArgumentSpec
from letir.plan.effect_log import is_guard
from letir.plan.plan import plan_of

_LOG = logging.getLogger("letir.plan")
_MIN_SIZE = 2  # the smallest value of a symbolic size
_MAX_REFUSED = 3  # failed attempts for one function and rank
_MAX_TRIED = 8  # with retries for larger sizes


class NoSymbolicProgram(LetirError):
    """Raised if the function has no program for these symbolic sizes.

    ``least``: for each name, the least value for which there may be such a program.
    """

    def __init__(self, reason: str, least: dict[str, int] | None = None) -> None:
        super().__init__(reason)
        self.least = least or {}


@define(eq=False)
class _Family:
    """Arguments that differ only in sizes: the first spec seen, and the specs with symbols."""

    first: ArgumentSpec
    named: tuple[ArgumentSpec, ...] = ()
    refused: dict[ArgumentSpec, str] = field(factory=dict)  # spec with symbols -> the reason
    retries: list[ArgumentSpec] = field(factory=list)  # specs with symbols, for larger sizes


class ShapeFamilies:
    """The shape families of one executor.

    ``static_shapes``: True never uses symbolic sizes, False uses them from the first call, None
    from the second size on.
    """

    def __init__(self, static_shapes: bool | None, max_families: int):
        self.static_shapes, self.max_families = static_shapes, max_families
        self.families: dict[ArgumentSpec, _Family] = {}

    def family_of(self, spec: ArgumentSpec) -> _Family:
        """The family of a spec, created if it is new."""
        if len(self.families) >= self.max_families:
            self.families.clear()
        return self.families.setdefault(_rank_of(spec), _Family(spec))

    def named(self, spec: ArgumentSpec) -> ArgumentSpec | None:
        """A symbolic spec that covers this spec or is worth trying; None if there is none."""
        if self.static_shapes or any(spec.requires_grad):
            return None
        if not all(array.contiguous for array in spec.arrays):
            return None
        family = self.family_of(spec)
        candidates = (*family.named, *family.retries)
        result = next((named for named in candidates if _fits_symbols(named, spec)), None)
        if result is not None or (family.first == spec and self.static_shapes is None):
            return result
        proposal = _propose_symbols(family.first, spec)
        if proposal is None:
            family.first = spec  # the previous spec had sizes too small for symbols
        is_new = proposal not in family.refused and len(family.refused) < _MAX_REFUSED
        return proposal if is_new else None

    def remember_plan(self, spec: ArgumentSpec, named: ArgumentSpec) -> None:
        """Remember that there is a plan for this symbolic spec."""
        family = self.family_of(spec)
        if named not in family.named:
            family.named = (named, *family.named)

    def why_not(self, spec: ArgumentSpec, with_plans: Iterable[Any]) -> str:
        """The reason why this spec has no plan for all sizes; empty if it may get one.

        ``with_plans``: the specs that have plans, among them those of other sizes.
        """
        family = self.family_of(spec)
        reason, rank = next(reversed(family.refused.values()), ""), _rank_of(spec)
        if reason or all(other == spec or _rank_of(other) != rank for other in with_plans):
            return reason
        if self.static_shapes:
            return "static_shapes=True"
        if any(spec.requires_grad):
            return "an argument requires grad"
        return "" if all(a.contiguous for a in spec.arrays) else "an argument is not contiguous"

    def note_refusal(
        self, spec: ArgumentSpec, named: ArgumentSpec, reason: NoSymbolicProgram, text: str
    ) -> None:
        """Remember that there is no plan for this symbolic spec, and why."""
        family = self.family_of(spec)
        family.refused[named] = text
        retries = [retry for retry in family.retries if retry != named]
        larger = _from_least(named, reason.least)
        if larger is not None and larger not in family.refused and len(family.refused) < _MAX_TRIED:
            retries.append(larger)  # for this spec, or for larger ones that come later
        family.retries = retries
        _LOG.debug("no plan for (%s): %s", named, reason)


def _rank_of(spec: ArgumentSpec) -> ArgumentSpec:
    """The spec with one size in place of all."""
    return spec.with_arrays([s.with_shape((_MIN_SIZE,) * s.aval.ndim) for s in spec.arrays])


def _propose_symbols(first: ArgumentSpec, second: ArgumentSpec) -> ArgumentSpec | None:
    """A spec with symbols for the sizes in which two specs differ, for all sizes if they are equal.

    None if one of these sizes is too small.
    """
    names: dict[tuple[int, int], Size] = {}
    same, arrays = first == second, []
    for a, b in zip(first.arrays, second.arrays, strict=True):
        shape: list = []
        for n, m in zip(a.aval.shape, b.aval.shape, strict=True):
            if n == m and not same:
                shape.append(n)
            elif min(n, m) < _MIN_SIZE:
                if not same:
                    return None
                shape.append(n)
            else:
                shape.append(names.setdefault((n, m), Size.named(f"n{len(names)}") + _MIN_SIZE))
        arrays.append(a.with_shape(tuple(shape)))
    return first.with_arrays(arrays) if names else None


def _fits_symbols(named: ArgumentSpec, spec: ArgumentSpec) -> bool:
    """Whether the sizes of a spec fit a symbolic spec."""
    pairs = [(a.aval, b.aval) for a, b in zip(named.arrays, spec.arrays, strict=True)]
    sizes = sizes_of(pairs)
    return all(fits_type(b, a, sizes) for a, b in pairs)


def _from_least(named: ArgumentSpec, least: dict[str, int]) -> ArgumentSpec | None:
    """The spec for sizes whose names have at least these values."""
    if not least:
        return None
    larger = {name: Size.named(name) + n for name, n in least.items()}
    return named.with_arrays(
        [
            array.with_shape(
                tuple([n.substitute(larger) if type(n) is Size else n for n in array.aval.shape])
            )
            for array in named.arrays
        ]
    )


def record_for_symbols(record: Callable, named: ArgumentSpec) -> Lambda:
    """The result of ``record(types)`` for arguments with symbolic sizes.

    Raises NoSymbolicProgram if the function needs one of these sizes as a number, for any purpose.
    """
    needed: list[str] = []

    def note(place: str, number: str, is_decided: bool) -> None:
        if not is_decided:
            needed.append(f"{place} needs {number}")

    reads = SizeReads(note, is_guarded=True)
    before = SIZE_READS.set(reads)
    try:
        fn = record([spec.aval for spec in named.arrays])
    except Exception as error:  # any kind: the same call with fixed sizes will raise it if real
        reason = needed[0] if needed else f"{type(error).__name__}: {error}"
        raise NoSymbolicProgram(reason, reads.least) from None
    finally:
        SIZE_READS.reset(before)
    if needed:
        raise NoSymbolicProgram(needed[0])
    if len(fn.params) > len(named.arrays):
        raise NoSymbolicProgram("it draws from a generator that is not an argument")
    return fn


def check_agrees(named: Lambda, fixed: Lambda, leaves: Sequence) -> None:
    """Raise NoSymbolicProgram unless ``named`` agrees with ``fixed`` on these arrays."""
    binds = (*named.binds, *fixed.binds)
    if any(has_effect(bind) and not is_guard(bind) for bind in binds):
        return
    try:
        with float_errors(all="ignore"):
            results, expected = plan_of(named).run(list(leaves)), plan_of(fixed).run(list(leaves))
    except Exception as error:  # the plan for the fixed sizes will raise it if it is real
        raise NoSymbolicProgram(f"{type(error).__name__}: {error}") from None
    if named.out_tree != fixed.out_tree or len(results) != len(expected):
        raise NoSymbolicProgram("its results nest differently for other sizes")
    if not all(map(_agree_up_to_rounding, results, expected)):
        raise NoSymbolicProgram("its program for symbolic sizes gives different results")


def _agree_up_to_rounding(a, b) -> bool:
    """Whether two results agree up to the rounding of reassociated sums."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    with float_errors(all="ignore"):
        loose = float(np.finfo(a.dtype).eps) ** 0.5
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        return bool(np.allclose(a, b, loose, loose * scale, equal_nan=True))
