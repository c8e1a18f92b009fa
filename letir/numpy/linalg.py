"""``letir.numpy.linalg``: numpy.linalg, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> float(letir.grad(lambda t: lnp.linalg.norm([3 * t, 4 * t]))(1.0))
5.0
"""

import numpy as np

from letir.numpy.wrapped_functions import forward_names

__getattr__, __dir__ = forward_names(np.linalg)
