"""Short forms of NumPy's functions of matrices: the gufuncs of LAPACK that these functions call.

``np.linalg.solve`` converts its operands and sets an error state that raises LinAlgError, which
takes several times as long as LAPACK on a small matrix. The gufuncs report the same failures as
invalid floating-point operations. The plan calls them only where such errors interrupt it (see
``KERNEL_STATES``); NumPy's function then computes the step again and raises its own error.
"""

from typing import Any

import numpy as np

_FLOAT = np.dtype(np.float64)
# absent from the public names: without it the plan calls NumPy's functions
_LAPACK = getattr(np.linalg, "_umath_linalg", None)
_ALL_STATES_BUT = 2  # see KERNEL_STATES: no state that ignores or handles errors


def lapack_form(write: Any, **_: Any) -> str | None:
    """The call of the gufunc that computes the present bind from its operands alone."""
    bind = write.bind
    places = range(len(bind.args))
    name = _name_of(bind.op.name, bind.attrs, [write.type(i) for i in places])
    routine = None if name is None or write.plain else getattr(_LAPACK, name, None)
    if routine is None or not all(_is_matrix(write.type(i), i) for i in places):
        return None
    if name not in ("det", "slogdet"):  # which report no failures
        write.kernels = max(write.kernels, _ALL_STATES_BUT)
    return f"{write.constant(routine)}({', '.join(map(write.slot, places))})"


def _name_of(op: str, attrs: dict, kinds: list) -> str | None:
    """The name of the gufunc of an operation, None for other operations and options."""
    match op:
        case "solve" if kinds[1] is not None and len(kinds[1].shape) == 1:
            return "solve1"
        case "solve" | "inv" | "det" | "slogdet":
            return op
        case "cholesky":
            return "cholesky_up" if attrs["upper"] else "cholesky_lo"
        case "eigh" | "eigvalsh" if attrs["UPLO"] in ("L", "U"):
            return f"{op}_{'lo' if attrs['UPLO'] == 'L' else 'up'}"
        case "svdvals":
            return "svd"
        case "svd" if attrs["compute_uv"] and not attrs["hermitian"]:
            return "svd_f" if attrs["full_matrices"] else "svd_s"
    return None


def _is_matrix(aval: Any, i: int) -> bool:
    """Whether an operand has the type of float64 matrices; the second one may be a vector."""
    is_known = aval is not None and not aval.weak and aval.dtype == _FLOAT
    return is_known and len(aval.shape) >= 2 - min(i, 1) and 0 not in aval.shape
