"""The tape: one small ``TapeNode`` for each recorded operation, with edges to its operands' nodes.

A ``GradEdge`` names a value in the history, as a local does in a program. It holds neither the
Variable nor a value that no derivative rule reads, so an array is freed with its last Variable. An
in-place change gives the Variable a new edge and is noted at the old one: a node that saved the old
value refuses to use it.

Freeing a chain of a million nodes needs no stack: about every 64th node is a ``Cut``, which hands
the nodes before it to the loop that frees the first one. (CPython also limits the nesting when it
frees containers, but CPython 3.13 allows more levels than the stack of a thread holds.)
"""

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field, frozen

from letir.ast.primitive import Primitive
from letir.ast.source import source_line
from letir.ast.terms import Source
from letir.ast.types import ArrayType
from letir.eager.hooks import Handle, add_hook
from letir.errors import DTypeError, TraceError
from letir.tracing.source_locations import error_at_user_line

ORDER = itertools.count(1).__next__  # numbers nodes and in-place changes: operands before users
GOLDEN, RARELY = 0x9E3779B1, 0xFC000000  # multiples of GOLDEN have no pattern in these bits
_FREEING = threading.local()  # lists of edges that the thread has yet to free
FREED = None  # replaces the saved values of a node after backward


@frozen
class _Change:
    """An in-place change: when it happened, and where in the user's code."""

    order: int
    source: Source | None
    count: int  # the number of changes of this value so far, this one included


@define(eq=False)
class _Notes:
    """Rare data of an edge: hooks, a retained gradient, the last in-place change."""

    hooks: dict = field(factory=dict)  # hooks of the Variable, by handle
    before: dict = field(factory=dict)  # pre-hooks of the node
    after: dict = field(factory=dict)
    grad: object = None
    keeps_grad: bool = False
    changed: _Change | None = None


class GradEdge:
    """Where a Variable's value comes from: a node of the tape, one of its results, or a leaf."""

    __slots__ = ()  # each subclass declares its slots, including these two
    type: ArrayType | None
    notes: _Notes | None
    requires_grad = True
    is_leaf = False

    def own_notes(self) -> _Notes:
        """The notes of this edge, made on first use."""
        if self.notes is None:
            self.notes = _Notes()  # type: ignore[misc]  # a slot of each kind of edge
        return self.notes

    def note_change(self, source: Source | None) -> None:
        """Remember that the value has just been changed in place."""
        notes = self.own_notes()
        count = 1 if notes.changed is None else notes.changed.count + 1
        notes.changed = _Change(ORDER(), source, count)


class Constant(GradEdge):
    """The edge of a value that does not require grad."""

    __slots__ = ("__weakref__", "notes", "type")
    requires_grad = False
    is_leaf = True

    def __init__(self, type: ArrayType):
        self.type, self.notes = type, None


class Leaf(GradEdge):
    """The edge of a value that requires grad and that no recorded operation made."""

    __slots__ = ("__weakref__", "grad", "name", "notes", "type")
    is_leaf = True

    def __init__(self, type: ArrayType, name: str | None = None):
        self.type, self.notes, self.name, self.grad = type, None, name, None


def leaf_edge(aval: ArrayType, requires_grad: bool, name: str | None) -> GradEdge:
    """The edge of a new leaf. Raises DTypeError if it cannot require grad."""
    if not requires_grad:
        return Constant(aval)
    if not aval.inexact:
        raise error_at_user_line(
            DTypeError(
                f"only floating and complex Variables can require grad, this is {aval}\n"
                "  convert it first: x.astype(float)"
            )
        )
    return Leaf(aval, name)


