"""Plans for sizes that have names: what an executor tries when the same rank comes with a second
size [F1, B10].

The sizes that differ get names, equal ones the same name, and the function is recorded abstractly.
Where it asks for such a size in a way that would fix it there is no such plan, only one for each
size. Sizes of 0 and 1, which broadcast and reduce in their own ways, always have their own.
"""

import logging
from collections.abc import Callable, Sequence

import numpy as np
from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.terms import Lambda
from letir.ast.types import SIZE_READS, Size
from letir.errors import LetirError
from letir.eval.arguments import fits, sizes_of
from letir.executor.argument_spec import ArgumentSpec
from letir.plan.plan import plan_of

_LOG = logging.getLogger("letir.plan")
_LEAST = 2  # a size that a named one may be
_MOST_REFUSED = 3  # attempts for one function and rank


class NotNamed(LetirError):
    """The function has no program for named sizes."""


@define(eq=False)
class _Family:
    """Arguments that differ in their sizes only: the first that came, and the specs with names."""

    first: ArgumentSpec
    named: tuple[ArgumentSpec, ...] = ()
    refused: dict[ArgumentSpec, str] = field(factory=dict)  # and why


class ShapeFamilies:
    """The families of one executor. ``static_shapes``: True for no names at all, False for names
    from the first call on, None from the second size on.
    """

    def __init__(self, static_shapes: bool | None, most: int):
        self.static_shapes, self.most = static_shapes, most
        self.families: dict[ArgumentSpec, _Family] = {}

    def family(self, spec: ArgumentSpec) -> _Family:
        """The family of a spec, which may be its first."""
        if len(self.families) >= self.most:
            self.families.clear()
        rank = spec.with_arrays([s.with_shape((_LEAST,) * s.kind.ndim) for s in spec.arrays])
        return self.families.setdefault(rank, _Family(spec))

    def named(self, spec: ArgumentSpec) -> ArgumentSpec | None:
        """The spec with names that serves this one, or may be tried; None if there is none."""
        if self.static_shapes or any(spec.requires_grad):
            return None
        if not all(array.contiguous for array in spec.arrays):
            return None
        family = self.family(spec)
        found = next((named for named in family.named if _serves(named, spec)), None)
        if found is not None or (family.first == spec and self.static_shapes is None):
            return found
        proposal = _proposed(family.first, spec)
        if proposal is None:
            family.first = spec  # that was too small for names
        is_new = proposal not in family.refused and len(family.refused) < _MOST_REFUSED
        return proposal if is_new else None

    def keep(self, spec: ArgumentSpec, named: ArgumentSpec) -> None:
        """Remember that there is a plan for these names."""
        family = self.family(spec)
        if named not in family.named:
            family.named = (named, *family.named)

    def refuse(self, spec: ArgumentSpec, named: ArgumentSpec, reason: str) -> None:
        """Remember that there is none, and why."""
        self.family(spec).refused[named] = reason
        _LOG.debug("no plan for (%s): %s", named, reason)


def _proposed(first: ArgumentSpec, second: ArgumentSpec) -> ArgumentSpec | None:
    """A spec with names for the sizes in which two differ (for all sizes if they do in none): that
    of both. None if one of these is too small to have one.
    """
    names: dict[tuple[int, int], Size] = {}
    same, arrays = first == second, []
    for a, b in zip(first.arrays, second.arrays, strict=True):
        shape: list = []
        for n, m in zip(a.kind.shape, b.kind.shape, strict=True):
            if n == m and not same:
                shape.append(n)
            elif min(n, m) < _LEAST:
                if not same:
                    return None
                shape.append(n)
            else:
                shape.append(names.setdefault((n, m), Size.named(f"n{len(names)}")))
        arrays.append(a.with_shape(tuple(shape)))
    return first.with_arrays(arrays) if names else None


def _serves(named: ArgumentSpec, spec: ArgumentSpec) -> bool:
    """Whether a spec has the sizes that another one has names for."""
    pairs = [(a.kind, b.kind) for a, b in zip(named.arrays, spec.arrays, strict=True)]
    sizes = sizes_of(pairs)
    return all(n >= _LEAST for n in sizes.values()) and all(fits(b, a, sizes) for a, b in pairs)


def recorded_by_name(record: Callable, named: ArgumentSpec) -> Lambda:
    """What ``record(types)`` gives for arguments with named sizes. Raises NotNamed if the function
    asks for one of them, whatever it does with the answer.
    """
    reads: list = []
    before = SIZE_READS.set(lambda place, *_: reads.append(place))
    try:
        fn = record([spec.kind for spec in named.arrays])
    except Exception as error:  # of whatever kind: the same call with its sizes known will say
        raise NotNamed(f"{type(error).__name__}: {error}") from None
    finally:
        SIZE_READS.reset(before)
    if reads:
        raise NotNamed(f"{reads[0]} asks for a size")
    return fn


def check_agrees(named: Lambda, fixed: Lambda, leaves: Sequence) -> None:
    """Raise NotNamed unless a program with names gives what the one for these arrays gives."""
    if any(map(has_effect, (*named.binds, *fixed.binds))):
        return
    try:
        with np.errstate(all="ignore"):
            found, expected = plan_of(named).run(list(leaves)), plan_of(fixed).run(list(leaves))
    except Exception as error:  # the call itself will say so, by the plan for its sizes
        raise NotNamed(f"{type(error).__name__}: {error}") from None
    if named.out_tree != fixed.out_tree or len(found) != len(expected):
        raise NotNamed("its results nest in another way for other sizes")
    if not all(map(_agree, found, expected)):
        raise NotNamed("its program for named sizes gives other results")


def _agree(a, b) -> bool:
    """Whether two results are the same but for the order of sums."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        loose = float(np.finfo(a.dtype).eps) ** 0.5
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        return bool(np.allclose(a, b, loose, loose * scale, equal_nan=True))
