"""``export_vjp``: the forward and the backward pass of a program as two ONNX models."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import Gradient, Policy
from letir.ast import entry_point
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import carries_derivative
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Lambda
from letir.errors import ExportError
from letir.onnx.exporting.exported_models import OPSET, export, recorded_program
from letir.onnx.exporting.node_graph import is_undefined
from letir.onnx.exporting.value_names import input_names_of, output_names_of
from letir.ops.shape.shape_and_creation import zeros


@entry_point
def export_vjp(
    f: Lambda | Callable,
    path: str | os.PathLike | None = None,
    *,
    args: Sequence | None = None,
    requires_grad: Sequence[bool] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int = OPSET,
    dynamic_axes: Mapping[str, Any] | None = None,
    external_data: bool | None = None,
    overrides: Mapping[str, Callable] | None = None,
    custom_domain: str | None = None,
    policy: Policy = "keep_all",
) -> tuple[Any, Any]:
    """(forward, backward): ONNX models of a program and of its vector-Jacobian product.

    The forward model returns the results and then the residuals. The backward model takes the
    cotangents ``ct_<result>``, and residuals and inputs under the names that they have in the
    forward model; it returns the cotangents ``ct_<input>`` of the inputs that require grad, by
    default of all floating ones. ``path``: also write them to files, ``net.forward.onnx`` and
    ``net.backward.onnx`` for ``net.onnx``. ``policy`` chooses the residuals as for
    ``differentiate``; the other options are those of ``export``. One model of both passes is
    ``export(differentiate(program))``.

    >>> import numpy as np
    >>> forward, backward = export_vjp(lambda x, w: np.exp(x) * w, args=(np.ones(3), np.ones(3)))
    >>> [result.name for result in forward.graph.output]
    ['output', 'residual_0']
    >>> [given.name for given in backward.graph.input]
    ['ct_output', 'w', 'residual_0']
    >>> [result.name for result in backward.graph.output]
    ['ct_x', 'ct_w']
    """
    program = recorded_program(f, args, dynamic_axes, input_names, output_names)
    defined = [carries_derivative(arg) for arg in program.ret.args]
    gradient = differentiate(program, requires_grad, defined=defined, policy=policy)
    inputs = input_names_of(gradient.f, input_names)
    results = output_names_of(program, output_names, inputs)
    outputs = _with_residuals(gradient.f, results, inputs)
    options: dict[str, Any] = {
        "opset": opset,
        "overrides": overrides,
        "custom_domain": custom_domain,
        "external_data": external_data,
    }
    paths = (None, None) if path is None else _file_paths(Path(os.fsdecode(path)))
    forward = export(gradient.f, paths[0], input_names=inputs, output_names=outputs, **options)
    names = _backward_inputs(gradient, inputs, outputs)
    slopes = [f"ct_{inputs[i]}" for i in gradient.df_output_vjps]
    backward = export(
        _defined_program(gradient), paths[1], input_names=names, output_names=slopes, **options
    )
    return forward, backward


def _file_paths(path: Path) -> tuple[Path, Path]:
    first, second = (path.with_name(f"{path.stem}.{part}.onnx") for part in ("forward", "backward"))
    return first, second


def _with_residuals(forward: Lambda, results: list[str], inputs: list[str]) -> list[str]:
    """The names of the results, and of the residuals after them."""
    names, used = list(results), {*results, *inputs}
    for i in range(len(forward.ret.args) - len(results)):
        name = f"residual_{i}"
        while name in used:
            name = f"{name}_"
        names.append(name)
    return names


def _backward_inputs(gradient: Gradient, inputs: list[str], outputs: list[str]) -> list[str]:
    """The names of the cotangents and residuals."""
    return [
        *[f"ct_{outputs[i]}" for i in gradient.df_input_vjps],
        *[inputs[i] for i in gradient.df_input_captured_inputs],
        *[outputs[i] for i in gradient.df_input_captured_outputs],
    ]


def _defined_program(gradient: Gradient) -> Lambda:
    """The gradient program, with zeros where a cotangent is undefined."""
    df, builder = gradient.df, LetBuilder()
    builder.params, builder.binds, results = list(df.params), list(df.binds), []
    for i, arg in zip(gradient.df_output_vjps, df.ret.args, strict=True):
        if not is_undefined(arg):
            results.append(arg)
            continue
        param = gradient.f.params[i]
        if not has_static_shape(param.type):
            raise ExportError(
                f"export_vjp: no result depends on {param.name}, whose size is not known\n"
                "  leave it out: requires_grad=[...] has False for it"
            )
        attrs = zeros.complete({"shape": param.type.shape, "dtype": param.type.dtype})
        results += builder.emit(zeros, (), attrs)
    return builder.build(results)