class TapeNode(GradEdge, list):
    """One recorded operation: the edge of its only result; each of several has a ``ResultEdge``.

    The node is itself the list of its operands' edges, None for arrays and numbers: a separate list
    would be one more object for the garbage collector to traverse. ``kept`` holds the values that
    the derivative rule and the history read, in the order of ``spec.kept``; FREED after backward.
    ``order`` grows with time.
    """

    __slots__ = ("__weakref__", "kept", "notes", "order", "parts", "source", "spec", "type")
    # by identity; lists have no hash
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__, __ne__ = object.__eq__, object.__ne__
    spec: Any  # an OpSpecialization, or another class with its interface
    kept: Any
    order: int
    parts: "dict[int, weakref.ref[ResultEdge]]"
    source: Source | None

    def set_fields(self, spec: Any, kept: Any, order: int, source: Source | None) -> "TapeNode":
        """This node, with its fields set."""
        self.type, self.notes = spec.type, None
        self.spec, self.kept, self.order, self.source = spec, kept, order, source
        return self

    def __bool__(self):
        return True  # even without operands, although the node is then an empty list

    @property
    def args(self) -> list[GradEdge | None]:
        """The edges of the operands."""
        return self

    def register_prehook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_outputs)`` before the derivative rule of this node runs.

        ``grad_outputs`` is the tuple of the gradients of its results; a result of the hook that is
        not None replaces it.
        """
        return add_hook(self.own_notes().before, hook)

    def register_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the derivative rule has run.

        A result of the hook that is not None replaces ``grad_inputs``, the operands' gradients.
        """
        return add_hook(self.own_notes().after, hook)

    @property
    def op(self) -> Primitive:
        """The operation."""
        return self.spec.op

    def __repr__(self):
        place = "" if self.source is None else f", {self.source.short}"
        return f"TapeNode({self.spec.op.name}{place})"


class Cut(TapeNode):
    """A node at which freeing a history pauses: see the docstring of this module."""

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
                waiting.pop()  # frees the nodes up to the next cuts, which append to the list
        finally:
            local.waiting = None


def new_node(order: int, args: Sequence[Any] = ()) -> TapeNode:
    """A new node; about one in 64 is a ``Cut``, whatever the pattern of orders in a history."""
    return Cut(args) if order * GOLDEN & RARELY == 0 else TapeNode(args)


class ResultEdge(GradEdge):
    """The edge of one of several results of a node."""

    __slots__ = ("__weakref__", "index", "node", "notes", "type")

    def __init__(self, type: ArrayType, node: TapeNode, index: int):
        self.type, self.notes, self.node, self.index = type, None, node, index

    @classmethod
    def for_result(cls, type: ArrayType, node: TapeNode, index: int) -> "ResultEdge":
        """The existing part for this result, else a new one: all readers add to one gradient."""
        parts = getattr(node, "parts", None)
        if parts is None:
            parts = node.parts = {}  # weak references: a part refers to its node, else a cycle
        result = parts[index]() if index in parts else None
        if result is None:
            result = cls(type, node, index)
            parts[index] = weakref.ref(result)
        return result

    def note_change(self, source: Source | None) -> None:
        """Note the change here and at the node, which may have saved its results."""
        super().note_change(source)
        self.node.note_change(source)


def owning_node(edge: GradEdge) -> GradEdge:
    """The node that made a value, or the leaf itself."""
    return edge.node if type(edge) is ResultEdge else edge


def node_line(node: TapeNode) -> str:
    """The line of an error message that says where the user wrote the operation of a node."""
    return source_line(node.source)


def check_unchanged(edge: GradEdge, node: TapeNode) -> None:
    """Raise TraceError if the value was changed in place after the node saved it."""
    change = edge.notes.changed
    if change is not None and change.order > node.order:
        raise TraceError(
            f"backward of {node.spec.op.name} needs a value of type {edge.type} that was "
            f"later changed in place, at {change.source}{node_line(node)}\n"
            "  write x = x + y there, which makes a new array, or change a copy"
        )


def freed_error(node: TapeNode) -> TraceError:
    """The error for a second backward pass over a node whose saved values were freed."""
    return TraceError(
        f"backward of {node.spec.op.name} for the second time: "
        f"the first backward pass freed the values that it needs"
        f"{node_line(node)}\n  call backward(retain_graph=True) the first time"
    )
