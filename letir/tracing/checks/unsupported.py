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

# ---- functions of the user's ----

USERS = {
    np.frompyfunc: "it makes arrays of objects; write letir.numpy.vectorize(f), or letir.vmap(f)",
}

# ---- methods and attributes of arrays ----

LAYOUT = "how an array lies in memory is the evaluator's; compute with its elements"
BYTES = "its bytes would be baked into the program; return it, and take them of the result"
METHODS = {
    np.ndarray.base: LAYOUT + ", or ask numpy.may_share_memory",
    np.ndarray.byteswap: "bytes are always in native order; swap them before the trace",
    np.ndarray.ctypes: BYTES,
    np.ndarray.data: BYTES,
    np.ndarray.dump: BYTES,
    np.ndarray.dumps: BYTES,
    np.ndarray.flags: LAYOUT,
    np.ndarray.getfield: "structured arrays are not recorded; pass the fields as arrays",
    np.ndarray.resize: "an array keeps its size; write y = numpy.resize(x, shape)",
    np.ndarray.setfield: "structured arrays are not recorded; pass the fields as arrays",
    np.ndarray.setflags: LAYOUT,
    np.ndarray.strides: LAYOUT,
    np.ndarray.tobytes: BYTES,
    np.ndarray.tofile: BYTES,
}

REFUSED = {**USERS, **METHODS, **UFUNCS}


def refusal(function) -> str | None:
    """Why a NumPy callable cannot be recorded; None if nothing is known against it."""
    if isinstance(function, np.ufunc) and function.__name__.endswith(" (vectorized)"):
        return REFUSED[np.frompyfunc]  # which made it
    try:
        return REFUSED.get(function)
    except TypeError:  # an unhashable callable
        return None
