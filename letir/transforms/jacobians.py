"""jacfwd, jacrev and jacobian: Jacobians, computed by one batched program.

``jacrev`` applies the vjp to all unit cotangents at once, ``jacfwd`` the jvp to all unit tangents,
by batching the program for a single direction. A Lambda gives a Lambda.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, overload

from attrs import astuple, frozen

from letir.ad.differentiation import differentiate
from letir.ad.forward import linear_program
from letir.ad.gradient_program import Gradient
from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder, Value
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import Tree
from letir.ast.signatures import P
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.ops.define.batch_rules import move_from_front
from letir.ops.shape.eye_and_arange import eye
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import ones, zeros
from letir.passes.dead_code_elimination import dead_code
from letir.transforms.batching import batch_program
from letir.transforms.gradients import check_inputs
from letir.transforms.jitted_functions import option_token, shared_with_executors
from letir.transforms.program_call import (
    ProgramCall,
    as_program,
    differentiated_arguments,
    nested_example,
    result_and_aux,
    tree_of_arguments,
    tree_of_results,
)
from letir.transforms.repeated_programs import Transformed, call_transformed

Argnums = int | Sequence[int]


@overload
def jacrev(
    f: Lambda | Gradient, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Lambda: ...
@overload
def jacrev(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@shared_with_executors
def jacrev(
    f: Any,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``f`` with respect to the arguments ``argnums``, in reverse mode.

    All rows are computed in one backward pass, which is best if the result has fewer elements than
    the arguments. For a result of shape s and an argument of shape t, the Jacobian has shape s + t
    and the argument's dtype; it nests as the result, then as the arguments. A Lambda gives a
    Lambda, a function gives a function. With ``has_aux``, ``f`` returns (result, aux) and
    ``jacrev(f)`` returns (Jacobian, aux). Complex results need ``holomorphic``.

    >>> import numpy as np
    >>> jacrev(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return _jacobian_transform(
        f, _JacobianOptions("jacrev", argnums, has_aux, holomorphic), _reverse_blocks
    )


@overload
def jacfwd(
    f: Lambda | Gradient, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Lambda: ...
@overload
def jacfwd(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@shared_with_executors
def jacfwd(
    f: Any,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``f`` with respect to the arguments ``argnums``, in forward mode.

    All columns are computed in one forward pass, which is best if the arguments have fewer elements
    than the result. Shapes, nesting and options are those of ``jacrev``; the dtype is the result's.
    Complex arguments need ``holomorphic``.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * np.arange(3.0))(2.0)
    array([0., 1., 2.])
    """
    return _jacobian_transform(
        f, _JacobianOptions("jacfwd", argnums, has_aux, holomorphic), _forward_blocks
    )


