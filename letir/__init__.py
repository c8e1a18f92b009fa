"""letir: NumPy functions as programs that can be read, checked, transformed, differentiated and
replayed.

    f = letir.trace(loss, params, x, y)     a closed Lambda of let-bindings
    df = letir.grad(f)                      the gradient is a program too
    df(params, x, y)                        replayed on NumPy or CuPy

All of it loads on first use.
"""

import importlib

from letir.ast.primitive import LATE_BOUND

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
    "associative_scan",
    "canonicalize",
    "check",
    "checkpoint",
    "concrete",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "diff",
    "differentiate",
    "dumps",
    "eager",
    "explain",
    "explain_residuals",
    "fori_loop",
    "ggnvp",
    "grad",
    "hessian",
    "hvp",
    "is_tracing",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jit_model",
    "jvp",
    "last_executed_graph",
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
    "random",
    "ravel",
    "reduce_by_index",
    "retype",
    "rewrite",
    "run_forward",
    "save",
    "scan",
    "scatter",
    "scipy",
    "script",
    "script_op",
    "set_local",
    "specialize_undef",
    "stop_gradient",
    "switch",
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
    "while_loop",
]
_MODULES = (
    *(
        "ad",
        "ast",
        "debug",
        "eager",
        "errors",
        "eval",
        "executor",
        "nn",
        "numpy",
        "ops",
        "passes",
        "plan",
        "scripting",
    ),
    *("random", "scipy"),
    *("source", "testing", "tracing", "visitors"),
)
_NAMES = {
    "ArgVisitor": "letir.visitors.visitor",
    "ArrayType": "letir.ast.types",
    "Bind": "letir.ast.terms",
    "BoundsError": "letir.errors",
    "CompilationUnit": "letir.scripting.units",
    "Const": "letir.ast.terms",
    "DTypeError": "letir.errors",
    "EscapedTracerError": "letir.errors",
    "ExportError": "letir.errors",
    "ExprVisitor": "letir.visitors.visitor",
    "Function": "letir.eager.functions.function",
    "Gradient": "letir.ad.gradient_program",
    "GuardError": "letir.errors",
    "InternalError": "letir.errors",
    "Lambda": "letir.ast.terms",
    "Let": "letir.ast.terms",
    "LetBuilder": "letir.ast.builder",
    "LetirError": "letir.errors",
    "Local": "letir.ast.terms",
    "MissingRule": "letir.errors",
    "ParseError": "letir.errors",
    "Primitive": "letir.ast.primitive",
    "Ret": "letir.ast.terms",
    "ScopeError": "letir.errors",
    "Script": "letir.scripting.scripts",
    "ShapeDtype": "letir.ast.types",
    "ShapeError": "letir.errors",
    "Size": "letir.ast.types",
    "Source": "letir.ast.terms",
    "TailCall": "letir.visitors.visitor",
    "Trace": "letir.tracing.trace_state",
    "TraceError": "letir.errors",
    "Tracer": "letir.tracing.tracer",
    "Undef": "letir.ast.types",
    "UseDef": "letir.visitors.usedef",
    "Value": "letir.ast.builder",
    "Variable": "letir.eager.variable",
    "associative_scan": "letir.tracing.control_flow.map_reduce",
    "canonicalize": "letir.ast.alpha_equality",
    "check": "letir.ast.checker",
    "checkpoint": "letir.transforms.checkpointing",
    "compile": "letir.executor.compiled",
    "concrete": "letir.tracing.manual",
    "cond": "letir.tracing.control_flow.conditionals",
    "custom_jvp": "letir.transforms.custom_forward",
    "custom_vjp": "letir.transforms.custom_reverse",
    "diff": "letir.source.side_by_side.comparison",
    "differentiate": "letir.ad.reverse",
    "dumps": "letir.ast.text.printer",
    "explain": "letir.executor.explanation",
    "explain_residuals": "letir.transforms.residual_report",
    "fori_loop": "letir.tracing.control_flow.while_and_fori",
    "ggnvp": "letir.transforms.hessians",
    "grad": "letir.transforms.gradients",
    "hessian": "letir.transforms.hessians",
    "hvp": "letir.transforms.hessians",
    "is_tracing": "letir.tracing.manual",
    "jacfwd": "letir.transforms.jacobians",
    "jacobian": "letir.transforms.jacobians",
    "jacrev": "letir.transforms.jacobians",
    "jit": "letir.executor.jit_api",
    "jit_model": "letir.eager.models.recorded_model",
    "jvp": "letir.transforms.vjp_jvp",
    "last_executed_graph": "letir.executor.executor",
    "linear_transpose": "letir.transforms.transposition",
    "linearize": "letir.transforms.vjp_jvp",
    "load": "letir.storage",
    "local_of": "letir.tracing.manual",
    "lower_grad_of": "letir.ad.symbolic_zeros",
    "map": "letir.tracing.control_flow.map_reduce",
    "never": "letir.ast.primitive",
    "no_grad": "letir.eager.grad_mode",
    "opaque": "letir.ops.define.user_operations",
    "parse": "letir.ast.text.parser",
    "pause_tracing": "letir.tracing.manual",
    "primitive": "letir.ops.define.user_operations",
    "ravel": "letir.transforms.pytree_vector",
    "reduce": "letir.tracing.control_flow.map_reduce",
    "reduce_by_index": "letir.tracing.control_flow.map_reduce",
    "retype": "letir.ast.checker",
    "rewrite": "letir.passes.pattern_rewrite.replacement",
    "run_forward": "letir.eval.evaluator",
    "save": "letir.storage",
    "scan": "letir.tracing.control_flow.scans",
    "scatter": "letir.tracing.control_flow.map_reduce",
    "script": "letir.scripting.units",
    "script_op": "letir.scripting.operations",
    "set_local": "letir.tracing.manual",
    "slice": "letir.passes.slicing",
    "specialize_undef": "letir.ad.symbolic_zeros",
    "stop_gradient": "letir.ops.elementwise.casting",
    "switch": "letir.tracing.control_flow.conditionals",
    "to_source": "letir.source.functions",
    "todo": "letir.ast.primitive",
    "trace": "letir.tracing.entry",
    "tracer_enter": "letir.tracing.manual",
    "tracer_exit": "letir.tracing.manual",
    "uses": "letir.visitors.usedef",
    "value_and_grad": "letir.transforms.gradients",
    "verify": "letir.eager.models.verification",
    "vjp": "letir.transforms.vjp_jvp",
    "vmap": "letir.transforms.vmapping",
    "while_loop": "letir.tracing.control_flow.while_and_fori",
}


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
    if name in _MODULES:
        return importlib.import_module(f"letir.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'letir' has no attribute {name!r}")
    _load_operations()
    found = globals()[name] = getattr(importlib.import_module(_NAMES[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
