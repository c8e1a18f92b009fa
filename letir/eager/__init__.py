"""Eager mode: Variables with a recorded history, from which gradients are computed.

x = letir.Variable(array, requires_grad=True)
f(x).backward()                  x.grad is there
letir.eager.gradients(y, x)      without touching .grad
letir.eager.history(y)           the program that made y
"""

from letir.eager.backward.entry_points import backward, gradients
from letir.eager.functions.function import Function, once_differentiable
from letir.eager.grad_mode import (
    detect_anomaly,
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from letir.eager.history import history
from letir.eager.models.recorded_model import jit_model
from letir.eager.models.verification import verify
from letir.eager.staged_trace import StagedTrace, staged_trace
from letir.eager.variable import Variable

__all__ = [
    "Function",
    "StagedTrace",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "gradients",
    "history",
    "is_grad_enabled",
    "jit_model",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
    "staged_trace",
    "verify",
]
