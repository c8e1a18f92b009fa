"""``letir.numpy.emath``: numpy.emath, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> letir.trace(lambda t: lnp.emath.sqrt([t, -4.0]), 1.0)(9.0)
array([3.+0.j, 0.+2.j])
"""

import numpy as np

from letir.numpy.recorded import recorded


def __getattr__(name: str):
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy.emath' has no attribute {name!r}")
    try:
        return recorded(getattr(np.emath, name))
    except AttributeError:
        raise AttributeError(
            f"numpy.emath has no {name!r}, and neither has letir.numpy.emath"
        ) from None


def __dir__() -> list[str]:
    return dir(np.emath)
