"""``scipy.interpolate`` for traced values: functions that make splines.

The methods of its classes are recorded by ``interpolation``, while SciPy's own classes are called.
"""

from letir.scipy.interpolate import spline_data
from letir.scipy.namespace import drop_in, fallback_getattr

__getattr__ = fallback_getattr("interpolate")
make_interp_spline = drop_in("interpolate")(spline_data.make_interp_spline)