@overload
def jacobian(
    f: Lambda | Gradient, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Lambda: ...
@overload
def jacobian(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@shared_with_executors
def jacobian(
    f: Any,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of ``f`` with respect to the arguments ``argnums``, in the cheaper mode.

    This is ``jacfwd`` if the arguments have fewer elements than the result, else ``jacrev``; the
    other one if an operation has a rule for one mode only.

    >>> import numpy as np
    >>> jacobian(np.tanh)(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return _jacobian_transform(
        f, _JacobianOptions("jacobian", argnums, has_aux, holomorphic), _cheaper_blocks
    )


# ---- options and checks ----


@frozen
class _JacobianOptions:
    """The options of a Jacobian, and the name of the transform for error messages."""

    name: str
    argnums: Argnums
    has_aux: bool
    holomorphic: bool


@frozen(eq=False)
class _JacobianProblem:
    """The first ``results`` results of ``fn``, to differentiate with respect to ``inputs``."""

    request: _JacobianOptions
    fn: Lambda
    inputs: list[int]
    results: int

    @property
    def rows(self) -> list[ArrayType]:
        """The types of the differentiated results."""
        return [arg.type for arg in self.fn.ret.args[: self.results]]

    @property
    def columns(self) -> list[ArrayType]:
        """The types of the arguments of the Jacobian."""
        return [self.fn.params[i].type for i in self.inputs]

    def check(self) -> None:
        """Raise DTypeError for types without derivatives, ShapeError for unknown sizes."""
        name = self.request.name
        check_inputs(self.fn, self.inputs, name)
        for aval in (*self.rows, *self.columns):
            if not has_static_shape(aval):
                raise ShapeError(
                    f"{name}: the sizes of arguments and results must be known, found {aval}\n"
                    "  call it on arrays, or give the program types: letir.retype"
                )
        for i, aval in enumerate(self.rows):
            if not aval.inexact:
                raise DTypeError(
                    f"{name}: result {i} is {aval}, which has no derivative\n"
                    "  leave it out, or return (result, this) and pass has_aux=True"
                )

    def check_real(self, avals: list[ArrayType], role: str, remedy: str) -> None:
        """Raise DTypeError for complex types, unless ``holomorphic`` is set."""
        for aval in avals:
            if aval.dtype.kind == "c" and not self.request.holomorphic:
                raise DTypeError(
                    f"{self.request.name}: {role} is {aval}\n"
                    f"  pass holomorphic=True if the function is, or {remedy}"
                )


def _jacobian_transform(f: Callable, request: _JacobianOptions, blocks_of: Callable) -> Callable:
    """The Jacobian of ``f`` as a function, or as a Lambda if ``f`` is a Lambda."""
    f = as_program(f)
    if isinstance(f, Lambda):
        return _jacobian_program(ProgramCall(f, tree_of_arguments(f), []), request, blocks_of)
    options = option_token(astuple(request, recurse=False))

    def transform(call: ProgramCall) -> Transformed:
        return Transformed.from_program(_jacobian_program(call, request, blocks_of))

    @entry_point
    @functools.wraps(f)
    def jacobian_of(*args, **kwargs):
        return call_transformed(f, options, transform, args, kwargs)

    return jacobian_of


@paused_gc()
def _jacobian_program(call: ProgramCall, request: _JacobianOptions, blocks_of: Callable) -> Lambda:
    """A program from the arguments of the call to the Jacobian."""
    inputs, columns = differentiated_arguments(call.tree, request.argnums)
    out, aux = nested_example(call.out_tree), ()
    if request.has_aux:
        out, aux = result_and_aux(out)
    rows = Tree.from_pytree(out)
    task = _JacobianProblem(request, call.fn, inputs, rows.arrays)
    task.check()
    builder, blocks = blocks_of(task)
    results = [*blocks, *call.fn.ret.args[rows.arrays :]]
    nested = rows.unflatten([nested_example(columns)] * rows.arrays)
    tree = Tree.from_pytree((nested, aux) if request.has_aux else nested)
    plain = tree == tree_of_results(len(results))
    return dead_code(builder.build(results, call.fn.in_tree, None if plain else tree))


# ---- the blocks, row by row: a derivative for each result and argument ----


def _cheaper_blocks(task: _JacobianProblem) -> tuple[LetBuilder, list]:
    """The blocks in the mode with fewer directions, or in the only mode with all rules."""
    rows, columns = (sum(aval.size for aval in avals) for avals in (task.rows, task.columns))
    # between real and complex values, unit vectors span only the real side
    complex_ = [
        any(aval.dtype.kind == "c" for aval in avals) for avals in (task.rows, task.columns)
    ]
    if any(complex_) and not all(complex_):
        modes = [_reverse_blocks] if complex_[1] else [_forward_blocks]
    else:
        modes = [_reverse_blocks, _forward_blocks]
        if columns < rows:
            modes.reverse()
    try:
        return modes[0](task)
    except MissingRule:
        if len(modes) == 1:
            raise
        return modes[1](task)


def _reverse_blocks(task: _JacobianProblem) -> tuple[LetBuilder, list]:
    """The blocks in reverse mode, from all unit cotangents at once."""
    task.check_real(task.rows, "a result", "take its real part, or letir.jacfwd")
    fn, inputs = task.fn, set(task.inputs)
    defined = [i < task.results for i in range(len(fn.ret.args))]
    gradient = differentiate(fn, [i in inputs for i in range(len(fn.params))], defined=defined)
    builder, rows = _start_builder(gradient.f, fn), task.rows
    avals = [rows[i] for i in gradient.df_input_vjps]
    captured: list[Arg] = [fn.params[i] for i in gradient.df_input_captured_inputs]
    captured += [gradient.f.ret.args[i] for i in gradient.df_input_captured_outputs]
    cts = _derivatives_along_units(builder, gradient.df, avals, captured)
    by_input = dict(zip(gradient.df_output_vjps, cts, strict=True))
    start = dict(zip(gradient.df_input_vjps, _row_offsets(avals), strict=True))
    return builder, [
        _jacobian_rows(builder, by_input.get(i), start.get(k), row, fn.params[i].type)
        for k, row in enumerate(rows)
        for i in task.inputs
    ]


def _forward_blocks(task: _JacobianProblem) -> tuple[LetBuilder, list]:
    """The blocks in forward mode, from all unit tangents at once."""
    task.check_real(task.columns, "an argument", "take letir.jacrev for a real result")
    fn = task.fn
    # ``argnums`` may contain an argument twice
    pair = linear_program(fn, list(dict.fromkeys(task.inputs)))
    builder, avals = _start_builder(pair.f, fn), [fn.params[i].type for i in pair.inputs]
    captured = pair.captured(fn.params, pair.f.ret.args)
    tangents = _derivatives_along_units(builder, pair.linear, avals, captured)
    by_output = dict(zip(pair.outputs, tangents, strict=True))
    start = dict(zip(pair.inputs, _row_offsets(avals), strict=True))
    return builder, [
        _columns_of(builder, by_output.get(k), start[i], row, fn.params[i].type)
        for k, row in enumerate(task.rows)
        for i in task.inputs
    ]


def _start_builder(primal: Lambda, fn: Lambda) -> LetBuilder:
    """A builder with the parameters of ``fn`` and the binds of ``primal``, made from ``fn``."""
    builder = LetBuilder()
    builder.params, builder.binds = list(fn.params), list(primal.binds)
    return builder


def _row_offsets(avals: list[ArrayType]) -> list[Any]:
    """The position of the first element of each value if all are concatenated."""
    # the slice is for an empty list, for which accumulate gives [0]
    return list(itertools.accumulate([aval.size for aval in avals[:-1]], initial=0))[: len(avals)]


def _derivatives_along_units(
    builder: LetBuilder, linear: Lambda, avals: list[ArrayType], captured: Sequence[Arg]
) -> list[Value | None]:
    """The results of a linear program for all unit directions, stacked along axis 0; None for zero.

    If there is only one direction, there is no such axis.
    """
    total = sum(aval.size for aval in avals)
    if not total:
        return [None] * len(linear.ret.args)
    if total == 1 == len(avals):  # a batch of one would only add axes
        ones_of_one = builder.emit(ones, (), _fill_attrs(avals[0].shape, avals[0].dtype))
        results = builder.inline(linear, [*ones_of_one, *captured])
        axes: Sequence = results
    else:
        starts = zip(avals, _row_offsets(avals), strict=True)
        units = [_unit_block(builder, *pair, total) for pair in starts]
        # one batch for the directions of all values, each zero at the places of the others; the
        # captured values are shared
        program, axes = batch_program(linear, [0] * len(avals) + [None] * len(captured), total)
        results = builder.inline(program, [*units, *captured])
    return [
        Value(builder, result) if type(result) is Local and axis is not None else None
        for result, axis in zip(results, axes, strict=True)
    ]


def _unit_block(builder: LetBuilder, aval: ArrayType, offset: Any, total: Any) -> Local:
    """The columns of the ``total`` x ``total`` identity for a value of this type, at ``offset``."""
    # 1 where row = offset + column
    attrs = eye.complete({"n": total, "m": aval.size, "k": -offset, "dtype": aval.dtype})
    (matrix,) = builder.emit(eye, (), attrs)
    return _reshape_if_needed(Value(builder, matrix), (total, *aval.shape)).arg


def _jacobian_rows(builder, ct: Value | None, start: int | None, row, column) -> Value | Local:
    """The derivative of a result with respect to an argument, from the argument's cotangents."""
    shape = row.shape + column.shape
    if ct is None or start is None:
        return _zeros_of(builder, shape, column.dtype)
    whole = ct.size == row.size * column.size  # the only result, to which all rows belong
    return _reshape_if_needed(ct if whole else ct[start : start + row.size], shape)


def _columns_of(builder, tangent: Value | None, start: int, row, column) -> Value | Local:
    """The derivative of a result with respect to an argument, from the result's tangents."""
    shape = row.shape + column.shape
    if tangent is None:
        return _zeros_of(builder, shape, row.dtype)
    if tangent.shape != row.shape:  # more than one direction, see ``_derivatives_along_units``
        whole = tangent.shape[0] == column.size
        tangent = move_from_front(tangent if whole else tangent[start : start + column.size], -1)
    return _reshape_if_needed(tangent, shape)


def _reshape_if_needed(x: Value, shape: tuple[int, ...]) -> Value:
    """``x`` reshaped, if it has another shape."""
    return x if x.shape == shape else reshape(x, shape)


def _zeros_of(builder: LetBuilder, shape: tuple[int, ...], dtype) -> Local:
    """Emit zeros: the derivative with respect to an argument without influence."""
    return builder.emit(zeros, (), _fill_attrs(shape, dtype))[0]


def _fill_attrs(shape: tuple[int, ...], dtype) -> Attrs:
    """The attributes of the operations ``zeros`` and ``ones``."""
    return Attrs(shape=shape, dtype=dtype)
