"""Control flow as If, Loop and Scan, guards, and the operations of gradient programs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ad.symbolic_zeros import specialize_undef
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda
from letir.ast.types import ArrayType
from letir.onnx.exporting.complex_numbers.complex_values import (
    emit_on_parts,
    flat_kinds,
    flat_values,
    paired_values,
)
from letir.onnx.exporting.elementwise_nodes import as_truth
from letir.onnx.exporting.node_graph import (
    UNDEFINED,
    Graph,
    Unexportable,
    exports_op,
    is_undefined,
    result_types,
    value_info,
)
from letir.onnx.exporting.recurrent_nodes import recurrent_layer
from letir.onnx.exporting.shape_nodes import flip_axes
from letir.onnx.package import onnx_package

_INT = np.dtype(np.int64)
_BOOL = ArrayType(bool, ())

# ---- choices ----


@exports_op("cond")
def _cond(g: Graph, bind: Bind) -> Sequence[str]:
    test, *operands = bind.args
    bodies = bind.attrs["on_true"], bind.attrs["on_false"]
    truth = as_truth(g, test)
    if test.type.ndim:
        truth = g.squeeze(truth, list(range(test.type.ndim)))
    return _if_node(g, bind, truth, [_emitter_of_body(g, body, operands) for body in bodies])


@exports_op("switch")
def _switch(g: Graph, bind: Bind) -> Sequence[str]:
    number, *operands = bind.args
    branches = bind.attrs["branches"]
    name = g.operand(number, _INT)
    if number.type.ndim:
        name = g.squeeze(name, list(range(number.type.ndim)))
    return _nested_if(g, bind, name, [_emitter_of_body(g, body, operands) for body in branches])


def _nested_if(g: Graph, bind: Bind, number: str, branches: list[Callable]) -> Sequence[str]:
    """Nested If nodes; a number beyond the last branch selects the last one."""
    *_, last = branches
    chosen = last
    for place in range(len(branches) - 2, -1, -1):
        chosen = _first_or_rest(bind, number, place, branches[place], chosen)
    return chosen(g)


def _first_or_rest(
    bind: Bind, number: str, place: int, first: Callable, rest: Callable
) -> Callable:
    def emit(g: Graph) -> Sequence[str]:
        test = g("LessOrEqual", number, g.array(place, np.int64))
        return _if_node(g, bind, test, [first, rest])

    return emit


def _emitter_of_body(g: Graph, body: Lambda, operands: Sequence) -> Callable:
    """The function that appends a body to a graph and returns the names of its results."""

    def emit(inner: Graph) -> Sequence[str]:
        return inner.emitter.body(inner, body, operands)

    return emit


def _if_node(g: Graph, bind: Bind, test: str, branches: list[Callable]) -> Sequence[str]:
    """An If node. Both branches give the types of the bind's results."""
    types = result_types(bind)
    graphs = []
    for branch in branches:
        inner = g.subgraph()
        results = flat_values(inner, zip(branch(inner), types, strict=True))
        graphs.append(_graph_proto(inner, [], results))
    on_true, on_false = graphs
    count = len(results)
    names = g("If", test, results=count, then_branch=on_true, else_branch=on_false)
    return paired_values(g, [names] if count == 1 else names, types)


def _graph_proto(
    g: Graph, inputs: Sequence[tuple[str, ArrayType]], outputs: Sequence[tuple[str, ArrayType]]
) -> Any:
    """The ONNX graph of a body; values of outer graphs become outputs by Identity nodes."""
    passed = [(g("Identity", name), kind) for name, kind in outputs]
    return onnx_package().helper.make_graph(
        g.nodes,
        g.names.new("body"),
        [value_info(name, kind) for name, kind in inputs],
        [value_info(name, kind) for name, kind in passed],
    )


# ---- loops ----


