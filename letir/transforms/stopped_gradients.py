"""``stop_gradient``: treat a value as a constant in derivatives."""

from typing import Any

from letir.ast import entry_point
from letir.ops.elementwise import casting


@entry_point
def stop_gradient(x: Any) -> Any:
    """``x`` as a constant for derivatives: its cotangent and its tangent are zero.

    >>> from letir import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return casting.stop_gradient(x)
