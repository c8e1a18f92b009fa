"""``export``: a program, or a function with example arguments, as an ONNX model."""

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from letir.ad.gradient_program import Gradient
from letir.ast import entry_point
from letir.ast.primitive import PRIMITIVES, record_of
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import flatten
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.text.printer import line_of
from letir.ast.types import ShapeDtype
from letir.errors import ExportError
from letir.eval.arguments import leaf_names
from letir.onnx.exporting import rule_families
from letir.onnx.exporting.complex_numbers.complex_values import (
    complex_input,
    complex_output,
    real_pairs,
)
from letir.onnx.exporting.graph_cleanup import name_results
from letir.onnx.exporting.node_emission import Emission
from letir.onnx.exporting.node_graph import Graph, value_info
from letir.onnx.exporting.value_names import input_names_of, names_of_joined, output_names_of
from letir.onnx.package import onnx_package
from letir.passes.lowering import without_writes
from letir.tracing.entry import trace

OPSET = 23  # of the models by default: the first with Attention and RMSNormalization
_MIN_OPSET = 18  # the first in which the axes of all reductions are an input
_INLINE_BYTES = 1 << 30  # larger models keep their arrays in a file beside them
_EXTERNAL_BYTES = 1024  # smaller arrays stay in the model


@entry_point
def export(
    f: Lambda | Gradient | Callable,
    path: str | os.PathLike | None = None,
    *,
    args: Sequence | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET,
    dynamic_axes: Mapping[str, Any] | None = None,
    external_data: bool | None = None,
    overrides: Mapping[str, Callable] | None = None,
    custom_domain: str | None = None,
) -> Any:
    """The ONNX model of a program, or of a function that is recorded at ``args``.

    A Gradient becomes one model of both passes: it takes the inputs and a cotangent
    ``ct_<result>`` for each result, and returns the results and the cotangents ``ct_<input>``.
    ``path``: also write it to this file. ``dynamic_axes``: ``{input: {axis: name}}``, the axes
    whose sizes may differ between calls; a program recorded with symbolic sizes has them already.
    ``external_data``: whether arrays are written to a file beside ``path``; by default for models
    larger than a gibibyte. ``overrides``: ``{operation: rule}`` with ``rule(graph, bind)`` as in
    ``letir.onnx.exporting``. ``custom_domain``: operations that only Python can compute become
    nodes of this domain. Raises ExportError that lists all binds that ONNX cannot express.

    >>> import numpy as np
    >>> model = export(lambda x: np.tanh(x) * 2, args=(np.zeros(3),))
    >>> [node.op_type for node in model.graph.node]
    ['Tanh', 'Mul']
    """
    onnx = onnx_package()
    _check_opset(opset, onnx)
    _check_path(path)
    if external_data and path is None:
        raise ExportError(
            "export: external_data=True writes a file beside the model's\n  pass a path too"
        )
    if isinstance(f, Gradient):
        gradient, f = f, f.joined()
        names = names_of_joined(gradient, f)
        input_names, output_names = input_names or names[0], output_names or names[1]
    program = recorded_program(f, args, dynamic_axes, input_names, output_names)
    if not program.ret.args:
        raise ExportError(
            "export: the program has no arrays or numbers among its results\n"
            "  return what the model should compute: a model cannot return strings or None"
        )
    _check_overrides(overrides or {})
    with paused_gc():
        model = _model_of_program(
            program, (input_names, output_names), opset, (overrides, custom_domain)
        )
    if path is not None:
        _save_model(model, Path(os.fsdecode(path)), external_data)
    return model


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raise ExportError for a name that no operation has, or a rule that is not a function."""
    for name, rule in overrides.items():
        if record_of(name) is None:
            close = difflib.get_close_matches(str(name), PRIMITIVES.keys(), 1, 0.75)
            hint = (
                f"did you mean {close[0]!r}?"
                if close
                else "print the program: it shows the names of its operations"
            )
            raise ExportError(
                f"export: overrides names {name!r}, which is not an operation\n  {hint}"
            )
        if not callable(rule):
            raise ExportError(
                f"export: the override of {name} must be a function, found {rule!r}\n"
                "  pass a function rule(graph, bind)"
            )


def _check_path(path: Any) -> None:
    """Raise ExportError for a path that does not name a file, such as the example arguments."""
    if path is not None and not isinstance(path, str | bytes | os.PathLike):
        raise ExportError(
            f"export: path is the name of a file, found an object of type {type(path).__name__}\n"
            "  pass example arguments by name: letir.onnx.export(f, args=(x,)), which returns\n"
            "  the model; model.SerializeToString() gives its bytes"
        )


def _check_opset(opset: int, onnx: Any) -> None:
    newest = onnx.defs.onnx_opset_version()
    if type(opset) is not int or not _MIN_OPSET <= opset <= newest:
        raise ExportError(
            f"export: opset {opset!r} is not one of {_MIN_OPSET} to {newest}\n"
            f"  leave it out for {OPSET}, or install a newer onnx"
        )


def recorded_program(
    f: Lambda | Callable,
    args: Sequence | None,
    dynamic_axes: Any,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Lambda:
    """The program to export, without writes to its arguments."""
    if type(f) is Lambda:
        if dynamic_axes:
            raise ExportError(
                "export: a recorded program has its sizes already, dynamic_axes cannot change them"
                "\n  record it with letir.ShapeDtype(('n', 3), dtype), or pass the function"
            )
        return without_writes(f)
    if args is None:
        raise ExportError(
            "export: a function is recorded at example arguments\n"
            "  pass them: letir.onnx.export(f, 'f.onnx', args=(x,))"
        )
    examples = tuple(args) if isinstance(args, tuple | list) else (args,)
    if dynamic_axes:
        names = leaf_names(f, examples, {}) if input_names is None else list(input_names)
        named_axes = {n: axes for n, axes in dynamic_axes.items() if n not in (output_names or ())}
        examples = _with_named_sizes(names, examples, named_axes)
    # letir.jit and other wrappers are callables that record their function
    return without_writes(trace(f, *examples))


def _with_named_sizes(names: Sequence, args: tuple, dynamic_axes: Mapping) -> tuple:
    """The arguments with the named axes as symbolic sizes."""
    arrays, spec = flatten(args)
    unknown = sorted(map(str, dynamic_axes.keys() - set(names)))
    if unknown:
        raise ExportError(
            f"export: dynamic_axes names {', '.join(unknown)}; the inputs are "
            f"{', '.join(map(str, names))}\n  use the inputs' names"
        )
    pairs = zip(arrays, names, strict=False)
    sized: Any = [_with_sizes(x, name, dynamic_axes.get(name, {})) for x, name in pairs]
    return tuple(spec.unflatten([*sized, *arrays[len(sized) :]]))


def _with_sizes(array: Any, name: str, axes: Any) -> Any:
    """The array's type with named sizes; the array itself without such axes."""
    if not axes:
        return array
    if not hasattr(array, "shape"):
        raise ExportError(
            f"export: dynamic_axes names {name}, which is not an array\n  leave it out"
        )
    if not isinstance(axes, Mapping):
        axes = {axis: f"{name}_{axis}".replace(".", "_") for axis in axes}
    shape = list(array.shape)
    for axis, size in axes.items():
        is_axis = type(axis) is int and -len(shape) <= axis < len(shape)
        if not is_axis or type(size) is not str:
            raise ExportError(
                f"export: dynamic_axes gives {name}, of shape {array.shape}, the entry "
                f"{axis!r}: {size!r}\n"
                "  map axes of the array to names, as in {0: 'batch'}"
            )
        shape[axis] = size
    return ShapeDtype(tuple(shape), array.dtype)


