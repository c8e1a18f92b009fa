"""The NumPy source of each operation.

A record takes its source as ``arrays.reshape`` from a module of this package. The module is loaded
when one of its functions is called: programs that are only run need none of them.
"""

import inspect
from collections.abc import Callable

from letir.ops import LateModule


def __getattr__(name: str):
    # `from letir.ops.as_numpy import arrays` calls this before it searches for a file
    if name in ("argument_writes", "arrays", "control", "loops", "random"):
        return LateModule(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def copied_function(function: Callable, *others: Callable) -> Callable:
    """The source of a call of ``function(xp, *operands, **attrs)``, which NumPy lacks.

    The function, and the ``others`` that it calls, are copied into the module with NumPy for
    ``xp``. Their parameters carry no annotations: the copy would have to import them.
    """

    def source(write, *operands, **attrs):
        text = _numpy_text(function)
        for other in others:
            # helper() gives another name if the module has a different function of this name
            text = text.replace(f"{other.__name__}(", f"{write.helper(_numpy_text(other))}(")
        return write.call(write.helper(text), *operands, **attrs)

    return source


def _numpy_text(function: Callable) -> str:
    """The text of a function of an array module, rewritten for NumPy."""
    return inspect.getsource(function).replace("(xp, ", "(").replace("xp.", "np.")
