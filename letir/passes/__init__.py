"""Passes: functions from a Lambda to a Lambda with the same results.

``dead_code`` is loaded with letir, the others on first use.
"""

from typing import TYPE_CHECKING

from letir.ast import load_name
from letir.passes.dead_code_elimination import dead_code

if TYPE_CHECKING:  # for editors
    from letir.passes.canonicalization import canonicalize_ops
    from letir.passes.constant_folding import constant_propagation
    from letir.passes.cse import common_subexpressions, constant_pooling
    from letir.passes.decomposition import decompose
    from letir.passes.differentiability import is_differentiable, propagate_requires_grad
    from letir.passes.error_regions import join_error_regions
    from letir.passes.fusion.fusing import fuse
    from letir.passes.inlining import inline_bodies, without_barriers
    from letir.passes.loops.invariant_motion import loop_invariants
    from letir.passes.loops.unrolling import unroll
    from letir.passes.lowering import without_writes
    from letir.passes.memory.aliases import copy_outliving_views
    from letir.passes.memory.consumed_operands import in_place_check
    from letir.passes.normal_order import normalize_order
    from letir.passes.number_types import erase_number_types
    from letir.passes.peephole_rules.bias_addition import decompose_addmm
    from letir.passes.peephole_rules.driver import peephole
    from letir.passes.peephole_rules.implicit_broadcast import remove_implicit_expands
    from letir.passes.peephole_rules.integer_powers import multiply_powers
    from letir.passes.peephole_rules.list_lowering import lower_tuples
    from letir.passes.peephole_rules.matmul_batching import batch_matmuls
    from letir.passes.peephole_rules.negation_sinking import sink_negations
    from letir.passes.peephole_rules.sum_merging import combine_sums
    from letir.passes.pipeline import register, unregister
    from letir.passes.type_propagation import propagate_shapes

_ON_USE = {  # name -> its module
    "batch_matmuls": "peephole_rules.matmul_batching",
    "canonicalize_ops": "canonicalization",
    "combine_sums": "peephole_rules.sum_merging",
    "common_subexpressions": "cse",
    "constant_pooling": "cse",
    "constant_propagation": "constant_folding",
    "copy_outliving_views": "memory.aliases",
    "decompose": "decomposition",
    "decompose_addmm": "peephole_rules.bias_addition",
    "erase_number_types": "number_types",
    "flatten_stacks": "peephole_rules.flat_stacks",
    "fuse": "fusion.fusing",
    "in_place_check": "memory.consumed_operands",
    "inline_bodies": "inlining",
    "is_differentiable": "differentiability",
    "join_error_regions": "error_regions",
    "keep_raising": "error_preservation",
    "loop_invariants": "loops.invariant_motion",
    "lower_for_derivatives": "lowering",
    "lower_tuples": "peephole_rules.list_lowering",
    "multiply_powers": "peephole_rules.integer_powers",
    "normalize_order": "normal_order",
    "peephole": "peephole_rules.driver",
    "propagate_requires_grad": "differentiability",
    "propagate_shapes": "type_propagation",
    "register": "pipeline",
    "remove_implicit_expands": "peephole_rules.implicit_broadcast",
    "rewrite_fast": "peephole_rules.fast_math",
    "sink_negations": "peephole_rules.negation_sinking",
    "splits_first": "peephole_rules.split_hoisting",
    "unregister": "pipeline",
    "unroll": "loops.unrolling",
    "without_barriers": "inlining",
    "without_combinators": "lowering",
    "without_writes": "lowering",
}

__all__ = [
    "batch_matmuls",
    "canonicalize_ops",
    "combine_sums",
    "common_subexpressions",
    "constant_pooling",
    "constant_propagation",
    "copy_outliving_views",
    "dead_code",
    "decompose",
    "decompose_addmm",
    "erase_number_types",
    "fuse",
    "in_place_check",
    "inline_bodies",
    "is_differentiable",
    "join_error_regions",
    "loop_invariants",
    "lower_tuples",
    "multiply_powers",
    "normalize_order",
    "peephole",
    "propagate_requires_grad",
    "propagate_shapes",
    "register",
    "remove_implicit_expands",
    "sink_negations",
    "unregister",
    "unroll",
    "without_barriers",
    "without_writes",
]


def __getattr__(name: str):
    result = globals()[name] = load_name(__name__, _ON_USE, name)
    return result


def __dir__() -> list[str]:
    return __all__