def _loop_node(
    g: Graph,
    carried: Sequence[tuple[str, ArrayType]],
    step: Callable[[Graph, str, Sequence[str]], tuple],
    stacked: Sequence[ArrayType],
    *,
    count: str = "",
    test: str = "",
) -> list[str]:
    """A Loop node. ``step(graph, number, carry)`` gives (test or "", carry, stacked results).

    ``stacked``: the types, in one step, of the results that the loop stacks.
    """
    inner = g.subgraph()
    number, going = inner.names.new("iteration"), inner.names.new("condition")
    types = [kind for _, kind in carried]
    first = flat_values(g, carried)
    inputs = [(inner.names.new("carry"), kind) for _, kind in first]
    values = paired_values(inner, [name for name, _ in inputs], types)
    next_test, carry, rows = step(inner, number, values)
    outputs = [(next_test or going, _BOOL)]
    outputs += flat_values(inner, zip(carry, types, strict=True))
    outputs += flat_values(inner, zip(rows, stacked, strict=True))
    body = _graph_proto(inner, [(number, ArrayType(_INT, ())), (going, _BOOL), *inputs], outputs)
    results = len(outputs) - 1
    if not results:
        return []
    test = test or g.array(True, np.dtype(bool))  # onnx's reference evaluator needs one
    names = g("Loop", count, test, *[name for name, _ in first], results=results, body=body)
    names = [names] if results == 1 else list(names)
    rows = names[len(first) :]
    parts = flat_kinds(stacked)
    names[len(first) :] = [
        _with_symbolic_rows(g, name, kind) for name, kind in zip(rows, parts, strict=True)
    ]
    return paired_values(g, names, [*types, *stacked])


def _with_symbolic_rows(g: Graph, name: str, aval: ArrayType) -> str:
    """Stacked rows, reshaped to their type: without rows, runtimes lose their symbolic sizes."""
    if is_static_shape(aval.shape):
        return name
    try:
        sizes = g.ints(aval.shape)
    except Unexportable:  # the rows of a nested loop: their number is not a size of an input
        return name
    return g("Reshape", name, g("Concat", g("Shape", name, end=1), sizes, axis=0), allowzero=1)


@exports_op("fori_loop")
def _fori_loop(g: Graph, bind: Bind) -> Sequence[str]:
    body, types = bind.attrs["body"], result_types(bind)
    lower, upper = (g.operand(arg, _INT) for arg in bind.args[:2])
    carried = bind.args[2 : 2 + len(types)]
    captured = [g.operand(arg) for arg in bind.args[2 + len(types) :]]

    def step(inner: Graph, number: str, carry: Sequence[str]) -> tuple:
        place = inner("Add", number, lower)
        return "", inner.emitter.body(inner, body, [place, *carry, *captured]), []

    first = [(g.operand(arg, aval.dtype), aval) for arg, aval in zip(carried, types, strict=True)]
    trips = g("Max", g("Sub", upper, lower), g.array(0, np.int64))
    return _loop_node(g, first, step, [], count=trips)


@exports_op("while_loop")
def _while_loop(g: Graph, bind: Bind) -> Sequence[str]:
    body, test, types = bind.attrs["body"], bind.attrs["test"], result_types(bind)
    captured = [g.operand(arg) for arg in bind.args[len(types) :]]

    def step(inner: Graph, number: str, carry: Sequence[str]) -> tuple:
        result = inner.emitter.body(inner, body, [*carry, *captured])
        return _loop_test(inner, test, [*result, *captured]), result, []

    first = [(g.operand(a, aval.dtype), aval) for a, aval in zip(bind.args, types, strict=False)]
    going = _loop_test(g, test, [*[name for name, _ in first], *captured])
    return _loop_node(g, first, step, [], test=going)


def _loop_test(g: Graph, test: Lambda, operands: Sequence[str]) -> str:
    """The result of a loop's test: whether another iteration follows."""
    (holds,) = g.emitter.body(g, test, operands)
    aval = test.ret.args[0].type
    truth = g.cast(holds, aval.dtype, bool)
    return g.squeeze(truth, list(range(aval.ndim)))