# ---- the model ----


def _model_of_program(fn: Lambda, names: tuple, opset: int, options: tuple) -> Any:
    """The model of a program."""
    onnx, (input_names, output_names) = onnx_package(), names
    overrides, custom_domain = options
    emission = Emission(dict(overrides or {}), custom_domain)
    g = Graph(opset, emission)
    inputs = input_names_of(fn, input_names)
    outputs = output_names_of(fn, output_names, inputs)
    g.names.taken.update(inputs, outputs)
    for param, name in zip(fn.params, inputs, strict=True):
        _check_type(param, name)
        g.inputs.append((param, name))
    results = emission.body(g, fn, [complex_input(g, *pair) for pair in g.inputs])
    if emission.failures:
        raise ExportError(_failure_report(fn, emission.failures))
    avals = [arg.type for arg in fn.ret.args]
    results = [complex_output(g, *pair) for pair in zip(results, avals, strict=True)]
    name_results(g, rule_families.fail_unless_guards_hold(g, results), outputs)
    graph = onnx.helper.make_graph(
        g.nodes,
        "letir",
        [value_info(name, real_pairs(param.type)) for param, name in g.inputs],
        [
            onnx.ValueInfoProto(name=name)
            if arg.type is None
            else value_info(name, real_pairs(arg.type))
            for name, arg in zip(outputs, fn.ret.args, strict=True)
        ],
        g.initializers,
    )
    model = _model_around_graph(graph, opset, custom_domain if emission.uses_domain else None)
    is_typed = all(aval is not None for aval in avals)
    return model if is_typed else _with_inferred_types(model)


