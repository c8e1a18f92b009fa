"""``View``: a slice or a roll of an array, as the indices at which a kernel reads the array itself.

The element of ``x[1:-1, :-2]`` at (i, j) is the element of ``x`` at (i + 1, j), and that of
``np.roll(x, 1, 0)`` is the one at (i - 1, j), modulo the length of the axis. A kernel that reads
``x`` at these indices needs neither views nor copies of rolled arrays. ``View.in_loops`` translates
them to the loops of a kernel, to whose shape the view may be broadcast.
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, frozen

from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind

MAX_ROLL = 4  # elements that a kernel's operand may be rolled by along rows


@frozen
class AxisPlace:
    """The index along an axis of an array: ``start + step * i`` for the index ``i`` of a loop.

    ``loop``: the position of that loop; None if the index is always ``start``. ``wraps``: the index
    is taken modulo the length ``n`` of the axis, where ``-n < start < n``. ``fills``: the value is
    0 where the index is outside of the axis.
    """

    start: int
    loop: int | None = None
    step: int = 1
    wraps: bool = False
    fills: bool = False

    @property
    def is_within(self) -> bool:
        """Whether all indices are those of elements."""
        return not (self.wraps or self.fills)


Places = tuple[AxisPlace, ...]


@frozen
class View:
    """A view of an array by basic indices and rolls.

    ``shape``: of the view; ``places``: one for each axis of the array, whose ``loop`` is an axis of
    the view.
    """

    shape: tuple[int, ...]
    places: Places

    @classmethod
    def whole(cls, shape: tuple[int, ...]) -> "View":
        """The view of an array of this shape that is the array."""
        return cls(shape, tuple([AxisPlace(0, axis) for axis in range(len(shape))]))

    def item(self, item: Any) -> "View | None":
        """``self[item]``; None if it is not a view of this kind."""
        found = _places_of_item(item, self.shape)
        if found is None:
            return None
        shape, inner = found
        places = [_composed(place, inner) for place in self.places]
        return None if None in places else View(shape, tuple(places))  # type: ignore[arg-type]

    def rolled(self, shift: Any, axis: Any, base: tuple[int, ...]) -> "View | None":
        """``np.roll(self, shift, axis)``; None if it is not a view of this kind.

        ``base``: the shape of the array of which ``self`` is a view.
        """
        shifts = shift if type(shift) is tuple else (shift,)
        if axis is None and len(self.shape) != 1:
            return None
        axes = axis if type(axis) is tuple else (axis or 0,)
        places = list(self.places)
        for step, number in zip(shifts, axes, strict=True):
            loop = number % len(self.shape)
            for n, place in enumerate(places):
                if type(step) is not int or place.loop != loop:
                    continue
                is_whole = (place.start, place.step, base[n]) == (0, 1, self.shape[loop])
                if place.fills or not (place.wraps or is_whole):
                    return None
                places[n] = evolve(place, start=_remainder(place.start - step, base[n]), wraps=True)
        return evolve(self, places=tuple(places))

    def placed(self, item: Any, shape: tuple[int, ...]) -> "View | None":
        """Zeros of this shape with the view written at ``item``; None if it is not a view of this
        kind, or not a whole array.
        """
        found = _places_of_item(item, shape)
        if found is None or self != View.whole(self.shape) or found[0] != self.shape:
            return None
        if any(place.loop is None or place.step != 1 for place in found[1]):
            return None
        lengths = zip(self.shape, shape, strict=True)
        fills = [n < whole for n, whole in lengths]
        places = zip(found[1], fills, strict=True)
        return View(shape, tuple([AxisPlace(-p.start, p.loop, fills=x) for p, x in places]))

    def in_loops(self, loops: Sequence[int]) -> Places:
        """The places in loops over a result of these lengths, to which the view is broadcast."""
        ahead = len(loops) - len(self.shape)
        result = []
        for place in self.places:
            if place.loop is not None:
                is_broadcast = self.shape[place.loop] != loops[ahead + place.loop]
                loop = None if is_broadcast else ahead + place.loop
                place = evolve(place, loop=loop)  # noqa: PLW2901
            result.append(place)
        return tuple(result)


def _remainder(start: int, length: int) -> int:
    """The number nearest to 0 that is equal to ``start`` modulo the length of an axis."""
    start %= max(length, 1)  # an axis without elements has no indices
    return start - length if 2 * start > length else start


def _composed(place: AxisPlace, inner: Sequence[AxisPlace]) -> AxisPlace | None:
    """The place of a view of a view, whose places are ``inner``."""
    if place.loop is None:
        return place
    other = inner[place.loop]
    if not place.is_within and (other.step, other.loop is None) != (1, False):
        return None
    start = place.start + place.step * other.start
    return evolve(place, start=start, loop=other.loop, step=place.step * other.step)


def _places_of_item(item: Any, shape: tuple[int, ...]) -> tuple[tuple, list[AxisPlace]] | None:
    """(the shape of ``x[item]``, the place for each axis of ``x``), for basic indices with
    steps forward; None for others.
    """
    entries = _entries(item)
    named = [entry for entry in entries if entry is not None and entry is not ...]
    missing = len(shape) - len(named)
    if missing < 0 or entries.count(...) > 1:
        return None
    if ... not in entries:
        entries = (*entries, ...)
    result: list[int] = []
    places: list[AxisPlace] = []
    for entry in entries:
        if entry is ...:
            for n in shape[len(places) : len(places) + missing]:
                places.append(AxisPlace(0, len(result)))
                result.append(n)
        elif entry is None:
            result.append(1)
        elif type(entry) is slice:
            numbers = (entry.start, entry.stop, entry.step)
            if any(x is not None and type(x) is not int for x in numbers):
                return None
            start, stop, step = entry.indices(shape[len(places)])
            count = len(range(start, stop, step))
            if step < 0 or not count:
                return None
            places.append(AxisPlace(start, len(result), step))
            result.append(count)
        elif type(entry) is int:
            n = shape[len(places)]
            if not -n <= entry < n:
                return None
            places.append(AxisPlace(entry % n))
        else:
            return None
    return tuple(result), places


def find_view(arg: Any, definition: Callable[[Any], Bind | None]) -> tuple[Any, View] | None:
    """(array, view): the array of which a value is a view by slices and rolls.

    ``definition(value)`` is the bind that computes a value, or None. For a value that is not such a
    view, the array is the value itself. None if a shape is not known.
    """
    steps: list[Bind] = []
    while (bind := definition(arg)) is not None and _may_shift(bind):
        steps.append(bind)
        arg = bind.args[0]
    shape = getattr(arg.type, "shape", None)
    if shape is None or not is_static_shape(shape):
        return None
    base, view = arg, View.whole(shape)
    for bind in reversed(steps):
        further = _further(view, bind, base.type.shape)
        if further is None:  # the value is an array of its own
            base, view = bind.binders[0], View.whole(bind.binders[0].type.shape)
        else:
            view = further
    return base, view


def _may_shift(bind: Bind) -> bool:
    """Whether the result of a bind may be a view of its operand by slices or rolls."""
    if len(bind.args) != 1 or len(bind.binders) != 1:
        return False
    avals = [bind.args[0].type, bind.binders[0].type]
    if any(not is_static_shape(getattr(aval, "shape", (None,))) for aval in avals):
        return False
    # a row is read by NumPy's view, so that the steps of a loop over rows share a kernel
    is_slice = bind.op.role == "index" and int not in map(type, _entries(bind.attrs["item"]))
    return is_slice or _is_roll(bind) or is_placed_part(bind)


def _entries(item: Any) -> tuple:
    """The entries of an index."""
    return item if type(item) is tuple else (item,)


def is_placed_part(bind: Bind) -> bool:
    """Whether a bind writes one array into zeros, at basic indices."""
    if bind.op.adds_parts != "zeros" or len(bind.args) != 1 or len(bind.attrs["items"]) != 1:
        return False
    part, whole = bind.args[0].type, bind.binders[0].type
    if not all(is_static_shape(getattr(aval, "shape", (None,))) for aval in (part, whole)):
        return False
    view = View.whole(part.shape).placed(bind.attrs["items"][0], whole.shape)
    ends = view.places[-1:] if view is not None else ()
    near = [max(-p.start, p.start + whole.shape[-1] - part.shape[-1]) for p in ends]
    return part.dtype == whole.dtype and bool(near) and near[0] <= MAX_ROLL


def _is_roll(bind: Bind) -> bool:
    """Whether a bind is ``np.roll`` with known shifts."""
    return bind.op.role == "roll" and len(bind.args) == 1


def is_near_roll(bind: Bind) -> bool:
    """Whether a bind rolls an array of known sizes, by few elements along the last axis."""
    if not (_is_roll(bind) and _may_shift(bind)):
        return False
    shape = bind.args[0].type.shape
    view = View.whole(shape).rolled(bind.attrs["shift"], bind.attrs["axis"], shape)
    return view is not None and bool(shape) and abs(view.places[-1].start) <= MAX_ROLL


def _further(view: View, bind: Bind, base: tuple[int, ...]) -> View | None:
    """The view that a bind makes of a view of an array of the shape ``base``."""
    if _is_roll(bind):
        return view.rolled(bind.attrs["shift"], bind.attrs["axis"], base)
    if bind.op.role != "index":
        return view.placed(bind.attrs["items"][0], bind.binders[0].type.shape)
    return view.item(bind.attrs["item"])
