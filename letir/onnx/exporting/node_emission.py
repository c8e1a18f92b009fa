"""``Emission``: appends the nodes of a program's binds to a graph.

A bind is exported by the first of these that exists: the user's override, the export rule, the node
that the record names, the body that is certain to run, the program of exportable operations, the
decomposition, the value of an operation on constants.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.bodies import holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import Absent
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import ShapeDtype
from letir.errors import ExportError, LetirError
from letir.kernels.scalar_lowering import operand_dtypes
from letir.onnx.exporting.complex_numbers.complex_nodes import emit_pairs, has_complex
from letir.onnx.exporting.custom_nodes import custom_node
from letir.onnx.exporting.elementwise_nodes import emit_node
from letir.onnx.exporting.node_graph import (
    COMPLEX,
    Graph,
    Unexportable,
    caution_of,
    program_for,
    real_dtype,
    refusal_of,
    rule_for,
)
from letir.ops.define.records import decomposition
from letir.tracing.entry import trace

_recordings = BoundedCache(1 << 10)
_MAX_KINDS = 1 << 20  # elements of a value that is computed while the program is exported


@define(eq=False)
class Emission:
    """The nodes of a program. ``failures``: the binds that could not be exported, and why."""

    overrides: Mapping[str, Callable] = field(factory=dict)
    custom_domain: str | None = None
    failures: list[tuple[Bind, str]] = field(factory=list)
    uses_domain: bool = False  # whether a node belongs to the custom domain
    is_inside: bool = False  # whether these are the parts of one bind of the user's program
    is_unread: bool = False  # whether these are the parts of a bind whose results nothing needs

    def body(self, g: Graph, fn: Lambda, operands: Sequence) -> list[str]:
        """Append the binds of ``fn``; the names of its results.

        ``operands``: for each parameter a name, or an argument of the surrounding bind.
        """
        for param, operand in zip(fn.params, operands, strict=True):
            g.values[param] = operand if type(operand) is str else g.operand(operand)
        g.unread.update(_unread_binders(fn, () if self.is_unread else fn.ret.locals()))
        for bind in fn.binds:
            self.bind(g, bind)
        return [g.operand(arg) for arg in fn.ret.args]

    def bind(self, g: Graph, bind: Bind) -> None:
        """Append the nodes of a bind, and enter the names of its results."""
        outer, is_inside, is_unread = g.bind, self.is_inside, self.is_unread
        self.is_unread |= bool(bind.binders) and g.unread.issuperset(bind.binders)
        if not is_inside:
            g.bind = bind
            caution = caution_of(bind.op.name)
            if caution is not None and len(bind.binders) > 1:
                _warn_of(bind, caution)
        try:
            results = self.results(g, bind)
        except Unexportable as reason:
            g.bind, self.is_inside, self.is_unread = outer, is_inside, is_unread
            if is_inside:
                raise
            self.failures.append((bind, str(reason)))
            # names without nodes, so that later failures are listed too
            names = [g.names.new("missing") for _ in bind.binders]
            results = [g.paired(name, name) for name in names]  # complex or not
        for binder, name in zip(bind.binders, results, strict=True):
            g.values[binder] = name
            g.makers[binder] = bind
        g.bind, self.is_unread = outer, is_unread

    def results(self, g: Graph, bind: Bind) -> Sequence[str]:
        """The names of the results of a bind, after its nodes were appended."""
        result = self.emitted(g, bind)
        return (result,) if type(result) is str else result

    def emitted(self, g: Graph, bind: Bind) -> str | Sequence[str]:
        """The name of the result of a bind, or the names of its results."""
        op = bind.op
        if op.name in self.overrides:
            return _checked_names(bind, self.overrides[op.name](g, bind))
        if _has_no_elements(bind):
            return [_empty_array(g, binder.type) for binder in bind.binders]
        if has_complex(bind):
            return self._results_on_pairs(g, bind)
        if op.random and op.decompose is None:
            return self._constant_draws(g, bind)
        rule = rule_for(op.name)
        if rule is not None:
            return rule(g, bind)
        if type(op.onnx) is str:
            return emit_node(g, bind, op.onnx)
        if callable(op.onnx):
            return _checked_names(bind, op.onnx(g, bind))
        for way in (
            self._results_of_inlined_body,
            self._results_of_sizes,
            self._results_of_program,
            self._as_value,
        ):
            result = way(g, bind)
            if result is not None:
                return result
        if op.is_user_defined and self.custom_domain is not None:
            self.uses_domain = True
            return custom_node(g, bind, self.custom_domain)
        raise Unexportable(_reason_for(op))

    def _constant_draws(self, g: Graph, bind: Bind) -> str | Sequence[str]:
        """The random numbers of a key that the program holds, as constants of the model."""
        values = g.top.constants
        names = g.operands(bind)
        if names and names[0] in values and not all(name in values for name in names):
            raise Unexportable(
                "how many random numbers it draws, or from which distribution, depends on an "
                "input: give the symbolic sizes numbers, or draw outside of the model"
            )
        if not all(name in values for name in names):
            raise Unexportable(_reason_for(bind.op))
        _warn_of(g.bind or bind, "its random numbers become constants, the same in each run")
        drawn = bind.op.impl(np, *[values[name] for name in names], **bind.attrs)
        results = (drawn,) if bind.op.results is None else drawn
        return [g.array(x) for x in results]

    def _results_on_pairs(self, g: Graph, bind: Bind) -> str | Sequence[str]:
        """The results of an operation on complex numbers, pairs of real ones."""
        result = emit_pairs(g, bind)
        if result is not None:
            return result
        for way in (self._results_of_inlined_body, self._results_of_sizes):
            result = way(g, bind)
            if result is not None:
                return result
        if bind.op.decompose is None:
            raise Unexportable(f"{bind.op.name} of {COMPLEX}")
        return self.parts(g, bind)

    def _results_of_inlined_body(self, g: Graph, bind: Bind) -> Sequence[str] | None:
        """The results of a body that is certain to run exactly once."""
        layout = bind.op.bodies
        if layout is None or layout.in_place is None:
            return None
        chosen = layout.in_place(bind, _number_of_constant)
        return None if chosen is None else self.body(g, *chosen)

    def _results_of_sizes(self, g: Graph, bind: Bind) -> str | Sequence[str] | None:
        """The results of an operation whose attributes have symbolic sizes, read from operands."""
        if bind.op.role != "sized":
            return None
        op = PRIMITIVES[bind.attrs["operation"]]
        settings = zip(bind.attrs["names"], bind.attrs["settings"], strict=True)
        return self.emitted(g, bind.replace(op=op, args=bind.args[:-1], attrs=Attrs(settings)))

    def _results_of_program(self, g: Graph, bind: Bind) -> Sequence[str] | None:
        """The results of the program that computes the operation, or of its decomposition."""
        written = program_for(bind.op.name)
        if written is not None:
            return self.written(g, bind, written)
        return None if bind.op.decompose is None else self.parts(g, bind)

    def parts(self, g: Graph, bind: Bind) -> Sequence[str]:
        """The results of the decomposition of a composite."""
        decompose = bind.op.decompose
        return self._program(g, bind, lambda types: decomposition(decompose, types, bind.attrs))

    def written(self, g: Graph, bind: Bind, program: Callable) -> Sequence[str]:
        """The results of a program of NumPy functions."""
        return self._program(g, bind, lambda types: _record_program(program, types, bind))

    def recorded(self, g: Graph, fn: Lambda, operands: Sequence[str]) -> list[str]:
        """The results of a program that computes a part of the bind at hand."""
        outer, self.is_inside = self.is_inside, True
        names = self.body(g, fn, operands)
        self.is_inside = outer
        return names

    def _program(self, g: Graph, bind: Bind, record_for: Callable) -> Sequence[str]:
        """The results of the program that ``record_for`` records for the types of the operands."""
        types = tuple([None if arg.type is NO_TYPE else arg.type for arg in bind.args])
        if any(arg.type is None for arg in bind.args):
            raise Unexportable("the type of an operand is not known")
        try:
            program = record_for(types)
        except LetirError as error:
            raise Unexportable(f"its parts need known sizes: {_first_line(error)}") from None
        typed = [arg for arg in bind.args if arg.type is not NO_TYPE]
        pairs = zip(typed, program.params, strict=True)
        operands = [g.operand(arg, param.type.dtype) for arg, param in pairs]
        names = self.recorded(g, program, operands)
        results = zip(names, program.ret.args, bind.binders, strict=True)
        return [_as_type(g, *result) for result in results]

    def _as_value(self, g: Graph, bind: Bind) -> Sequence[str] | None:
        """The value of an operation on constants."""
        if bind.op.effect or bind.op.random or any(type(arg) is Local for arg in bind.args):
            return None
        avals = [binder.type for binder in bind.binders]
        if any(aval is None or not _is_small(aval.size) for aval in avals):
            return None
        values = [arg.value for arg in bind.args if type(arg) is Const]
        if bind.op.holds_lambdas:
            return None
        computed = bind.op.impl(np, *values, **bind.attrs)
        results = (computed,) if bind.op.results is None else computed
        return [g.array(x, aval.dtype) for x, aval in zip(results, avals, strict=True)]


def _unread_binders(fn: Lambda, results: Iterable[Local]) -> Iterator[Local]:
    """The binders of a program on which none of these results depends."""
    needed = set(results)
    for bind in reversed(fn.binds):
        if needed.isdisjoint(bind.binders):
            yield from bind.binders
        else:
            needed.update(bind.locals())


def _checked_names(bind: Bind, result: Any) -> Any:
    """The names that a user's rule returned. Raises ExportError unless each result has one."""
    names, count = [result] if type(result) is str else result, len(bind.binders)
    is_row = isinstance(names, list | tuple) and all(type(name) is str for name in names)
    if not is_row or len(names) != count:
        raise ExportError(
            f"export: the rule for {bind.op} returned {result!r}, not the "
            f"{'name of its result' if count == 1 else f'names of its {count} results'}\n"
            "  return what graph('Add', x, y) returns"
        )
    return result


