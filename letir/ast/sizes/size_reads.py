"""``SizeReads``: the treatment of code that compares symbolic sizes or needs their values."""

import operator
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from attrs import define, field

from letir.ast import LATE_BOUND


@define(eq=False)
class SizeReads:
    """The treatment of comparisons of sizes, such as ``n < 3``, while a program is made.

    ``note(place, asked, is_decided)`` is called for comparisons in code outside letir;
    ``is_decided``: the answer is the same for all values of the names. ``least``: {name: the
    value at and above which comparisons in letir's own code have one answer}. ``is_guarded``: a
    comparison whose answer depends on values may be answered for the current values, with a guard.
    """

    note: Callable[[str, str, bool], None]
    is_guarded: bool = False
    least: dict[str, int] = field(factory=dict)


# Without a record of them, an answer for one size would be taken to hold for all sizes.
SIZE_READS: ContextVar[SizeReads | None] = ContextVar("letir_size_reads", default=None)


def note_read(needed: str, is_decided: bool = False) -> None:
    """Note that code compares a symbolic size or needs its value, if such reads are watched."""
    reads = SIZE_READS.get()
    if reads is None:
        return
    place = _users_place()
    if place is not None:
        reads.note(place, needed, is_decided)


def _users_place() -> str | None:
    """``file:line`` of the code that compares or reads a size; None if it is letir's own."""
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in _SIZES and frame.f_back is not None:
        frame = frame.f_back
    # a dict of types compares their keys in Python's own code, on letir's behalf
    while frame.f_back is not None and _package_of_frame(frame) in _PASSED_OVER:
        frame = frame.f_back
    return (
        None
        if _package_of_frame(frame) == "letir"
        else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    )


_SIZES = tuple([f"letir.ast.sizes.{name}" for name in ("size", "size_comparisons", "size_reads")])
_PASSED_OVER = sys.stdlib_module_names | {"numpy"}


def _package_of_frame(frame) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def answer_by_guard(size: Any, compare: Callable, other: Any) -> bool | None:
    """``compare(size, other)`` for the current values, recorded as a guard.

    None if guards are not allowed, the question is letir's own, or there are no values.
    """
    reads = SIZE_READS.get()
    if reads is None or not reads.is_guarded or _users_place() is None:
        return None
    return LATE_BOUND["answer_by_guard"](size, compare, other)


def note_least(compare: Callable[[Any, Any], bool], difference: Any) -> tuple[str, int] | None:
    """The single name in ``difference``, and the least value from which on
    ``compare(difference, 0)`` has one answer, which is noted in the reads of sizes. None if there
    are other names.
    """
    match getattr(difference, "terms", ()):
        case (((name,), factor),) | (((name,), factor), ((), _)):
            zero, rest = divmod(-dict(difference.terms).get((), 0), factor)
            # the answer at the value where ``apart`` is 0 may be the answer beyond it
            is_last = not rest and compare(0, 0) == compare(factor, 0)
            least = zero if is_last else zero + 1
            reads = SIZE_READS.get()
            if reads is not None:
                reads.least[name] = max(least, reads.least.get(name, 0))
            return name, least
    return None


def traced_operator(name: str, is_reflected: bool = False) -> Callable:
    """The operator ``name`` of a size as a traced number."""
    compute = getattr(operator, name)

    def operate(self, other):
        # type(): traced values claim to be instances of Python's classes
        is_known = hasattr(other, "terms") or hasattr(other, "emitter")
        if not is_known and not issubclass(type(other), int | float | complex):
            return NotImplemented  # an array answers for itself
        other = other.number() if hasattr(other, "terms") else other
        return compute(other, self.number()) if is_reflected else compute(self.number(), other)

    return operate
