"""Second forms of elementwise kernels, for data with nan.

Processors raise the flag of an invalid operation where they compare nan, and NumPy clears it. A
kernel whose flag is raised runs again in a form whose comparisons raise none. Both forms compute
the same bits, so it does not matter which of them computes a call.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from letir.ast.terms import Lambda
from letir.eval.float_warnings import SETTING_FILES, KernelError, is_float_error
from letir.executor.kernels.kernel_kinds import try_to_compile
from letir.executor.kernels.row_kernels import LayoutError
from letir.executor.kernels.threaded_calls import ThreadedCall, with_threads
from letir.kernels.elementwise_groups import elementwise_kernel, kernel_of
from letir.kernels.llvm.machine_code import ufunc_of

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
SETTING_FILES.add(__file__)


class QuietCall:
    """Runs the second form of a kernel, which is compiled when it is needed first.

    ``is_needed``: whether a call has been computed by it.
    """

    def __init__(self, body: Lambda):
        self.body = body
        self.call: Callable | None = None
        self.is_needed = self.is_made = False

    def __call__(self, *operands: Any) -> Any:
        """The results. Raises KernelError if there is no second form."""
        if not self.is_made:
            self.make()
        if self.call is None:
            raise KernelError("comparisons raise no flag")
        result = self.call(*operands)
        self.is_needed = True
        return result

    def make(self) -> None:
        """Compile the second form, if it differs from the first one."""
        kernel = elementwise_kernel(self.body, is_quiet=True)
        if kernel is not None and str(kernel) != str(kernel_of(self.body)):
            self.call = try_to_compile(lambda: with_threads(ufunc_of(kernel), self.body), None)
        self.is_made = True


def quiet_call(call: Callable, body: Lambda) -> QuietCall | None:
    """The second form of the elementwise kernel ``call``; None for other kernels."""
    return QuietCall(body) if isinstance(call, np.ufunc | ThreadedCall) else None


def result_of_forms(forms: Iterable[Callable], operands: tuple) -> Any:
    """The result of the first of a kernel's ``forms`` that meets no floating-point error.

    None if all of them meet one, or if the result would have another memory order than NumPy's:
    NumPy then has to compute, and to report its errors.
    """
    for form in forms:
        try:
            return form(*operands)
        except LayoutError:
            break
        except (KernelError, FloatingPointError, TypeError) as error:
            if not is_float_error(error):
                raise
    return None
