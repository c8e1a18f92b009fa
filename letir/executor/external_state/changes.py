"""State that a function changes outside of itself, as by ``self.n += 1`` or a global iterator.

A plan would repeat the values that this state had while the function was recorded. Functions here
find such changes, undo them, and decide whether the executor has to call the function as Python.
"""

import logging
import random
from array import array
from collections import deque
from collections.abc import Callable
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import PLAIN_TYPES
from letir.ast.builder import Value
from letir.ast.terms import Lambda
from letir.errors import TraceError
from letir.executor.active_recordings import ActiveRecording, Pause
from letir.executor.calls import executor_name
from letir.executor.external_state.earlier_changes import (
    are_changed_again,
    items_by_name,
    new_changes,
)
from letir.executor.external_state.iterators import (
    GeneratorPosition,
    ReadsOwnChanges,
    is_same,
    run_watching_iterators,
)
from letir.executor.plan_making import (
    Globals,
    Slots,
    captured_state,
    contents_of,
    is_generator,
    is_unchanged,
    record_function,
)
from letir.tracing.mutation.buffers import Buffer
from letir.tracing.trace_state import ABSENT

T = TypeVar("T")
_LOG = logging.getLogger("letir.plan")
_FIXED = (type, ModuleType, BuiltinFunctionType, np.ndarray, np.generic, np.dtype, np.ufunc)
_ANOTHER = "letir's other key"


def require_same_state(f: Callable, again: Callable[[], T], refusal: str) -> T:
    """The result of ``again()``, which calls ``f`` a second time.

    Raises TraceError with the text ``refusal`` if ``f`` changes state outside of itself: the first
    call must have changed it, too.
    """
    iterators, holders, is_all = captured_state([f])
    generators = [np.random.mtrand._rand, random._inst]  # type: ignore[attr-defined]
    holders += [x for x in generators if all(x is not holder for holder in holders)]
    before = [contents_of(holder) for holder in holders]
    done, has_taken = run_watching_iterators(iterators, again)
    is_same = all(map(is_unchanged, holders, before)) and all(map(_has_position, holders, before))
    if is_all and is_same and not has_taken:
        return done
    restore_state(holders, before, generators=True)
    raise TraceError(refusal) from None


def _has_position(holder: Any, earlier: Any) -> bool:
    """Whether a random generator has the state that it had; True for other objects."""
    if type(earlier) is not GeneratorPosition:
        return True
    return repr(GeneratorPosition(holder).state) == repr(earlier.state)


# ---- variables, attributes and containers ----


class ReadStateChanged(ReadsOwnChanges):
    """Raised for a function that changes what it reads: its other plans have read it, too."""

    letir_drops_plans = True


class OtherPlansRead(ReadsOwnChanges):
    """Raised for a function that changes what its other plans may read: they are made again."""

    letir_drops_plans = True


def refuse_changes_of(recording: ActiveRecording, *state: Any) -> bool:
    """``refuse_changes(*state)``, unless another thread, which may change state, records, too.

    Returns False if the recording has changed an array of which there is no copy.
    """
    with Pause():
        if recording.is_alone():
            if not are_restorable(*state[2:4]):
                return False
            refuse_changes(*state)
    return True


def refuse_changes(
    executor: Any, marked: tuple[tuple, dict], holders: list, before: list, fn: Lambda | None
) -> None:
    """Raise ``ReadStateChanged`` if the function's program depends on the ``holders`` that the
    function changed, now or in an earlier recording, or if it leaves traced values or new objects
    in one of them.

    The executor then calls the function as Python, for this call; after a second such recording,
    for all calls. It also calls a function that changes the holders each time, such as a counter.
    ``fn`` is the program recorded for the arguments ``marked``. The program depends on the holders
    if recording the function again gives another one, or if it reads a number that the function
    changes. An array among them matters in any case: a plan would not write into it. The holders
    then get back what they held ``before``; otherwise they keep what they hold now. Raises
    ``OtherPlansRead`` if other plans were recorded before the function first changed the holders.
    """
    now = [contents_of(holder) for holder in holders]
    matters, repeats = True, False
    try:
        matters, repeats = _depends_on_changes(executor, marked, (holders, before, now), fn)
        _put_back(holders, now)
        if executor.earlier_changes and not matters and fn is not None:
            matters = _depends_on_earlier(executor, marked, fn)
    except Exception:  # the function reads a value of the first recording, which has ended
        pass
    finally:
        _put_back(holders, before if matters else now)
    if matters:
        executor.changed_state += 1
        # only from the second time on: a first call may fill a cache with traced values, which
        # the Python function replaces by arrays
        executor.runs_python |= executor.changed_state > 1
        _LOG.info("%s: called as Python, it changes what it reads", executor_name(executor.f))
        raise ReadStateChanged
    if are_changed_again(executor.earlier_changes, holders, before, now):
        executor.runs_python = repeats = True
        executor.cache.clear()
    if repeats:
        LATE_BOUND["raise_has_effects"](executor, "it counts its calls outside", holders, before)
    new = new_changes(executor.earlier_changes, holders, before, now)
    executor.earlier_changes = [*executor.earlier_changes, *new]
    if new and any(entry.plans for entry in list(executor.cache.entries.values())):
        _put_back(holders, before)
        _LOG.info("%s: its plans may read what it changes", executor_name(executor.f))
        raise OtherPlansRead


