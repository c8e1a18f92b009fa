"""``letir.numpy.linalg``: numpy.linalg, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> letir.grad(lambda t: lnp.linalg.norm([3 * t, 4 * t]))(1.0)
5.0
"""

import numpy as np

from letir.numpy.recorded import recorded


def __getattr__(name: str):
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy.linalg' has no attribute {name!r}")
    try:
        return recorded(getattr(np.linalg, name))
    except AttributeError:
        raise AttributeError(
            f"numpy.linalg has no {name!r}, and neither has letir.numpy.linalg"
        ) from None


def __dir__() -> list[str]:
    return dir(np.linalg)