@exports_op("while_scan")
def _while_scan(g: Graph, bind: Bind) -> Sequence[str]:
    body, test, n_carry = (bind.attrs[name] for name in ("body", "test", "n_carry"))
    numbered = bind.attrs["numbered"]
    captured = [g.operand(arg) for arg in bind.args[n_carry:]]
    avals = [arg.type for arg in body.ret.args]
    rows = [*([] if numbered else [ArrayType(_INT, ())]), *avals[n_carry:]]

    def step(inner: Graph, number: str, carry: Sequence[str]) -> tuple:
        results = inner.emitter.body(inner, body, [*carry, *captured])
        going = _loop_test(inner, test, [*results[:n_carry], *captured])
        return going, results[:n_carry], [*([] if numbered else [number]), *results[n_carry:]]

    types = avals[:n_carry]
    first = [(g.operand(a, aval.dtype), aval) for a, aval in zip(bind.args, types, strict=False)]
    going = _loop_test(g, test, [*[name for name, _ in first], *captured])
    return _loop_node(g, first, step, rows, test=going)


@exports_op("scan")
def _scan(g: Graph, bind: Bind) -> Sequence[str]:
    body, n_carry, n_xs = (bind.attrs[name] for name in ("body", "n_carry", "n_xs"))
    length, is_reverse = bind.attrs["length"], bind.attrs["reverse"]
    layer = recurrent_layer(bind)
    if layer is not None:
        return _recurrent_layer_node(g, bind, layer)
    rows = bind.args[n_carry : n_carry + n_xs]
    captured = [g.operand(arg) for arg in bind.args[n_carry + n_xs :]]
    avals = [arg.type for arg in body.ret.args]
    pairs = zip(bind.args[:n_carry], avals[:n_carry], strict=True)
    first = [(g.operand(a, aval.dtype), aval) for a, aval in pairs]

    def emit(inner: Graph, carry: Sequence[str], xs: Sequence[str]) -> list[str]:
        return inner.emitter.body(inner, body, [*carry, *xs, *captured])

    if _has_steps(rows):
        return _scan_node(g, first, rows, emit, avals[n_carry:], is_reverse)
    xs = [g.operand(arg) for arg in rows]
    count = g.number(length) if length is not None else _row_count(g, xs[0])
    if is_reverse:  # read backwards, and the rows turned around at the end
        xs = [_reverse_rows(g, x, arg.type) for x, arg in zip(xs, rows, strict=True)]

    def step(inner: Graph, number: str, carry: Sequence[str]) -> tuple:
        result = emit(inner, carry, _rows_at(inner, xs, rows, number))
        return "", result[:n_carry], result[n_carry:]

    result = _loop_node(g, first, step, avals[n_carry:], count=count)
    if is_reverse:
        stacked = zip(result[n_carry:], avals[n_carry:], strict=True)
        result[n_carry:] = [_reverse_rows(g, name, aval) for name, aval in stacked]
    return result


def _reverse_rows(g: Graph, name: str, aval: ArrayType) -> str:
    return emit_on_parts(g, name, aval, lambda part: flip_axes(g, part, [0]))


def _rows_at(g: Graph, names: Sequence[str], args: Sequence[Arg], number: str) -> list[str]:
    """One row of each array."""
    return [
        emit_on_parts(g, x, arg.type, lambda part: g("Gather", part, number, axis=0))
        for x, arg in zip(names, args, strict=True)
    ]


def _recurrent_layer_node(
    g: Graph, bind: Bind, emit: Callable[[Graph], list[str]]
) -> Sequence[str]:
    """A recurrent layer; its initial states if there are no rows, which onnxruntime refuses."""
    n_carry = bind.attrs["n_carry"]
    states, x = bind.args[:n_carry], bind.args[n_carry]
    if _has_steps([x]):
        return emit(g)

    def unchanged(inner: Graph) -> list[str]:
        first = [inner.operand(arg) for arg in states]
        nothing = inner.unsqueeze(first[0], [0])
        zero = inner.array([0], np.int64)
        no_rows = inner("Slice", nothing, zero, zero, zero)
        return [*first, *[no_rows] * (len(bind.binders) - n_carry)]

    count = _row_count(g, g.operand(x))
    return _if_node(g, bind, g("Equal", count, g.array(0, np.int64)), [unchanged, emit])


def _has_steps(rows: Sequence[Arg]) -> bool:
    """Whether there certainly is a first row: onnxruntime refuses a Scan over no rows."""
    avals = [arg.type for arg in rows]
    return bool(avals) and all(
        aval is not None and type(aval.shape[0]) is int and aval.shape[0] for aval in avals
    )


