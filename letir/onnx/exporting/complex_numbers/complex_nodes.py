"""Operations on complex numbers, by nodes on their real and imaginary parts."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Local
from letir.ast.types import ArrayType, ShapeDtype
from letir.onnx.exporting.complex_numbers.complex_programs import Pair, as_pair, program_on_pairs
from letir.onnx.exporting.complex_numbers.complex_values import real_type
from letir.onnx.exporting.node_graph import (
    COMPLEX,
    Graph,
    Unexportable,
    exports_op,
    is_complex,
    is_undefined,
    real_dtype,
    refuses_operations,
    result_types,
    rule_for,
)
from letir.ops.elementwise.math_functions import numpy_record_of
from letir.ops.indexing.index_expressions import group_parts, split_sizes
from letir.tracing.entry import trace

_rules: dict[str, Callable] = {}  # by operation, for binds with complex operands or results


def _register_complex_rule(rule: Callable, *names: str) -> None:
    """Register ``rule(graph, bind)`` for operations on complex numbers."""
    _rules.update(dict.fromkeys(names, rule))


def has_complex(bind: Bind) -> bool:
    """Whether an operand or a result of a bind is complex."""
    return any(
        arg.type is not None and arg.type is not NO_TYPE and is_complex(arg.type)
        for arg in (*bind.args, *bind.binders)
    )


def emit_pairs(g: Graph, bind: Bind) -> str | Sequence[str] | None:
    """Append the nodes of a bind with complex operands or results; None without a rule."""
    rule, program = _rules.get(bind.op.name), program_on_pairs(bind.op.name)
    if rule is not None:
        return rule(g, bind)
    return None if program is None else _emit_pair_program(g, bind, program)


# ---- parts ----


def _is_complex_arg(arg: Arg) -> bool:
    return arg.type is not NO_TYPE and is_complex(arg.type)


def _local_for_value(g: Graph, name: str, aval: ArrayType) -> Local:
    """A local that stands for a value of the graph."""
    local = Local(aval)
    g.values[local] = name
    return local


def _operand_parts(g: Graph, arg: Arg) -> tuple[Arg, Arg]:
    """The real and the imaginary part of an operand."""
    if type(arg) is Const:
        number = arg.value
        if is_undefined(arg) or number is None:
            return arg, arg
        return Const(number.real), Const(number.imag)
    aval, name = arg.type, g.value(arg)
    if is_complex(aval):
        re, im = g.parts(name)
        return _local_for_value(g, re, real_type(aval)), _local_for_value(g, im, real_type(aval))
    return arg, _local_for_value(g, g.zeros_like(name, aval.dtype), aval)


def _part_of_attr(value: Any, place: int) -> Any:
    if isinstance(value, np.dtype) and value.kind == "c":
        return real_dtype(value)
    if type(value) is complex:
        return value.imag if place else value.real
    return value


def _emit_part(g: Graph, bind: Bind, args: Sequence[Arg], place: int = 0) -> list[str]:
    """The results of an operation on parts of its operands."""
    binders = tuple([Local(real_type(aval)) for aval in result_types(bind)])
    attrs = Attrs({name: _part_of_attr(v, place) for name, v in bind.attrs.items()})
    result = g.emitter.emitted(g, bind.replace(binders=binders, args=tuple(args), attrs=attrs))
    return [result] if type(result) is str else list(result)


def _componentwise(g: Graph, bind: Bind, numbers: Callable) -> list[str]:
    """The operation on the real parts, and on the imaginary parts.

    ``numbers(bind)``: the positions of the operands that are numbers, not indices or shapes.
    """
    linear = set(numbers(bind))
    pairs = [
        _operand_parts(g, arg) if i in linear else (arg, arg) for i, arg in enumerate(bind.args)
    ]
    re, im = (_emit_part(g, bind, [pair[i] for pair in pairs], i) for i in (0, 1))
    return [g.paired(*names) for names in zip(re, im, strict=True)]


def _assembled_parts(bind: Bind) -> list[int]:
    """The positions of the parts of an ``assemble``, between which its indices are."""
    places = split_sizes(tuple(range(len(bind.args))), bind.attrs["shape"])[1]
    return [place for _, place, _ in group_parts(bind.attrs["items"], places)]


def _where(g: Graph, bind: Bind) -> list[str]:
    test, *choices = bind.args
    return _componentwise(
        g, bind.replace(args=(_operand_is_nonzero(g, test), *choices)), lambda _: (1, 2)
    )


def _multilinear(g: Graph, bind: Bind) -> str:
    """The sum over all choices of a part of each complex operand."""
    choices = [(0, 1) if _is_complex_arg(arg) else (0,) for arg in bind.args]
    pairs = [_operand_parts(g, arg) for arg in bind.args]
    sums: list[str] = ["", ""]
    for chosen in itertools.product(*choices):
        turns = sum(chosen)  # powers of i
        args = [pair[i] for pair, i in zip(pairs, chosen, strict=True)]
        (term,) = _emit_part(g, bind, args)
        before, kind = sums[turns % 2], "Sub" if turns % 4 >= 2 else "Add"
        if before:
            sums[turns % 2] = g(kind, before, term)
        else:
            sums[turns % 2] = g("Neg", term) if kind == "Sub" else term
    return g.paired(*sums)


def _operand_is_nonzero(g: Graph, arg: Arg) -> Arg:
    """Whether elements of a complex operand are not zero; other operands are returned unchanged."""
    if not _is_complex_arg(arg):
        return arg
    name = g.cast(g.operand(arg), arg.type.dtype, bool)
    return _local_for_value(g, name, ArrayType(bool, arg.type.shape))


def _export_truth_values(g: Graph, bind: Bind) -> Any:
    return g.emitter.emitted(
        g, bind.replace(args=tuple([_operand_is_nonzero(g, a) for a in bind.args]))
    )


# ---- programs on pairs ----


def _emit_pair_program(g: Graph, bind: Bind, program: Callable) -> list[str]:
    """The results of a function of ``Pair``s, recorded on the parts."""
    avals: list[ArrayType] = []
    names: list[str] = []
    for arg in bind.args:
        if type(arg) is Const:
            continue
        if is_complex(arg.type):
            avals += [real_type(arg.type)] * 2
            names += g.parts(g.value(arg))
        else:
            avals.append(arg.type)
            names.append(g.value(arg))
    examples = [ShapeDtype(aval.shape, aval.dtype) for aval in avals]
    program_on_parts = trace(partial(_results_on_parts, program, bind), *examples)
    names_of_parts = iter(g.emitter.recorded(g, program_on_parts, names))
    return [
        g.paired(next(names_of_parts), next(names_of_parts))
        if is_complex(aval)
        else next(names_of_parts)
        for aval in result_types(bind)
    ]


def _results_on_parts(program: Callable, bind: Bind, *parts: Any) -> tuple:
    """The parts of the results of a program, as arrays."""
    kinds = result_types(bind)
    dtype = real_dtype(kinds[0].dtype)  # in which an elementwise operation is computed
    exact = bind.op.elementwise and dtype.kind == "f"
    remaining = iter([part.astype(dtype) for part in parts] if exact else parts)
    values: list[Any] = []
    for arg in bind.args:
        if type(arg) is Const:
            number = arg.value
            is_number = type(number) is complex
            values.append(Pair(number.real, number.imag) if is_number else number)
        else:
            is_pair = is_complex(arg.type)
            values.append(Pair(next(remaining), next(remaining)) if is_pair else next(remaining))
    results = program(*values, **bind.attrs)
    results = results if type(results) is tuple else (results,)
    result: list[Any] = []
    for x, aval in zip(results, kinds, strict=True):
        both = as_pair(x) if is_complex(aval) else (x,)
        result += [part.astype(real_dtype(aval.dtype)) for part in both]
    return tuple(result)


# ---- rules ----


def _cast(g: Graph, bind: Bind) -> str:
    return g.cast(g.operand(bind.args[0]), bind.args[0].type.dtype, bind.attrs["dtype"])


def _real(g: Graph, bind: Bind) -> str:
    return g.parts(g.operand(bind.args[0]))[0]


def _imag(g: Graph, bind: Bind) -> str:
    return g.parts(g.operand(bind.args[0]))[1]


def _conj(g: Graph, bind: Bind) -> str:
    re, im = g.parts(g.operand(bind.args[0]))
    return g.paired(re, g("Neg", im))


def _constant(g: Graph, bind: Bind) -> str:
    value = np.asarray(bind.attrs["value"])
    return g.paired(g.array(value.real), g.array(value.imag))


def _complex_of(g: Graph, bind: Bind) -> str:
    aval = result_types(bind)[0]
    shape = g.ints(aval.shape)
    parts = [g.operand(arg, real_dtype(aval.dtype)) for arg in bind.args]
    whole = [arg.type.shape == aval.shape for arg in bind.args]
    pairs = zip(parts, whole, strict=True)
    return g.paired(*[name if is_whole else g("Expand", name, shape) for name, is_whole in pairs])


def _ones(g: Graph, bind: Bind) -> str:
    (re,) = _emit_part(g, bind, bind.args)
    return g.paired(re, g.zeros_like(re, real_dtype(bind.attrs["dtype"])))


def _shape_only(g: Graph, bind: Bind) -> Any:
    return _emit_part(g, bind, [_operand_parts(g, arg)[0] for arg in bind.args])


def _as_one(g: Graph, bind: Bind) -> Any:
    """The rule for real numbers: it handles pairs, or emits binds that have rules for them."""
    return rule_for(bind.op.name)(g, bind)


def _python_product(g: Graph, bind: Bind) -> Any:
    """A product of Python's complex numbers."""
    if bind.attrs["operator"] != "mul":
        raise Unexportable(f"Python's {bind.attrs['operator']} of complex numbers")
    return _multilinear(g, bind.replace(op=PRIMITIVES["mul"], attrs=Attrs()))


