"""Passes: functions from a Lambda to a Lambda with the same results.

Those that every gradient needs are loaded with letir, the others when somebody asks for them.
"""

import importlib

from letir.passes.arguments import without_writes
from letir.passes.cleanup import dead_code
from letir.passes.merging import merged_sums
from letir.passes.outliving import parts_apart
from letir.passes.signs import carried_signs

_ON_USE = {  # name -> its module
    "batch_matmuls": "batching_products",
    "canonicalize_ops": "canonicalizing",
    "common_subexpressions": "subexpressions",
    "constant_pooling": "subexpressions",
    "constant_propagation": "folding",
    "decompose": "decomposing",
    "decompose_addmm": "decomposing",
    "erase_number_types": "erasing",
    "fuse": "fusion",
    "in_place_check": "consuming",
    "inline_bodies": "inlining",
    "is_differentiable": "differentiability",
    "loop_invariants": "invariants",
    "lower_tuples": "packing",
    "normalize_order": "ordering",
    "peephole": "shortening",
    "propagate_requires_grad": "differentiability",
    "propagate_shapes": "shapes",
    "register": "pipeline",
    "remove_implicit_expands": "expanding",
    "unregister": "pipeline",
    "unroll": "unrolling",
    "without_barriers": "inlining",
}

__all__ = [
    "batch_matmuls",
    "canonicalize_ops",
    "carried_signs",
    "common_subexpressions",
    "constant_pooling",
    "constant_propagation",
    "dead_code",
    "decompose",
    "decompose_addmm",
    "erase_number_types",
    "fuse",
    "in_place_check",
    "inline_bodies",
    "is_differentiable",
    "loop_invariants",
    "lower_tuples",
    "merged_sums",
    "normalize_order",
    "parts_apart",
    "peephole",
    "propagate_requires_grad",
    "propagate_shapes",
    "register",
    "remove_implicit_expands",
    "unregister",
    "unroll",
    "without_barriers",
    "without_writes",
]


def __getattr__(name: str):
    if name in _ON_USE:
        return getattr(importlib.import_module(f"letir.passes.{_ON_USE[name]}"), name)
    raise AttributeError(f"module 'letir.passes' has no attribute {name!r}")
