"""letir: NumPy functions as programs that can be read, checked, transformed, differentiated and
replayed.

    f = letir.trace(loss, params, x, y)     a closed Lambda of let-bindings
    df = letir.grad(f)                      the gradient is a program too
    df(params, x, y)                        replayed on NumPy or CuPy

Derivatives, ``letir.numpy``, ``letir.nn`` and ``letir.testing`` load on first use.
"""

import importlib

from letir.ast.builder import LetBuilder, Value
from letir.ast.canonical import canonicalize
from letir.ast.checker import check, retype
from letir.ast.primitive import Primitive, never, todo
from letir.ast.printer import dumps
from letir.ast.terms import Bind, Const, Lambda, Let, Local, Ret, Source
from letir.ast.types import ArrayType, ShapeDtype, Size, Undef
from letir.errors import (
    BoundsError,
    DTypeError,
    EscapedTracerError,
    ExportError,
    GuardError,
    InternalError,
    LetirError,
    MissingRule,
    ParseError,
    ScopeError,
    ShapeError,
    TraceError,
)
from letir.eval.evaluator import run_forward
from letir.ops.casting import stop_gradient
from letir.ops.extension import opaque, primitive
from letir.tracing.recorder import Trace
from letir.tracing.recording import (
    concrete,
    is_tracing,
    local_of,
    pause_tracing,
    set_local,
    trace,
    tracer_enter,
    tracer_exit,
)
from letir.tracing.tracer import Tracer
from letir.visitors.usedef import UseDef, uses
from letir.visitors.visitor import ArgVisitor, ExprVisitor, TailCall

__version__ = "0.1.0"
__all__ = [
    "ArgVisitor",
    "ArrayType",
    "Bind",
    "BoundsError",
    "CompilationUnit",
    "Const",
    "DTypeError",
    "EscapedTracerError",
    "ExportError",
    "ExprVisitor",
    "Function",
    "Gradient",
    "GuardError",
    "InternalError",
    "Lambda",
    "Let",
    "LetBuilder",
    "LetirError",
    "Local",
    "MissingRule",
    "ParseError",
    "Primitive",
    "Ret",
    "ScopeError",
    "Script",
    "ShapeDtype",
    "ShapeError",
    "Size",
    "Source",
    "TailCall",
    "Trace",
    "TraceError",
    "Tracer",
    "Undef",
    "UseDef",
    "Value",
    "Variable",
    "canonicalize",
    "check",
    "checkpoint",
    "concrete",
    "custom_jvp",
    "custom_vjp",
    "diff",
    "differentiate",
    "dumps",
    "eager",
    "explain_residuals",
    "ggnvp",
    "grad",
    "hessian",
    "hvp",
    "is_tracing",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit_model",
    "jvp",
    "linear_transpose",
    "linearize",
    "load",
    "local_of",
    "lower_grad_of",
    "never",
    "nn",
    "no_grad",
    "numpy",
    "opaque",
    "parse",
    "passes",
    "pause_tracing",
    "primitive",
    "ravel",
    "retype",
    "rewrite",
    "run_forward",
    "save",
    "script",
    "script_op",
    "set_local",
    "specialize_undef",
    "stop_gradient",
    "testing",
    "to_source",
    "todo",
    "trace",
    "tracer_enter",
    "tracer_exit",
    "uses",
    "value_and_grad",
    "verify",
    "vjp",
    "vmap",
]
_MODULES = ("eager", "nn", "numpy", "passes", "testing")
_NAMES = {
    "CompilationUnit": "letir.scripting.units",
    "Function": "letir.eager.function",
    "Gradient": "letir.ad.gradient",
    "Script": "letir.scripting.scripts",
    "Variable": "letir.eager.variable",
    "checkpoint": "letir.ad.checkpointing",
    "custom_jvp": "letir.ad.custom_forward",
    "custom_vjp": "letir.ad.custom",
    "diff": "letir.source.comparison",
    "differentiate": "letir.ad.reverse",
    "explain_residuals": "letir.ad.residuals",
    "ggnvp": "letir.ad.curvature",
    "grad": "letir.ad.gradients",
    "hessian": "letir.ad.curvature",
    "hvp": "letir.ad.curvature",
    "jacfwd": "letir.ad.jacobians",
    "jacobian": "letir.ad.jacobians",
    "jacrev": "letir.ad.jacobians",
    "jit_model": "letir.eager.models",
    "jvp": "letir.ad.linear_maps",
    "linear_transpose": "letir.ad.transposing",
    "linearize": "letir.ad.linear_maps",
    "load": "letir.storage",
    "lower_grad_of": "letir.ad.zeros",
    "no_grad": "letir.eager.modes",
    "parse": "letir.ast.parser",
    "ravel": "letir.ad.vectors",
    "rewrite": "letir.passes.replacing",
    "save": "letir.storage",
    "script": "letir.scripting.units",
    "script_op": "letir.scripting.operations",
    "slice": "letir.passes.slicing",
    "specialize_undef": "letir.ad.zeros",
    "to_source": "letir.source.functions",
    "value_and_grad": "letir.ad.gradients",
    "verify": "letir.eager.verifying",
    "vjp": "letir.ad.linear_maps",
    "vmap": "letir.ad.mapping",
}


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f"letir.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'letir' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_NAMES[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