def _record_program(program: Callable, types: tuple, bind: Bind) -> Lambda:
    """A program of NumPy functions, recorded at these types."""
    result_type = bind.binders[0].type
    examples = [
        None if aval is None else ShapeDtype(aval.shape, _operand_dtype(aval, bind, result_type))
        for aval in types
    ]
    key = (program, tuple(types), bind.attrs)
    result = None if holds_arrays(bind.attrs) else _recordings.get(key)
    if result is None:
        result = trace(partial(program, **bind.attrs), *examples)
        if not holds_arrays(bind.attrs):
            _recordings[key] = result
    return result


def _operand_dtype(aval: Any, bind: Bind, result_type: Any) -> np.dtype:
    """The dtype of an operand: an elementwise operation computes in the dtype of its result."""
    if (
        result_type.dtype.kind == "f"
        and (aval.weak or bind.op.elementwise)
        and aval.dtype.kind in "biuf"
    ):
        return result_type.dtype if aval.dtype.kind == "f" or _is_ufunc(bind) else aval.dtype
    return aval.dtype


def _is_ufunc(bind: Bind) -> bool:
    return all(dtype.kind == "f" for dtype in operand_dtypes(bind))


def _warn_of(bind: Bind, text: str) -> None:
    """Issue a warning about the export of a bind, at the user's line of the bind."""
    message, source = f"export of {bind.op}: {text}", bind.source
    if source is None:
        warnings.warn(message, stacklevel=2)
    else:
        warnings.warn_explicit(message, UserWarning, source.file, source.line)


def _reason_for(op: Any) -> str:
    """Why there is no way to export an operation."""
    if type(op.onnx) is Absent:
        return op.onnx.reason
    return (
        refusal_of(op.name)
        or "there is no export rule for it; give it a decomposition, or pass overrides"
    )


def _has_no_elements(bind: Bind) -> bool:
    """Whether all results are arrays without elements, whatever the operands are."""
    avals = [binder.type for binder in bind.binders]
    if bind.op.effect or not avals or any(aval is None for aval in avals):
        return False
    return all(is_static_shape(aval.shape) and 0 in aval.shape for aval in avals)


def _empty_array(g: Graph, aval: Any) -> str:
    """An array without elements."""
    if aval.dtype.kind != "c":
        return g.array(np.empty(aval.shape, aval.dtype))
    part = g.array(np.empty(aval.shape, real_dtype(aval.dtype)))
    return g.paired(part, part)


def _is_small(size: Any) -> bool:
    return type(size) is int and size <= _MAX_KINDS


def _number_of_constant(arg: Arg) -> Any:
    return arg.value if type(arg) is Const else None


def _as_type(g: Graph, name: str, have: Arg, want: Local) -> str:
    return name if want.type is None else g.cast(name, have.type.dtype, want.type.dtype)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
