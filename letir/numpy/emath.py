"""``letir.numpy.emath``: numpy.emath, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> letir.trace(lambda t: lnp.emath.sqrt([t, -4.0]), 1.0)(9.0)
array([3.+0.j, 0.+2.j])
"""

import numpy as np

from letir.numpy.wrapped_functions import forward_names

__getattr__, __dir__ = forward_names(np.emath)
