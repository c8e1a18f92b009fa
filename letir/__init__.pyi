# Written by docs/make_stub.py from the table in __init__.py, which loads names on first use.

from letir import dask as dask
from letir import debug as debug
from letir import eager as eager
from letir import extend as extend
from letir import nn as nn
from letir import numpy as numpy
from letir import onnx as onnx
from letir import passes as passes
from letir import random as random
from letir import scipy as scipy
from letir import testing as testing
from letir import tree as tree
from letir import viz as viz

# recording
from letir.tracing.entry import trace as trace
from letir.tracing.manual import concrete as concrete
from letir.tracing.manual import is_tracing as is_tracing
from letir.tracing.manual import pause_tracing as pause_tracing
from letir.tracing.manual import tracer_enter as tracer_enter
from letir.tracing.manual import tracer_exit as tracer_exit
from letir.tracing.trace_state import Trace as Trace
from letir.tracing.tracer import Tracer as Tracer

# running
from letir.eval.evaluator import run_forward as run_forward
from letir.executor.calls import last_executed_graph as last_executed_graph
from letir.executor.compiled import compile as compile
from letir.executor.explanation import explain as explain
from letir.executor.jit_api import jit as jit
from letir.kernels.threads import get_num_threads as get_num_threads
from letir.kernels.threads import set_num_threads as set_num_threads

# derivatives and batching
from letir.ad.differentiation import differentiate as differentiate
from letir.ad.gradient_program import Gradient as Gradient
from letir.ad.symbolic_zeros import lower_grad_of as lower_grad_of
from letir.ad.symbolic_zeros import specialize_undef as specialize_undef
from letir.transforms.checkpointing import checkpoint as checkpoint
from letir.transforms.custom_forward import custom_jvp as custom_jvp
from letir.transforms.custom_reverse import custom_vjp as custom_vjp
from letir.transforms.gauss_newton import ggnvp as ggnvp
from letir.transforms.gradients import grad as grad
from letir.transforms.gradients import value_and_grad as value_and_grad
from letir.transforms.hessians import hessian as hessian
from letir.transforms.hessians import hvp as hvp
from letir.transforms.jacobians import jacfwd as jacfwd
from letir.transforms.jacobians import jacobian as jacobian
from letir.transforms.jacobians import jacrev as jacrev
from letir.transforms.pytree_vector import ravel as ravel
from letir.transforms.residual_report import explain_residuals as explain_residuals
from letir.transforms.result_types import eval_shape as eval_shape
from letir.transforms.stopped_gradients import stop_gradient as stop_gradient
from letir.transforms.transposition import linear_transpose as linear_transpose
from letir.transforms.vjp_jvp import jvp as jvp
from letir.transforms.vjp_jvp import linearize as linearize
from letir.transforms.vjp_jvp import vjp as vjp
from letir.transforms.vmapping import vmap as vmap

# control flow
from letir.tracing.control_flow.conditionals import cond as cond
from letir.tracing.control_flow.conditionals import switch as switch
from letir.tracing.control_flow.map_reduce import associative_scan as associative_scan
from letir.tracing.control_flow.map_reduce import map as map
from letir.tracing.control_flow.map_reduce import reduce as reduce
from letir.tracing.control_flow.map_reduce import reduce_by_index as reduce_by_index
from letir.tracing.control_flow.map_reduce import scatter as scatter
from letir.tracing.control_flow.scans import scan as scan
from letir.tracing.control_flow.while_and_fori import fori_loop as fori_loop
from letir.tracing.control_flow.while_and_fori import while_loop as while_loop

# programs
from letir.ast.alpha_equality import canonicalize as canonicalize
from letir.ast.builder import LetBuilder as LetBuilder
from letir.ast.builder import Value as Value
from letir.ast.checker import check as check
from letir.ast.checker import retype as retype
from letir.ast.primitive import Primitive as Primitive
from letir.ast.terms import Bind as Bind
from letir.ast.terms import Const as Const
from letir.ast.terms import Lambda as Lambda
from letir.ast.terms import Let as Let
from letir.ast.terms import Local as Local
from letir.ast.terms import Ret as Ret
from letir.ast.terms import Source as Source
from letir.ast.types import ArrayType as ArrayType
from letir.ast.types import ShapeDtype as ShapeDtype
from letir.ast.types import Size as Size
from letir.ast.types import Undef as Undef
from letir.visitors.substitution import from_dag as from_dag
from letir.visitors.substitution import to_dag as to_dag
from letir.visitors.usedef import UseDef as UseDef
from letir.visitors.usedef import uses as uses
from letir.visitors.visitor import ArgVisitor as ArgVisitor
from letir.visitors.visitor import ExprVisitor as ExprVisitor
from letir.visitors.visitor import TailCall as TailCall

# text and files
from letir.ast.text.parser import parse as parse
from letir.ast.text.printer import dumps as dumps
from letir.source.functions import to_source as to_source
from letir.source.side_by_side.comparison import diff as diff
from letir.storage import load as load
from letir.storage import save as save

# passes
from letir.passes.pattern_rewrite.replacement import rewrite as rewrite
from letir.passes.slicing import slice as slice

# operations and scripts
from letir.ops.define.user_operations import opaque as opaque
from letir.ops.define.user_operations import primitive as primitive
from letir.scripting.operations import script_op as script_op
from letir.scripting.scripts import Script as Script
from letir.scripting.units import CompilationUnit as CompilationUnit
from letir.scripting.units import script as script

# variables
from letir.eager.functions.function import Function as Function
from letir.eager.grad_mode import no_grad as no_grad
from letir.eager.models.recorded_model import jit_model as jit_model
from letir.eager.models.verification import verify as verify
from letir.eager.variable import Variable as Variable

# errors
from letir.errors import BoundsError as BoundsError
from letir.errors import DTypeError as DTypeError
from letir.errors import EscapedTracerError as EscapedTracerError
from letir.errors import ExportError as ExportError
from letir.errors import GuardError as GuardError
from letir.errors import InternalError as InternalError
from letir.errors import LetirError as LetirError
from letir.errors import MissingRule as MissingRule
from letir.errors import ParseError as ParseError
from letir.errors import ScopeError as ScopeError
from letir.errors import ShapeError as ShapeError
from letir.errors import TraceError as TraceError

__version__: str
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
    "dask",
    "debug",
    "diff",
    "differentiate",
    "dumps",
    "eager",
    "eval_shape",
    "explain",
    "explain_residuals",
    "extend",
    "fori_loop",
    "from_dag",
    "get_num_threads",
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
    "lower_grad_of",
    "nn",
    "no_grad",
    "numpy",
    "onnx",
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
    "set_num_threads",
    "specialize_undef",
    "stop_gradient",
    "switch",
    "testing",
    "to_dag",
    "to_source",
    "trace",
    "tracer_enter",
    "tracer_exit",
    "tree",
    "uses",
    "value_and_grad",
    "verify",
    "viz",
    "vjp",
    "vmap",
    "while_loop",
]
