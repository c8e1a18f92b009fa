"""NumPy source of operations that NumPy lacks: a copy of the function that computes them."""

import inspect
from collections.abc import Callable


def copied_function(function: Callable, *others: Callable) -> Callable:
    """The source of a call of ``function(xp, *operands, **attrs)``.

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
