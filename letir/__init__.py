"""letir: NumPy functions as programs that can be read, checked, transformed, differentiated and
replayed.

    f = letir.trace(loss, params, x, y)     a closed Lambda of let-bindings
    df = letir.grad(f)                      the gradient is a program too
    df(params, x, y)                        replayed on NumPy or CuPy

A name loads its module on first use.
"""

import importlib
import importlib.util

from letir.ast.primitive import LATE_BOUND

__version__ = "0.1.0"

_PUBLIC = {  # theme -> module -> names; a name loads its module on first use
    "Recording": {
        "tracing.entry": ("trace",),
        "tracing.manual": (
            "concrete",
            "is_tracing",
            "pause_tracing",
            "tracer_enter",
            "tracer_exit",
        ),
        "tracing.trace_state": ("Trace",),
        "tracing.tracer": ("Tracer",),
    },
    "Running": {
        "eval.evaluator": ("run_forward",),
        "executor.compiled": ("compile",),
        "executor.executor": ("last_executed_graph",),
        "executor.explanation": ("explain",),
        "executor.jit_api": ("jit",),
    },
    "Derivatives and batching": {
        "ad.gradient_program": ("Gradient",),
        "ad.reverse": ("differentiate",),
        "ad.symbolic_zeros": ("lower_grad_of", "specialize_undef"),
        "transforms.checkpointing": ("checkpoint",),
        "transforms.custom_forward": ("custom_jvp",),
        "transforms.custom_reverse": ("custom_vjp",),
        "transforms.gradients": ("grad", "value_and_grad"),
        "transforms.hessians": ("ggnvp", "hessian", "hvp"),
        "transforms.jacobians": ("jacfwd", "jacobian", "jacrev"),
        "transforms.pytree_vector": ("ravel",),
        "transforms.residual_report": ("explain_residuals",),
        "transforms.transposition": ("linear_transpose",),
        "transforms.vjp_jvp": ("jvp", "linearize", "vjp"),
        "transforms.vmapping": ("vmap",),
    },
    "Control flow": {
        "tracing.control_flow.conditionals": ("cond", "switch"),
        "tracing.control_flow.map_reduce": (
            "associative_scan",
            "map",
            "reduce",
            "reduce_by_index",
            "scatter",
        ),
        "tracing.control_flow.scans": ("scan",),
        "tracing.control_flow.while_and_fori": ("fori_loop", "while_loop"),
    },
    "Programs": {
        "ast.alpha_equality": ("canonicalize",),
        "ast.builder": ("LetBuilder", "Value"),
        "ast.checker": ("check", "retype"),
        "ast.primitive": ("Primitive",),
        "ast.terms": ("Bind", "Const", "Lambda", "Let", "Local", "Ret", "Source"),
        "ast.types": ("ArrayType", "ShapeDtype", "Size", "Undef"),
        "visitors.usedef": ("UseDef", "uses"),
        "visitors.visitor": ("ArgVisitor", "ExprVisitor", "TailCall"),
    },
    "Text and files": {
        "ast.text.parser": ("parse",),
        "ast.text.printer": ("dumps",),
        "source.functions": ("to_source",),
        "source.side_by_side.comparison": ("diff",),
        "storage": ("load", "save"),
    },
    "Passes": {
        "passes.pattern_rewrite.replacement": ("rewrite",),
        "passes.slicing": ("slice",),
    },
    "Operations and scripts": {
        "ops.define.user_operations": ("opaque", "primitive"),
        "ops.elementwise.casting": ("stop_gradient",),
        "scripting.operations": ("script_op",),
        "scripting.scripts": ("Script",),
        "scripting.units": ("CompilationUnit", "script"),
    },
    "Variables": {
        "eager.functions.function": ("Function",),
        "eager.grad_mode": ("no_grad",),
        "eager.models.recorded_model": ("jit_model",),
        "eager.models.verification": ("verify",),
        "eager.variable": ("Variable",),
    },
    "Errors": {
        "errors": (
            "BoundsError",
            "DTypeError",
            "EscapedTracerError",
            "ExportError",
            "GuardError",
            "InternalError",
            "LetirError",
            "MissingRule",
            "ParseError",
            "ScopeError",
            "ShapeError",
            "TraceError",
        ),
    },
}
_NAMESPACES = (
    *("debug", "eager", "extend", "nn", "numpy", "passes", "random", "scipy", "testing"),
)
_HOME = {
    name: f"letir.{module}"
    for modules in _PUBLIC.values()
    for module, names in modules.items()
    for name in names
}
# Python's own functions of these names, which `from letir import *` must not hide
_SHADOWING = {"compile", "map", "reduce", "slice"}
__all__ = [name for name in sorted({*_HOME, *_NAMESPACES}) if name not in _SHADOWING]


def _load_operations() -> None:
    """Fill the tables of records and of what terms call."""
    for name in ("ops", "ast.alpha_equality", "eval.evaluator"):
        importlib.import_module(f"letir.{name}")


def _diff(f, g):
    """``letir.diff``, for packages to the left of it."""
    return __getattr__("diff")(f, g)


def _batched(fn, axes, size):
    """The batching transform of programs, for packages to the left of it."""
    return importlib.import_module("letir.transforms.batching").batched(fn, axes, size)


# a name that is looked up in these tables before anything else has loaded the records: in a file,
# in a pickle, by a builder
LATE_BOUND["load"] = _load_operations
LATE_BOUND["diff"] = _diff
LATE_BOUND["batched"] = _batched


def __getattr__(name: str):
    if name in _HOME:
        _load_operations()
        found = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
        return found
    # packages, too: letir.ops and the like, for those who look inside
    if not name.startswith("_") and importlib.util.find_spec(f"letir.{name}") is not None:
        return importlib.import_module(f"letir.{name}")
    raise AttributeError(f"module 'letir' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_HOME, *_NAMESPACES})
