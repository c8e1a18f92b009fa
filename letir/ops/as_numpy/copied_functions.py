"""The ``source`` of operations that NumPy lacks: the function that computes them, copied beside the
source with NumPy for its array module.
"""

import inspect
from collections.abc import Callable


def copied_function(function: Callable, *others: Callable) -> Callable:
    """A call of ``function(xp, *operands, **attrs)``, which stands beside the source with NumPy for
    ``xp``, and with it the ``others`` that it calls.
    """

    def source(write, *operands, **attrs):
        text = _numpy_text(function)
        for other in others:
            # under another name if the source has one like it already
            text = text.replace(f"{other.__name__}(", f"{write.helper(_numpy_text(other))}(")
        return write.call(write.helper(text), *operands, **attrs)

    return source


def _numpy_text(function: Callable) -> str:
    """The text of a function of an array module, as one of NumPy."""
    return inspect.getsource(function).replace("(xp, ", "(").replace("xp.", "np.")
