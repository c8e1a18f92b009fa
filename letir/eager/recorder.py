"""``Recorder``: the emitter of Variables, which computes operations immediately and records nodes.

Every operation passes through ``apply``; its cost is measured in benchmarks, row "eager".
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import Value
from letir.ast.primitive import Primitive, results_tuple
from letir.ast.terms import Const, Source
from letir.ast.types import PYTHON_NUMBERS, Undef
from letir.eager.grad_mode import RECORDS, is_grad_enabled
from letir.eager.mutation import share_with_operand
from letir.eager.op_cache import (
    OpSpecialization,
    cached_spec,
    known_spec,
    looks_at_numbers,
    operand_key,
)
from letir.eager.tape import GOLDEN, ORDER, RARELY, Constant, Cut, GradEdge, ResultEdge, TapeNode
from letir.errors import DTypeError, ShapeError
from letir.eval.array_modules import is_array, type_of
from letir.tracing.operands import check_array_type, refuse_long_integer
from letir.tracing.source_locations import error_at_user_line, user_place

if TYPE_CHECKING:
    from letir.eager.variable import Variable

_new: Callable[[Any], Any] = object.__new__


class Recorder:
    """Computes operations on Variables, arrays and numbers, and records them if the result requires
    grad.

    ``variable`` is the class of the results, set once that class exists.
    """

    variable: type["Variable"] | None = None
    source: Source | None = None  # the line of the nodes; None: the user's current line

    def apply(self, op: Primitive, operands: Sequence[Any], attrs: Attrs = NO_ATTRS) -> Any:
        """The result of ``op`` as a Variable, or a tuple of them.

        This is the hot path: calls of other functions would double its time. It is measured in
        benchmarks, rows "eager" and "history": run them before and after a change.
        """
        variable, array, order = self.variable, np.ndarray, ORDER()
        # about every 64th node is a Cut, which stops the recursion when nodes are freed
        args = TapeNode() if order * GOLDEN & RARELY else Cut()
        values: list[Any] = []
        key: Any = [op, attrs.token if attrs else None]  # and the types of the operands
        for operand in operands:
            kind, value, arg = type(operand), operand, None
            if kind is variable:  # not isinstance: subclasses go to ``apply_others``
                value, arg = operand.array, operand.arg
                key += (arg.type, arg.requires_grad)
            elif kind is array:
                key += (operand.dtype, operand.shape)
            elif kind is float:  # the most common number, without a call of ``_enter_operand``
                key.append(float)
            elif isinstance(operand, Value):
                return self.apply_others(op, operands, attrs)
            else:
                value = _enter_operand(operand)
                key += (operand_key(value), None)
            values.append(value)
            args.append(arg)
        key = tuple(key)
        spec = known_spec(key) or self.find_spec(key, args, values, attrs)
        out = spec.compute(*values)
        if spec.is_unknown:  # only the result shows its type
            return self.wrap_results(spec, operands, args, values, out)
        result = _new(variable)
        result.array, result.sharing = out, None
        if spec.requires_grad and (RECORDS.get() or is_grad_enabled()):
            values.append(out)
            result.arg = args  # TapeNode.set_fields inline, in half the time
            args.type, args.notes, args.order = spec.type, None, order
            args.spec, args.kept = spec, spec.keep(values)
            args.source = self.source or user_place(3)[0]
        else:
            result.arg = Constant(spec.type)
        if not spec.is_plain and _is_shared(out, values):
            share_with_operand(result, operands, spec)
        return result

    def find_spec(self, key: tuple, args: list, values: list, attrs: Attrs) -> OpSpecialization:
        """The specialization of the operation for these operands, made if it is new."""
        by_value = looks_at_numbers(key[0])
        if by_value:
            numbers = [value for value in values if type(value) in PYTHON_NUMBERS]
            key = (*key, *[value or repr(value) for value in numbers])  # -0.0 == 0.0
            result = known_spec(key)
            if result is not None:
                return result
        operands = [
            (operand_key(value, by_value), False) if arg is None else (arg.type, arg.requires_grad)
            for arg, value in zip(args, values, strict=True)
        ]
        try:
            return cached_spec(key, attrs, operands)
        except BaseException as error:
            LATE_BOUND["shorten_traceback"](error, within=True)
            raise

    def apply_others(self, op: Primitive, operands: Sequence[Any], attrs: Attrs) -> Any:
        """An operation with an operand of another kind: a tracer, or a subclass of Variable."""
        variable = self.variable
        for operand in operands:
            if isinstance(operand, Value) and not isinstance(operand, variable):
                return operand.emitter.apply(op, operands, attrs)
        plain = [o.plain() if isinstance(o, variable) else o for o in operands]
        return self.apply(op, plain, attrs)

    def wrap_results(
        self,
        spec: OpSpecialization,
        operands: Sequence[Any],
        args: TapeNode,
        values: list,
        out: Any,
    ) -> Any:
        """The results of an operation with several results, or with a result of unknown type."""
        single = spec.op.results is None
        outs = (out,) if single else tuple(out)
        node = None
        if spec.requires_grad and (RECORDS.get() or is_grad_enabled()):
            saved = spec.keep([*values, *outs])
            node = args.set_fields(spec, saved, ORDER(), self.source or user_place(4)[0])
        result = tuple([self.wrap_result(node, single, i, array) for i, array in enumerate(outs)])
        for variable in result:
            if isinstance(variable, self.variable):
                share_with_operand(variable, operands, spec)
        return result[0] if single else result

    def wrap_result(
        self, node: TapeNode | None, single: bool, index: int, array: Any
    ) -> "Variable":
        """One result as a Variable.

        A result that is not an array is not wrapped unless a gradient flows to it: a Python number,
        the result of ``weaken``, must be promoted weakly.
        """
        if array is Undef or array is None or (node is None and not is_array(array)):
            return array
        aval = type_of(array)
        arg: GradEdge
        if node is None or not aval.inexact:  # integer results have no gradient
            arg = Constant(aval)
        elif single:
            arg, node.type = node, aval
        else:
            arg = ResultEdge.for_result(aval, node, index)
        return self.new_variable(array, arg)

    def new_variable(self, array: Any, arg: Any) -> "Variable":
        """A Variable with this array and grad edge."""
        result = _new(self.variable)
        result.array, result.arg, result.sharing = array, arg, None
        return result

    def emit(
        self, op: Primitive, args: Sequence[Any], attrs: Attrs = NO_ATTRS, types: Any = None
    ) -> tuple:
        """The results of ``op`` on these operands, as a tuple: the interface of emitters."""
        out = self.apply(op, [a.value if type(a) is Const else a for a in args], attrs)
        return results_tuple(op, out)


def _is_shared(out, values: list) -> bool:
    """Whether a result may share memory with an operand, or with another array."""
    for value in values:  # not any(), which takes twice the time
        if value is out:
            return True
    return getattr(out, "base", None) is not None  # a Python boolean has none


def array_of_nested(values: Any) -> np.ndarray:
    """The array of a number or a nested list. Raises ShapeError for rows of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise error_at_user_line(
            ShapeError(
                f"rows of different lengths are not an array: {values!r}\n"
                "  make the rows equally long, or keep them in a list of Variables"
            )
        ) from None


def _enter_operand(operand):
    """An operand that is not a Variable. Raises DTypeError unless it is an array or a number."""
    if type(operand) is list or type(operand) is tuple:
        operand = array_of_nested(operand)
    if type(operand) is int:
        try:
            refuse_long_integer(operand)
        except DTypeError as error:
            raise error_at_user_line(error) from None
    if type(operand) not in PYTHON_NUMBERS and operand is not None and operand is not Undef:
        check_array_type(operand)
    return operand


RECORDER = Recorder()