def _depends_on_changes(
    executor: Any, marked: tuple[tuple, dict], state: tuple, fn: Lambda | None
) -> tuple[bool, bool]:
    """(whether the program ``fn`` depends on what its recording has changed, whether a second one
    changes it again). ``state``: the objects, what they held before the recording, and hold now.
    """
    holders, before, now = state
    if all(map(is_unchanged, holders, before)):
        return False, False
    matters = (
        _keeps_new_objects(now, before)
        or _writes_into_arrays(holders, before)
        or record_function(executor.f, marked)[0] != fn
    )
    repeats = not all(map(is_unchanged, holders, now))  # else it has filled a cache
    restore_state(holders, now)
    matters = matters or _depends_on_numbers(executor.f, marked, holders, before)
    if not matters and fn is not None:
        restore_state(holders, now)
        matters = _depends_on_members(executor.f, marked, holders, before, fn)
    return matters, repeats


def _depends_on_earlier(executor: Any, marked: tuple[tuple, dict], fn: Lambda) -> bool:
    """Whether the program ``fn`` depends on what earlier recordings have changed.

    They had other arguments: ``if n < 0: self.failures += 1`` and ``return x / self.failures``.
    """
    f, changes = executor.f, executor.earlier_changes
    holders = [change.holder for change in changes]
    now, old = [contents_of(h) for h in holders], [change.contents_before() for change in changes]
    try:
        _put_back(holders, old)
        if record_function(f, marked)[0] != fn:
            return True
        _put_back(holders, now)
        if _depends_on_numbers(f, marked, holders, old):
            return True
        _put_back(holders, now)
        return _depends_on_members(f, marked, holders, old, fn)
    finally:
        _put_back(holders, now)


def _keeps_new_objects(now: list, before: list) -> bool:
    """Whether traced values or new objects are in places that had others before, as after
    ``self.x = x``, ``losses.append(loss)`` or ``self.queue = deque()``: a plan would leave what the
    first call has stored there.
    """
    for contents, old in zip(now, before, strict=True):
        items, earlier = items_by_name(contents), items_by_name(old)
        new = [value for key, value in items.items() if earlier.get(key, earlier) is not value]
        if not all(map(_is_fixed, new)):
            return True
    return False


def _writes_into_arrays(holders: list, before: list) -> bool:
    """Whether an array has other elements than before."""
    return any(
        isinstance(holder, np.ndarray) and not is_unchanged(holder, old)
        for holder, old in zip(holders, before, strict=True)
    )


def _is_fixed(value: Any) -> bool:
    """Whether a value is not traced, and nothing in it changes but the elements of arrays."""
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return all(map(_is_fixed, value))
    if issubclass(kind, Value):  # an array that the function has made depends on no argument
        return kind is Buffer and value.held_value is not ABSENT
    if kind is FunctionType:
        return not value.__closure__
    return kind in PLAIN_TYPES or issubclass(kind, _FIXED) or is_generator(kind)


def _depends_on_members(
    f: Callable, marked: tuple[tuple, dict], holders: list, before: list, fn: Lambda
) -> bool:
    """Whether the program ``fn`` of ``f`` depends on other keys of the dicts, or members of the
    sets and lists, to which ``f`` has added some: ``seen.add(n); return len(seen)``.

    A second recording adds the same ones. So the function is recorded with another one in each.
    """
    grown = [
        holder
        for holder, old in zip(holders, before, strict=True)
        if isinstance(holder, dict | set | list | deque) and len(holder) > len(old)
    ]
    for holder in grown:
        if isinstance(holder, dict):
            dict.__setitem__(holder, _ANOTHER, None)  # update of a Counter adds numbers
        elif isinstance(holder, set):
            holder.add(_ANOTHER)
        else:
            holder.append(_ANOTHER)
    return bool(grown) and record_function(f, marked)[0] != fn


def _depends_on_numbers(
    f: Callable, marked: tuple[tuple, dict], holders: list, before: list
) -> bool:
    """Whether the program of ``f`` depends on numbers that ``f`` changes in ``holders``.

    A second recording does not prove it: ``self.n += 1; return x if self.n < 3 else -x`` gives the
    same program at first. So the function is recorded once more, with these numbers as arguments.
    """
    places: list[tuple[Any, Any]] = []
    numbers: list = []
    for holder, old in zip(holders, before, strict=True):
        items = items_by_name(contents_of(holder))
        old_items = items_by_name(old)
        for key, value in items.items():
            if type(value) in (int, float) and not is_same([old_items.get(key)], [value]):
                places.append((holder, key))
                numbers.append(value)
    if not numbers:
        return False

    def with_numbers(traced: list, *args: Any, **kwargs: Any) -> Any:
        for (holder, key), number in zip(places, traced, strict=True):
            _put_item(holder, key, number)
        return f(*args, **kwargs)

    args, kwargs = marked
    fn = record_function(with_numbers, ((numbers, *args), kwargs))[0]
    dependent = set(fn.params[: len(numbers)])
    for bind in fn.binds:
        if not dependent.isdisjoint(bind.locals()):
            if bind.op.effect or bind.op.role or bind.op.guards:
                return True
            dependent.update(bind.binders)
    return not dependent.isdisjoint(fn.ret.locals())


