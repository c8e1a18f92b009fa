"""Eager mode: Variables with a recorded history, from which gradients are computed.

x = letir.Variable(array, requires_grad=True)
f(x).backward()                  x.grad is there
letir.eager.gradients(y, x)      without touching .grad
letir.eager.history(y)           the program that made y
"""

from typing import TYPE_CHECKING

from letir.ast import load_name

if TYPE_CHECKING:
    from letir.eager.backward_pass.entry_points import backward, gradients
    from letir.eager.functions.function import Function, once_differentiable
    from letir.eager.grad_mode import (
        detect_anomaly,
        enable_grad,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )
    from letir.eager.models.recorded_model import jit_model
    from letir.eager.models.verification import verify
    from letir.eager.recorded_history import history
    from letir.eager.staged_tracing import StagedTrace, staged_trace
    from letir.eager.variable import Variable

_ON_USE = {  # name -> its module; ``jit`` loads this package only for the grad mode
    "Function": "functions.function",
    "StagedTrace": "staged_tracing",
    "Variable": "variable",
    "backward": "backward_pass.entry_points",
    "detect_anomaly": "grad_mode",
    "enable_grad": "grad_mode",
    "gradients": "backward_pass.entry_points",
    "history": "recorded_history",
    "is_grad_enabled": "grad_mode",
    "jit_model": "models.recorded_model",
    "no_grad": "grad_mode",
    "once_differentiable": "functions.function",
    "set_grad_enabled": "grad_mode",
    "staged_trace": "staged_tracing",
    "verify": "models.verification",
}

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


def __getattr__(name: str):
    return load_name(__name__, _ON_USE, name)


def __dir__() -> list[str]:
    return __all__
