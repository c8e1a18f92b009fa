"""The optional package ``onnx``, imported at the first use."""

import functools
from types import ModuleType

from letir.errors import LetirError


@functools.cache
def onnx_package() -> ModuleType:
    """The package ``onnx``. Raises LetirError with the remedy if it cannot be imported."""
    try:
        import onnx
        import onnx.checker
        import onnx.defs
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise LetirError(
            f"letir.onnx needs the package onnx, which cannot be imported: {error}\n"
            "  install it: pip install 'letir[onnx]'"
        ) from None
    return onnx
