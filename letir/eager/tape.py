"""What is recorded: one small ``TapeNode`` an operation, linked to the origins of its operands.

The origin of a value is its name in the history, as a local is in a program. It never holds the
Variable, nor a value that no derivative rule reads; so a value goes free with its last Variable. A
change in place gives a Variable a new origin and is noted at the old one: a step that kept that
value before the change refuses to use it.

Freeing a chain of a million steps takes no stack: every 64th step or so is a ``Cut``, which leaves
what is before it to the step that began. (CPython itself frees nested containers one after the
other once some are nested; CPython 3.13 nests too many of them for the stack of a thread.)
"""

import itertools
import threading
import weakref

from attrs import define, field, frozen

from letir.ast.terms import Source
from letir.ast.types import ArrayType
from letir.eager.hooks import Handle, add_hook
from letir.errors import TraceError

ORDER = itertools.count(1).__next__  # of all steps and changes in place: operands before users
GOLDEN, RARELY = 0x9E3779B1, 0xFC000000  # multiples of the first have no pattern in these bits
_FREEING = threading.local()  # what a thread has yet to free: lists of origins
FREED = None  # stands for the values that a step kept, after backward


@frozen
class _Change:
    """A change in place: when, and where in the user's code."""

    order: int
    source: Source | None
    count: int  # how often this value was changed before, and this time


@define(eq=False)
class _Notes:
    """What few origins have: hooks, a gradient that is kept, and the last change in place."""

    hooks: dict = field(factory=dict)  # tensor hooks, by handle
    before: dict = field(factory=dict)  # hooks of the step before its rule
    after: dict = field(factory=dict)
    grad: object = None
    keeps_grad: bool = False
    changed: _Change | None = None


class GradEdge:
    """Where the value of a Variable comes from."""

    __slots__ = ()  # each kind has its own, and type and notes
    requires_grad = True
    is_leaf = False

    def noted(self) -> _Notes:
        """Its notes, made when they are needed."""
        if self.notes is None:
            self.notes = _Notes()
        return self.notes

    def note_change(self, source: Source | None) -> None:
        """Remember that the value was changed in place now."""
        notes = self.noted()
        count = 1 if notes.changed is None else notes.changed.count + 1
        notes.changed = _Change(ORDER(), source, count)


class Constant(GradEdge):
    """The origin of a value that requires no grad."""

    __slots__ = ("__weakref__", "notes", "type")
    requires_grad = False
    is_leaf = True

    def __init__(self, type: ArrayType):
        self.type, self.notes = type, None


class Leaf(GradEdge):
    """The origin of a value that requires grad and was made by no operation."""

    __slots__ = ("__weakref__", "grad", "name", "notes", "type")
    is_leaf = True

    def __init__(self, type: ArrayType, name: str | None = None):
        self.type, self.notes, self.name, self.grad = type, None, name, None


class TapeNode(GradEdge, list):
    """One operation: the origin of its result if it has one only, else ``Part``s are.

    It is the list of the origins of its operands, None for arrays and numbers: a list of its own
    would be one more object that the garbage collector walks through. ``kept``: what the rule reads
    and what the history needs, as ``form`` says; FREED after backward. ``order`` grows with time.
    """

    __slots__ = ("__weakref__", "form", "kept", "notes", "order", "parts", "source", "type")
    __hash__, __eq__, __ne__ = object.__hash__, object.__eq__, object.__ne__  # it is itself only

    def filled(self, form, kept, order: int, source: Source | None) -> "TapeNode":
        """Itself, with all that is known of it."""
        self.type, self.notes = form.type, None
        self.form, self.kept, self.order, self.source = form, kept, order, source
        return self

    def __bool__(self):
        return True  # a step without operands is still a step

    @property
    def args(self) -> list[GradEdge | None]:
        """The origins of its operands."""
        return self

    def register_prehook(self, hook) -> Handle:
        """Call ``hook(grad_outputs)`` before the rule of this step runs, with a tuple of the
        gradients of its results; what it returns, if not None, takes their place.
        """
        return add_hook(self.noted().before, hook)

    def register_hook(self, hook) -> Handle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the rule has run; what it returns, if not
        None, takes the place of the gradients of the operands.
        """
        return add_hook(self.noted().after, hook)

    @property
    def op(self):
        """The operation."""
        return self.form.op

    def __repr__(self):
        return f"Step({self.form.op.name}{'' if self.source is None else f', {self.source.short}'})"


class Cut(TapeNode):
    """A step at which freeing a history pauses: see the head of this module."""

    __slots__ = ()

    def __del__(self, local=_FREEING):  # a default: at exit the module's names may be gone
        before = self[:]
        self.clear()
        waiting = getattr(local, "waiting", None)
        if waiting is not None:
            waiting.append(before)
            return
        local.waiting = waiting = [before]
        del before
        try:
            while waiting:
                waiting.pop()  # which frees it, up to the next cuts: these append to the list
        finally:
            local.waiting = None


def step_at(order: int, args=()) -> TapeNode:
    """A step, or now and then a cut, whatever the pattern of the orders in a history."""
    return Cut(args) if order * GOLDEN & RARELY == 0 else TapeNode(args)


class Part(GradEdge):
    """The origin of one of several results of a step."""

    __slots__ = ("__weakref__", "index", "notes", "step", "type")

    def __init__(self, type: ArrayType, step: TapeNode, index: int):
        self.type, self.notes, self.step, self.index = type, None, step, index

    @classmethod
    def of(cls, type: ArrayType, step: TapeNode, index: int) -> "Part":
        """The one that is in use: what reads a result once more adds to the same gradient."""
        known = getattr(step, "parts", None)
        if known is None:
            known = step.parts = {}  # weak: a part has its step, and so a cycle would outlive both
        found = known[index]() if index in known else None
        if found is None:
            found = cls(type, step, index)
            known[index] = weakref.ref(found)
        return found

    def note_change(self, source: Source | None) -> None:
        """As for the others; and of the step, because it may have kept its results."""
        super().note_change(source)
        self.step.note_change(source)


def owner(origin: GradEdge) -> GradEdge:
    """The step of a value, or its leaf."""
    return origin.step if type(origin) is Part else origin


def at(step: TapeNode) -> str:
    """The line of a message that says where the user wrote a step."""
    return f"\n  at {step.source}" if step.source else ""


def check_unchanged(origin: GradEdge, step: TapeNode) -> None:
    """Raise TraceError if the value was changed in place after the step kept it."""
    change = origin.notes.changed
    if change is not None and change.order > step.order:
        raise TraceError(
            f"backward of {step.form.op.name} needs a value of type {origin.type} "
            f"that was changed in place since, at {change.source}{at(step)}\n"
            "  write x = x + y there, which makes a new array, or change a copy"
        )


def freed(step: TapeNode) -> TraceError:
    """The error for a second run over a step whose values are gone [E4]."""
    return TraceError(
        f"backward of {step.form.op.name} a second time: its values went free after the first"
        f"{at(step)}\n  say backward(retain_graph=True) the first time"
    )
