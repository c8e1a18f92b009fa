"""``ComputingEmitter``: an emitter with which derivative rules compute on arrays immediately."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive, results_tuple
from letir.ast.terms import Const
from letir.eval.evaluator import Evaluator, compute


class ComputingEmitter:
    """An emitter that computes operations instead of recording them [semantics.md D15]."""

    def __init__(self, xp=np):
        self.evaluator = Evaluator(xp)
        self.source = None  # rules set it, as on a builder

    def apply(self, op: Primitive, operands: Sequence, attrs: Attrs) -> Any:
        """Compute ``op`` on arrays and numbers; returns a result, or a tuple of results."""
        return compute(op, operands, attrs, self.evaluator)

    def emit(self, op: Primitive, args: tuple, attrs: Attrs, types: Any = None) -> tuple:
        """Compute ``op`` on arrays, and return the tuple of its results; ``types`` is unused."""
        operands = [arg.value if type(arg) is Const else arg for arg in args]
        out = compute(op, operands, attrs, self.evaluator)
        return results_tuple(op, out)