def _python_function(g: Graph, bind: Bind) -> Any:
    """A function of Python's ``cmath``."""
    name = bind.attrs["name"]
    if name == "rect":
        return _emit_pair_program(
            g, bind, lambda r, phi, name: Pair(r * np.cos(phi), r * np.sin(phi))
        )
    if len(bind.args) > 1:
        raise Unexportable("a logarithm to a complex base")
    op = numpy_record_of(name)
    return g.emitter.emitted(g, bind.replace(op=op, attrs=op.complete({})))


refuses_operations(COMPLEX, "wofz")
exports_op("complex_of")(_complex_of)
exports_op("complex_math_function")(_python_function)
_register_complex_rule(_complex_of, "complex_of")
_register_complex_rule(_cast, "cast")
_register_complex_rule(_real, "real")
_register_complex_rule(_imag, "imag")
_register_complex_rule(_conj, "conj")
_register_complex_rule(_constant, "constant")
_register_complex_rule(_ones, "ones")
_register_complex_rule(_shape_only, "size", "length")
_register_complex_rule(_where, "where")
_register_complex_rule(_multilinear, "dot", "einsum", "matmul", "mul")
_register_complex_rule(_python_product, "python_operator")
_register_complex_rule(_python_function, "complex_math_function")
_register_complex_rule(_multilinear, "conv", "conv_transpose", "conv_weight", "convolve")
_register_complex_rule(
    _export_truth_values, "all", "any", "count_nonzero", "logical_and", "logical_not"
)
_register_complex_rule(_export_truth_values, "logical_or", "logical_xor")
_register_complex_rule(partial(_componentwise, numbers=_assembled_parts), "assemble")
_register_complex_rule(
    partial(_componentwise, numbers=lambda bind: range(len(bind.args))),
    *("add", "autograd_add", "concatenate", "linspace", "stack", "sub"),
)
_register_complex_rule(
    partial(_componentwise, numbers=lambda bind: (0, 1)), "index_add", "index_set"
)
_register_complex_rule(
    partial(_componentwise, numbers=lambda bind: (0,)),
    *("barrier", "broadcast_to", "copy", "cumsum", "expand_dims", "flip", "fold", "full", "index"),
    *("instantiate", "mean", "neg", "positive", "reshape", "roll", "sliding_window_view"),
    *("split", "squeeze", "stop_gradient", "sum", "sum_to_size", "transpose", "tril", "triu"),
    *("unfold", "weaken", "zeros"),
)
_register_complex_rule(
    _as_one,
    *("cond", "differentiable_graph", "errstate", "fftn", "fori_loop", "fused", "grad_of", "ifftn"),
    *("irfftn", "looped", "rfftn", "scan", "switch", "when_defined", "while_loop", "while_scan"),
    "write_back",
)
