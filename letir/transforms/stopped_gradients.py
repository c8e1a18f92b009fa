"""``stop_gradient``: a value as a constant for derivatives."""

from typing import Any

from letir.ops.elementwise import casting


def stop_gradient(x: Any) -> Any:
    """``x`` itself, as a constant for derivatives: none flows through it, in either mode.

    >>> from letir import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return casting.stop_gradient(x)