def _model_around_graph(graph: Any, opset: int, custom_domain: str | None) -> Any:
    """The model around a graph."""
    onnx = onnx_package()
    imports = [onnx.helper.make_opsetid("", opset)]
    if custom_domain is not None:
        imports.append(onnx.helper.make_opsetid(custom_domain, 1))
    model = onnx.helper.make_model(graph, opset_imports=imports, producer_name="letir")
    # metadata of nodes exists since version 10
    model.ir_version = max(10, onnx.helper.find_min_ir_version_for(imports[:1]))
    return model


def _with_inferred_types(model: Any) -> Any:
    """The model with the types of results that ONNX infers, where letir does not know them."""
    inferred = onnx_package().shape_inference.infer_shapes(model)
    for result in inferred.graph.output:
        if not result.type.tensor_type.elem_type:
            raise ExportError(
                f"export: the type of the result {result.name} is not known\n"
                "  record the program at example arguments, or give its parameters types"
            )
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)
    return model


def _check_type(param: Local, name: str) -> None:
    """Raise ExportError if the type of a parameter is not known."""
    if not hasattr(param.type, "shape"):
        raise ExportError(
            f"export: the type of the parameter {name} is not known\n"
            "  record the program at example arguments, or give its parameters types"
        )


def _failure_report(fn: Lambda, failures: Sequence[tuple[Bind, str]]) -> str:
    """The message that lists all binds that could not be exported."""
    lines = []
    for bind, reason in failures:
        place = "" if bind.source is None else f"  # {bind.source}"
        text = line_of(fn, bind).partition("  # ")[0]
        text = text if len(text) <= 100 else f"{text[:97]}..."
        lines.append(f"  {text}{place}\n    {reason}")
    count = f"{len(failures)} operations" if len(failures) > 1 else "an operation"
    return (
        f"export: ONNX cannot express {count} of this program:\n"
        + "\n".join(lines)
        + "\n  write them with other operations, or pass overrides={'operation': rule}"
    )


# ---- files ----


def _save_model(model: Any, path: Path, external_data: bool | None) -> None:
    """Write a model, with its arrays in a file beside it if asked for, or if it is large."""
    onnx = onnx_package()
    if external_data is None:
        external_data = model.ByteSize() > _INLINE_BYTES
    if not external_data:
        path.write_bytes(model.SerializeToString())
        return
    copied = onnx.ModelProto()
    copied.CopyFrom(model)  # so that the caller's model keeps its arrays
    beside = f"{path.name}.data"
    path.with_name(beside).unlink(missing_ok=True)  # onnx would append to it
    onnx.save_model(
        copied,
        str(path),
        save_as_external_data=True,
        location=beside,
        size_threshold=_EXTERNAL_BYTES,
    )
