"""From groups to ufuncs: the kernel of a group, and the ufuncs of several kernels."""

import numpy as np

from letir.ast.terms import Lambda
from letir.kernels.elementwise_groups import elementwise_kernel
from letir.kernels.loop_language import Kernel
from letir.kernels.machine_code import ufunc_of


def kernel_of(body: Lambda, is_exact: bool = False) -> Kernel | None:
    """The kernel of a group's body; None if NumPy has to compute it.

    ``is_exact``: only if its bits are those that NumPy computes.
    """
    key = _exact_kernel if is_exact else elementwise_kernel
    return body.memo(key)


def _exact_kernel(body: Lambda) -> Kernel | None:
    return elementwise_kernel(body, is_exact=True)


def ufuncs_of(kernels: list[tuple[Kernel, str | None]]) -> list[np.ufunc]:
    """The ufuncs of kernels with these signatures."""
    return [ufunc_of(kernel, signature) for kernel, signature in kernels]