def _row_count(g: Graph, x: str) -> str:
    return g.squeeze(g("Shape", x, start=0, end=1), [0])


def _scan_node(
    g: Graph,
    carried: Sequence[tuple[str, ArrayType]],
    rows: Sequence[Arg],
    emit: Callable[[Graph, Sequence[str], Sequence[str]], list[str]],
    stacked: Sequence[ArrayType],
    is_reverse: bool = False,
) -> list[str]:
    """A Scan node. ``emit(graph, carry, rows)`` gives the next carry and the stacked results."""
    inner, way = g.subgraph(), int(is_reverse)
    kinds = [kind for _, kind in carried]
    row_kinds = [ArrayType(arg.type.dtype, arg.type.shape[1:]) for arg in rows]
    first = flat_values(g, carried)
    arrays = flat_values(g, [(g.operand(arg), arg.type) for arg in rows])
    carry = [(inner.names.new("carry"), kind) for _, kind in first]
    xs = [(inner.names.new("row"), ArrayType(k.dtype, k.shape[1:])) for _, k in arrays]
    values = paired_values(inner, [name for name, _ in carry], kinds)
    emitted = emit(inner, values, paired_values(inner, [name for name, _ in xs], row_kinds))
    types = [*kinds, *stacked]
    outputs = flat_values(inner, zip(emitted, types, strict=True))
    body = _graph_proto(inner, [*carry, *xs], outputs)
    if not outputs:
        return []
    names = g(
        *("Scan", *[name for name, _ in first], *[name for name, _ in arrays]),
        results=len(outputs),
        body=body,
        num_scan_inputs=len(arrays),
        scan_input_directions=[way] * len(arrays),
        scan_output_directions=[way] * (len(outputs) - len(first)) or None,
    )
    return paired_values(g, [names] if len(outputs) == 1 else names, types)


@exports_op("looped")
def _loop_over_examples(g: Graph, bind: Bind) -> Sequence[str]:
    body, mapped = bind.attrs["body"], bind.attrs["mapped"]
    operands = g.operands(bind)
    avals = [arg.type for arg in body.ret.args]
    rows = [arg for arg, is_set in zip(bind.args, mapped, strict=True) if is_set]

    def emit(inner: Graph, carry: Sequence[str], xs: Sequence[str]) -> list[str]:
        remaining = iter(xs)
        pairs = zip(operands, mapped, strict=True)
        example_operands = [next(remaining) if is_set else name for name, is_set in pairs]
        return inner.emitter.body(inner, body, example_operands)

    if _has_steps(rows):
        return _scan_node(g, [], rows, emit, avals)
    xs = [name for name, is_set in zip(operands, mapped, strict=True) if is_set]

    def step(inner: Graph, number: str, carry: Sequence[str]) -> tuple:
        return "", [], emit(inner, [], _rows_at(inner, xs, rows, number))

    return _loop_node(g, [], step, avals, count=_row_count(g, xs[0]))


# ---- bodies that run once ----


@exports_op("fused", "errstate")
def _body_itself(g: Graph, bind: Bind) -> Sequence[str]:
    return g.emitter.body(g, bind.attrs["body"], bind.args)


@exports_op("grad_of", "when_defined")
def _gradient_step(g: Graph, bind: Bind) -> Sequence[str]:
    body, defined = bind.attrs["body"], [not is_undefined(arg) for arg in bind.args]
    if not any(defined[: bind.attrs["n_cts"]]):
        raise Unexportable(UNDEFINED)
    operands = [arg if is_set else "" for arg, is_set in zip(bind.args, defined, strict=True)]
    return g.emitter.body(g, specialize_undef(body, defined), operands)


@exports_op("differentiable_graph")
def _differentiable_graph(g: Graph, bind: Bind) -> Sequence[str]:
    return g.emitter.body(g, bind.attrs["f"], bind.args)[: len(bind.binders)]


@exports_op("autograd_add")
def _autograd_add(g: Graph, bind: Bind) -> str:
    x, y = bind.args
    if is_undefined(x) or is_undefined(y):
        return g.operand(y if is_undefined(x) else x)
    return g("Add", *g.operands(bind, result_types(bind)[0].dtype))
