"""NumPy functions that cannot be recorded: ``REFUSED``, each with its reason and what to do.

A line is ``function: "why; what to write"``, in the family where one looks for it, with a method as
``np.ndarray.tofile``. The error for such a function shows it, and the page of all functions lists
it. What is merely not there yet does not belong here.
"""

import numpy as np

# ---- ufuncs ----

UFUNCS = {
    np.isnat: "dates are not recorded, only numbers; call it before the trace",
}

REFUSED = {**UFUNCS}


def refusal(function) -> str | None:
    """Why a NumPy callable cannot be recorded; None if nothing is known against it."""
    try:
        return REFUSED.get(function)
    except TypeError:  # an unhashable callable
        return None
