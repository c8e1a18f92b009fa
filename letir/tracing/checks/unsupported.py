"""NumPy functions that cannot be recorded: ``REFUSED``, each with the reason and the remedy.

An entry is ``function: "reason; remedy"``, sorted by family, with methods such as
``np.ndarray.tofile``. Error messages show it, and the page of all functions lists it. Functions
that could be recorded but are missing so far are not listed here.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND

# ---- ufuncs ----

_UFUNCS: dict[Any, str] = {
    np.isnat: "dates are not recorded, only numbers; call it before the trace",
}

# ---- files ----

_WRITTEN = "a file is written while the function is recorded, not when it runs; save the result"
_FILES: dict[Any, str] = dict.fromkeys(
    (np.save, np.savez, np.savez_compressed, np.savetxt), _WRITTEN
)

# ---- user-defined functions ----

_USERS: dict[Any, str] = {
    np.frompyfunc: "it makes arrays of objects; write letir.numpy.vectorize(f), or letir.vmap(f)",
}

# ---- methods and attributes of arrays ----

_LAYOUT = "the memory layout is chosen when the program runs; compute with the elements"
_BYTES = (
    "its bytes would be baked into the program; return the array, and take the bytes of the result"
)
METHODS: dict[Any, str] = {
    np.ndarray.base: _LAYOUT + ", or ask numpy.may_share_memory",
    np.ndarray.byteswap: "bytes are always in native order; swap them before the trace",
    np.ndarray.ctypes: _BYTES,
    np.ndarray.data: _BYTES,
    np.ndarray.dump: _BYTES,
    np.ndarray.dumps: _BYTES,
    np.ndarray.getfield: "structured arrays are not recorded; pass the fields as arrays",
    np.ndarray.setfield: "structured arrays are not recorded; pass the fields as arrays",
    np.ndarray.tofile: _BYTES,
}

REFUSED: dict[Any, str] = {**_USERS, **METHODS, **_UFUNCS, **_FILES}


def refusal_reason(function: Any) -> str | None:
    """The reason why a NumPy callable cannot be recorded; None if there is none."""
    if isinstance(function, np.ufunc) and function.__name__.endswith(" (vectorized)"):
        return REFUSED[np.frompyfunc]  # a ufunc that np.frompyfunc made
    try:
        return REFUSED.get(function)
    except TypeError:  # an unhashable callable
        return None


LATE_BOUND["refusal_reason"] = refusal_reason
