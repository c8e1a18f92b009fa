"""``FunctionSpecialization``: how one call of a ``Function`` is differentiated."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.eager.functions.context import Context, place_among
from letir.eager.functions.operation import HERE, call_attributes
from letir.eager.grad_mode import recording_set
from letir.eager.recorder import RECORDER, Recorder
from letir.eager.tape import (
    FREED,
    ORDER,
    GradEdge,
    ResultEdge,
    TapeNode,
    check_unchanged,
    freed_error,
)
from letir.errors import DTypeError, ShapeError, TraceError
from letir.eval.array_modules import array_module, is_array, type_of
from letir.tracing.source_locations import user_place


@frozen(eq=False)
class Saved:
    """The provenance of a saved value: a grad edge, the position of a result, or neither.

    The Variable itself is not stored: a node that held its own result would keep itself alive.
    """

    is_variable: bool
    edge: GradEdge | None = None
    result: int | None = None

    @classmethod
    def from_value(cls, value: Any, args: tuple, edges: list, outs: list) -> "Saved":
        """The provenance of a value passed to ``save_for_backward``."""
        if value is None or isinstance(value, np.ndarray | np.generic):
            return cls(False)
        if not isinstance(value, Recorder.variable):
            raise TraceError(
                f"save_for_backward takes Variables, arrays and None, found {value!r}\n"
                "  set an attribute, ctx.name = value"
            )
        result = place_among(value, outs)
        if result is not None:
            return cls(True, None, result)
        place = place_among(value, args)
        return cls(True, value.arg if place is None else edges[place])

    def edge_in(self, node: TapeNode) -> GradEdge | None:
        """The grad edge of the value; for a result, the edge from ``node``."""
        if self.result is None:
            return self.edge
        if node.type is not None:
            return node
        return ResultEdge.for_result(node.spec.types[self.result], node, self.result)


@frozen
class _FunctionRule:
    """The interface of a rule, for the backward engine."""

    results: tuple[int, ...]
    captured: tuple[int, ...]
    missing: tuple = ()


class FunctionSpecialization:
    """The interface of ``OpSpecialization``, for one call of a Function.

    ``operands``: the positions of the arrays among the arguments. ``kept``: the positions among the
    operands of those that do not require grad; a node saves these before the user's saved values.
    """

    is_short = False  # the engine's short path needs a rule that is a program

    def __init__(self, function, ctx: Context, args: tuple, saved: list[Saved], outs: list):
        needs = ctx.needs_input_grad
        self.function, self.ctx, self.saved, self.op = function, ctx, saved, function.operation
        self.operands = [i for i, arg in enumerate(args) if _is_operand(arg)]
        self.operand_types = [type_of(args[i]) for i in self.operands]
        # the device on which missing gradients are made
        self.xp = array_module([getattr(args[i], "array", args[i]) for i in self.operands])
        self.arguments = [HERE if i in self.operands else arg for i, arg in enumerate(args)]
        self.types = tuple([out.type if _is_operand(out) else None for out in outs])
        self.type = None
        self.kept = tuple([k for k, i in enumerate(self.operands) if not needs[i]])
        results = tuple([k for k, i in enumerate(self.operands) if needs[i]])
        self.rule = _FunctionRule(results, tuple(range(len(saved))))

    @property
    def attrs(self) -> Attrs:
        """The attributes of the operation in a history."""
        return call_attributes(self.function, self.arguments, self.types)

    def rule_for(self, mask: tuple | None) -> _FunctionRule:
        """One rule for every mask: missing cotangents reach backward as zeros."""
        return self.rule

    def read(self, rule: _FunctionRule, node: TapeNode) -> Sequence:
        """The saved values. Raises TraceError if they were freed, or one was changed in place."""
        if node.kept is FREED:
            raise freed_error(node)
        for saved in self.saved:
            edge = node if saved.result is not None else saved.edge
            if edge is not None and edge.notes is not None:
                check_unchanged(edge, node)
        return node.kept[len(self.kept) :]

    def edges(self, rule: _FunctionRule, node: TapeNode) -> list[GradEdge | None]:
        """The grad edges of the saved values, None for plain arrays."""
        return [saved.edge_in(node) for saved in self.saved]

    def pull(self, rule: _FunctionRule, emitter: Any, cts: list, captured: Sequence) -> tuple:
        """Run backward; returns the gradients of the operands that require grad."""
        records, variable = isinstance(emitter, Recorder), Recorder.variable
        once = getattr(self.function.backward, "is_once_differentiable", False)
        grads = [self.gradient(i, ct) for i, ct in enumerate(cts)]
        saved = [
            variable(value) if s.is_variable and not isinstance(value, variable) else value
            for s, value in zip(self.saved, captured, strict=True)
        ]
        with recording_set(records and not once):  # once_differentiable: no history
            result = self.function.backward(self.ctx.with_saved(saved), *grads)
        result = _check_gradients(self, result if isinstance(result, tuple | list) else (result,))
        if not records:
            return tuple([ct.array for ct in result])
        if not once:
            return tuple(result)
        # the edges through which a second derivative would have flowed
        lost_edges = [
            v.arg for v in (*grads, *saved) if isinstance(v, variable) and v.requires_grad
        ]
        return tuple([_refuse_derivative(self, ct, lost_edges) for ct in result])

    def gradient(self, i: int, ct: Any) -> Any:
        """The gradient of a result in the form for backward; zeros if it is missing."""
        aval = self.types[i]
        if ct is None and aval is not None:
            ct = self.xp.zeros(aval.shape, aval.dtype)
        return ct if ct is None or isinstance(ct, Recorder.variable) else Recorder.variable(ct)


def _is_operand(arg) -> bool:
    """Whether an argument or result of a Function is an array."""
    return isinstance(arg, Value) or is_array(arg)


def _check_gradients(spec: FunctionSpecialization, cts: Sequence) -> list:
    """The gradients of the operands that require grad. Raises unless there is one for each
    argument, of its type.
    """
    name, cts, count = spec.function.__name__, list(cts), len(spec.arguments)
    while len(cts) > count and cts[-1] is None:  # trailing Nones are allowed [semantics.md E1]
        cts.pop()
    if len(cts) != count:
        raise ShapeError(
            f"{name}: backward returned {len(cts)} gradients for the {count} arguments of forward"
            "\n  return None for arguments that are not arrays"
        )
    for i, ct in enumerate(cts):
        if ct is not None and spec.arguments[i] is not HERE:
            raise DTypeError(
                f"{name}: backward returned a gradient for argument {i}, which is not an array\n"
                "  return None for it"
            )
    needed = [(spec.operands[k], spec.operand_types[k]) for k in spec.rule.results]
    return [_check_gradient(spec, i, cts[i], kind) for i, kind in needed]


def _check_gradient(spec: FunctionSpecialization, position: int, ct, aval: ArrayType):
    """A gradient returned by backward as a Variable: None means zeros [semantics.md D9]."""
    if ct is None:
        return Recorder.variable(spec.xp.zeros(aval.shape, aval.dtype))
    if isinstance(ct, Recorder.variable):
        result = ct
    elif type(ct) in PYTHON_NUMBERS:
        result = Recorder.variable(np.asarray(ct, aval.dtype))
    else:
        result = Recorder.variable(ct)
    if result.type is not aval:
        error = ShapeError if result.dtype == aval.dtype else DTypeError
        raise error(
            f"{spec.function.__name__}: backward returned a gradient of type {result.type} for "
            f"argument {position}, expected {aval}\n"
            "  a gradient has the type of its argument: sum over axes that were broadcast"
        )
    return result


class _NoRule:
    """The specialization of gradients from a ``once_differentiable`` backward: it has no rule."""

    kept, is_short = (), False

    def __init__(self, spec: FunctionSpecialization, type_: ArrayType):
        self.op, self.type, self.types, self.name = spec.op, type_, (type_,), spec.function.__name__

    def rule_for(self, mask):
        """Raise, because the derivative must not be taken."""
        raise TraceError(
            f"the backward of {self.name} is marked as once_differentiable\n"
            "  leave the mark out if backward computes with Variables"
        )


def _refuse_derivative(spec: FunctionSpecialization, ct, lost_edges: list[GradEdge]):
    """``ct`` as the result of a node without a derivative rule."""
    source, _ = user_place(2)
    node = TapeNode(lost_edges).set_fields(_NoRule(spec, ct.type), (), ORDER(), source)
    return RECORDER.new_variable(ct.array, node)