def _put_item(holder: Any, key: Any, value: Any) -> None:
    """Set an item, which ``items_by_name`` names, in its holder."""
    if type(holder) is CellType:
        holder.cell_contents = value
    elif isinstance(holder, list | dict):
        holder[key] = value
    elif type(holder) is Globals:
        holder.space[key] = value
    else:
        setattr(holder.value if type(holder) is Slots else holder, key, value)


def call_as_python(executor: Any, holders: list, before: list, error: Exception) -> None:
    """Make ``executor`` call its function from now on; ``error`` says why it is not recorded.

    To end the recording, ReadsOwnChanges is raised. Does nothing if the changes that the function
    has made so far cannot be undone.
    """
    holder_ids = {id(holder) for holder in holders}
    hidden = [id(generator) for generator in getattr(error, "letir_set_back", ())]
    if is_never_python(executor.f, error) or not holder_ids.issuperset(hidden):
        return
    if not are_restorable(holders, before):
        return
    restore_state(holders, before, generators=True)
    executor.runs_python = True
    if hasattr(error, "letir_unrecorded"):
        executor.why_python = str(error)
    message = str(error).partition("\n")[0]
    _LOG.info("%s: called as Python from now on: %s", executor_name(executor.f), message)
    raise ReadsOwnChanges


def is_never_python(f: Any, error: Exception) -> bool:
    """Whether ``f`` is not called as Python after ``error``: it is a class, a generator or a
    coroutine, or the recording has taken values from an iterator, which cannot be undone."""
    flags = getattr(getattr(f, "__code__", None), "co_flags", 0)
    is_later = bool(flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
    return isinstance(f, type) or is_later or hasattr(error, "letir_is_final")


def are_restorable(holders: list, before: list) -> bool:
    """Whether ``restore_state`` can give these objects back what they held ``before``: there is a
    copy of each array that has changed.
    """
    return all(
        type(old) is not int or is_unchanged(holder, old)
        for holder, old in zip(holders, before, strict=True)
    )


def restore_state(holders: list, contents: list, generators: bool = False) -> None:
    """Give objects back the contents that ``contents_of`` returned for them.

    Random generators get theirs only with ``generators``: other threads may draw from them.
    """
    for holder, content in zip(holders, contents, strict=True):
        if generators or type(content) is not GeneratorPosition:
            _restore_holder(holder, content)


def _put_back(holders: list, contents: list) -> None:
    """Give the objects back these contents, if one of them has changed."""
    if not all(map(is_unchanged, holders, contents)):
        restore_state(holders, contents)


def _restore_holder(holder: Any, contents: Any) -> None:
    """Give an object back the contents that ``contents_of`` returned for it."""
    if type(contents) is GeneratorPosition:
        contents.put_back(holder)
    elif type(holder) is CellType:
        if contents:
            holder.cell_contents = contents[0]
        elif contents_of(holder):
            del holder.cell_contents
    elif issubclass(type(holder), np.ndarray):
        holder = np.asarray(holder)
        if holder.flags.writeable and type(contents) is list:
            for place, item in enumerate(contents):  # an item may be a list
                holder.flat[place] = item
        elif holder.flags.writeable and type(contents) is bytes:
            holder[...] = np.frombuffer(contents, holder.dtype).reshape(holder.shape)
    elif type(holder) is Globals:
        holder.space.update(contents)
    elif isinstance(holder, list):
        list.__setitem__(holder, slice(None), contents)  # a user's class may refuse changes
    elif isinstance(holder, bytearray | array):
        holder[:] = contents
    elif isinstance(holder, dict | set | deque):
        if not is_unchanged(holder, contents) or list(holder) != list(contents):  # also the order
            kind: Any = type(holder)  # an attribute of the holder may have the name of a method
            kind.clear(holder)
            (kind.extend if isinstance(holder, deque) else kind.update)(holder, contents)
    else:
        current = contents_of(holder)
        holder = holder.value if type(holder) is Slots else holder
        for name in current.keys() - contents.keys():
            delattr(holder, name)
        for name, value in contents.items():
            if current.get(name) is not value:
                setattr(holder, name, value)


LATE_BOUND.update(
    call_as_python=call_as_python,
    refuse_changes=refuse_changes,
    refuse_changes_of=refuse_changes_of,
    restore_state=restore_state,
    require_same_state=require_same_state,
)
