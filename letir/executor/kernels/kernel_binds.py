"""The binds that call kernels.

A kernel is a NumPy ufunc, which would report floating-point errors under its own name. After an
error that is not ignored, NumPy computes the group again operation by operation, and warns or
raises.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies
from letir.ast.primitive import Primitive
from letir.ast.process_state import float_errors
from letir.ast.record_fields import never
from letir.ast.source import Source
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.eval.float_warnings import (
    ERROR_STATE,
    KERNEL_STATES,
    RAISING,
    SETTING_FILES,
    KernelError,
    current_state,
    is_float_error,
    run_raising,
)
from letir.executor.kernels.kernel_kinds import try_to_compile
from letir.executor.kernels.threaded_calls import ThreadedCall, with_threads
from letir.executor.kernels.visible_order import NumpyOrders, are_in_c_order, are_in_one_order
from letir.kernels.elementwise_groups import elementwise_kernel, kernel_of
from letir.kernels.llvm.machine_code import ufunc_of
from letir.plan.plan import plan_of

__warningregistry__ = "see float_warnings.is_float_error"  # not a dict: warnings.warn fails
SETTING_FILES.add(__file__)
_NO_RULE = never("kernels are made after derivatives are taken")


class LayoutError(Exception):
    """Raised for operands for which NumPy's results would have another memory order."""


def kernel_bind(
    binders: tuple[Local, ...],
    args: tuple[Arg, ...],
    body: Lambda,
    call: Callable,
    source: Source | None,
    *,
    keeps_order: bool = False,
    in_one_order: Sequence[int] = (),
    in_c_order: bool = False,
    deciding: Sequence[int] = (),
    repeated: int = 0,
) -> Bind:
    """The bind that calls a kernel; if the kernel cannot run, NumPy computes ``body``.

    ``call``: a ufunc, or a function that raises KernelError where NumPy has to compute.
    ``keeps_order``: NumPy computes ``body`` for operands with several axes that are not in C order,
    because the kernel's results would have another memory order than NumPy's; and for operands
    ``in_one_order`` that differ in their order, or, if ``in_c_order``, from C order. ``deciding``:
    if one of these operands is not in C order, the kernel's results are copied to NumPy's orders,
    which depend on these operands. ``repeated``: the number of binds at the start of ``body`` whose
    errors an earlier bind has reported.
    """
    n_results = len(binders)
    keeps_order = keeps_order and any(len(binder.type.shape) > 1 for binder in binders)
    test = are_in_c_order if in_c_order else are_in_one_order
    fits = partial(test, in_one_order) if in_one_order else None
    if keeps_order:
        places = [n for n, x in enumerate(body.params) if len(getattr(x.type, "shape", ())) > 1]
        fits = partial(are_in_c_order, places) if places else None
    by_numpy = _numpy_call(body, repeated)
    orders = NumpyOrders(deciding, by_numpy) if deciding and fits is None else None
    op = Primitive(
        "kernel",
        _kernel_impl(call, body, keeps_order, fits, by_numpy, orders),
        lambda *types: tuple([binder.type for binder in binders]),
        _NO_RULE,
        _NO_RULE,
        results=None if n_results == 1 else lambda: n_results,
        no_float_errors=True,  # the call itself handles them
        role="kernel",
    )
    return Bind(binders, op, args, op.default_attrs, source)


def _kernel_impl(
    call: Callable,
    body: Lambda,
    keeps_order: bool,
    fits: Callable | None,
    by_numpy: Callable,
    orders: NumpyOrders | None,
) -> Callable:
    """The function that calls a kernel, or NumPy where the kernel meets a floating-point error, and
    for operands for which ``fits`` is false.
    """
    is_one = len(body.ret.args) == 1
    has_python_errors = _has_python_errors(body)
    run = _strict_call(call) if has_python_errors else call
    stays = has_python_errors or keeps_order
    on_device: list[Callable | None] = [None] if stays else []  # made at the first call
    quiet = None if stays else _quiet_call(call, body)

    def impl(xp, *operands):
        if xp is not np:
            if not on_device:
                on_device.append(LATE_BOUND["device_call"](call, body))
            if on_device[0] is not None:
                try:
                    return on_device[0](xp, *operands)
                except KernelError:
                    pass
        elif KERNEL_STATES[current_state()] and (fits is None or fits(operands)):
            forms = [run] if quiet is None else [run, quiet][quiet.is_needed :]
            result = result_of_forms(forms, operands)
            if result is not None:
                return result if orders is None else orders.laid_out(result, operands)
        results = by_numpy(list(operands), xp)
        return results[0] if is_one else results

    facts: Any = impl  # attributes of the function, which plans read
    facts.body, facts.call = body, call
    facts.deciding = () if orders is None else orders.places  # in C order for ``kernel_ufunc``
    # the function that straight-line functions call, and the ``KERNEL_STATES`` it needs
    facts.kernel_ufunc = call if type(call) is np.ufunc and fits is None else None
    facts.least_state = 2 if has_python_errors else 1
    return impl


def _numpy_call(body: Lambda, repeated: int) -> Callable:
    """The function (operands, array module) that computes a group by NumPy's calls.

    It ignores floating-point errors of the first ``repeated`` binds.
    """
    if not repeated:
        return lambda operands, xp: plan_of(body).run(operands, xp)
    values = tuple([binder for bind in body.binds[:repeated] for binder in bind.binders])
    first = Lambda(body.params, body.binds[:repeated], Ret(values))
    rest = Lambda((*body.params, *values), body.binds[repeated:], body.ret)

    def run(operands: list, xp: Any) -> tuple:
        with float_errors(all="ignore"):
            computed = plan_of(first).run([*operands], xp)
        return plan_of(rest).run([*operands, *computed], xp)

    return run


def _has_python_errors(body: Lambda) -> bool:
    """Whether an operation raises an error of Python where a ufunc has a floating-point error."""
    return any(bind.op.python_errors for inner in all_bodies(body) for bind in inner.binds)


def _strict_call(call: Callable) -> Callable:
    """A kernel that raises for floating-point errors under any ``np.errstate``."""

    if ERROR_STATE is None:
        return partial(run_raising, call)

    def run_in_state(*operands):  # without the frames of ``run_raising``
        token = ERROR_STATE.set(RAISING[current_state()])
        try:
            return call(*operands)
        finally:
            ERROR_STATE.reset(token)

    return run_in_state


# ---- kernels that meet nan ----


class QuietCall:
    """Runs the second form of an elementwise kernel, for data with nan.

    Processors raise the flag of an invalid operation where they compare nan, and NumPy clears it. A
    kernel whose flag is raised runs again in a form whose comparisons raise none, which is compiled
    when it is needed first. Both forms compute the same bits, so it does not matter which of them
    computes a call.

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


def _quiet_call(call: Callable, body: Lambda) -> QuietCall | None:
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


LATE_BOUND["kernel_bind"] = kernel_bind
