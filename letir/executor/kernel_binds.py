"""Groups of fused binds as calls of compiled kernels, where these pay.

A kernel is a NumPy ufunc whose floating-point errors are those of its own arithmetic. Where one is
not ignored, the group is computed again by NumPy's calls, which warn or raise as the user knows it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies, map_bodies
from letir.ast.primitive import Primitive, never
from letir.ast.source import Source
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.eval.float_warnings import (
    ERROR_STATE,
    HANDLER,
    KernelError,
    current_state,
    make_error_state,
)
from letir.executor.row_kernels import LayoutError, with_row_kernels
from letir.kernels import compiler
from letir.passes.fusion.clustering import WORTH, pays_as_kernel
from letir.plan.plan import plan_of

__warningregistry__ = "see _is_float_error"  # not a dict: Python raises instead of warning here
_STRICT: dict[str, Any] = {
    "divide": "raise",
    "over": "raise",
    "invalid": "raise",
    "under": "ignore",
}
_MOST_LINES = 8
_NO_RULE = never("kernels are made after derivatives are taken")


def with_kernels(fn: Lambda, is_exact: bool = False, worth: int = WORTH) -> Lambda:
    """``fn`` with calls of kernels in place of groups; ``fn`` itself if there are none.

    ``is_exact``: only kernels that compute the bits that NumPy computes. ``worth``: the elements
    that a kernel computes, from which on it is made. Kernels are compiled here.
    """
    return map_bodies(fn, partial(_level_with_kernels, is_exact=is_exact, worth=worth))


def _level_with_kernels(fn: Lambda, is_exact: bool, worth: int) -> Lambda:
    """``fn`` with kernels for its own groups."""
    fn = with_row_kernels(fn, kernel_bind, is_exact, worth)
    found = {n: k for n, bind in enumerate(fn.binds) if (k := _kernel_for(bind, is_exact, worth))}
    if not found:
        return fn
    ufuncs = compiler.ufuncs_of([(kernel, None) for kernel in found.values()])
    binds = list(fn.binds)
    for n, ufunc in zip(found, ufuncs, strict=True):
        group = binds[n]
        body = group.attrs["body"]
        binds[n] = kernel_bind(group.binders, group.args, body, ufunc, group.source)
    return fn.with_binds(binds)


def _kernel_for(bind: Bind, is_exact: bool, worth: int) -> Any:
    """The kernel of a bind if it pays, else None."""
    if bind.op.role != "fused":
        return None
    body = bind.attrs["body"]
    if len(body.params) != len(bind.args) or not pays_as_kernel(body, worth):
        return None
    if any(p.type != a.type for p, a in zip(body.params, bind.args, strict=True)):
        return None
    return compiler.kernel_of(body, is_exact)


def kernel_bind(
    binders: tuple[Local, ...],
    args: tuple[Arg, ...],
    body: Lambda,
    call: Callable,
    source: Source | None,
) -> Bind:
    """The bind that calls a kernel; NumPy computes ``body`` where the kernel cannot.

    ``call``: a ufunc, or a function that raises KernelError where NumPy has to compute.
    """
    n_results = len(binders)
    op = Primitive(
        "kernel",
        _kernel_impl(call, body, n_results),
        lambda *types: tuple([binder.type for binder in binders]),
        _NO_RULE,
        _NO_RULE,
        results=None if n_results == 1 else lambda: n_results,
        no_float_errors=True,  # none that are left to the plan
        role="kernel",
    )
    return Bind(binders, op, args, op.default_attrs, source)


def _kernel_impl(call: Callable, body: Lambda, n_results: int) -> Callable:
    """The function that calls a kernel, or NumPy where the kernel meets a floating-point error."""
    is_one = n_results == 1
    run = _strict_call(call) if _has_python_errors(body) else call

    def impl(xp, *operands):
        if xp is np and not _HANDLED[current_state()]:
            try:
                return run(*operands)
            except LayoutError:
                pass
            except (KernelError, FloatingPointError, TypeError) as error:
                if not _is_float_error(error):
                    raise
        results = plan_of(body).run(list(operands), xp)
        return results[0] if is_one else results

    impl.body = body  # type: ignore[attr-defined]  # for ``explain``
    return impl


def kernel_lines(binds: Sequence[Bind]) -> list[str]:
    """A line for each kernel among the binds of a plan, at most ``_MOST_LINES``."""
    bodies = [bind.op.impl.body for bind in binds if bind.op.role == "kernel"]  # type: ignore[attr-defined]
    lines = []
    for body in bodies[:_MOST_LINES]:
        names = [b.op.name for inner in all_bodies(body) for b in inner.binds]
        names = [name for name in names if name != "fused"]
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        lines.append(f"kernel of {len(names)} operations: {shown}")
    left = len(bodies) - len(lines)
    return [*lines, *([f"{left} more kernels"] if left else [])]


def _has_python_errors(body: Lambda) -> bool:
    """Whether an operation raises where a ufunc has a floating-point error."""
    return any(bind.op.python_errors for inner in all_bodies(body) for bind in inner.binds)


def _strict_call(call: Callable) -> Callable:
    """A kernel that raises for floating-point errors under any ``np.errstate``."""

    if ERROR_STATE is None:

        def run(*operands):
            with np.errstate(**_STRICT):
                return call(*operands)

        return run
    state = make_error_state(**_STRICT)

    def run_in_state(*operands):  # the context manager takes longer than a small kernel
        token = ERROR_STATE.set(state)
        try:
            return call(*operands)
        finally:
            ERROR_STATE.reset(token)

    return run_in_state


def _is_float_error(error: Exception) -> bool:
    """Whether a kernel raised because of a floating-point error, under any ``np.errstate``."""
    if isinstance(error, TypeError):
        return error.args == ("'registry' must be a dict or None",)
    return True


class _HandledStates(dict):
    """Whether in a state of NumPy a floating-point error is given to a function of the user's."""

    def __missing__(self, state: Any) -> bool:
        if len(self) >= 256:  # each errstate has an object of its own
            self.clear()
        handles = not {"call", "log", "print"}.isdisjoint(np.geterr().values())
        found = self[state] = handles and np.geterrcall() is not HANDLER
        return found


_HANDLED = _HandledStates()


LATE_BOUND.update(with_kernels=with_kernels, kernel_lines=kernel_lines)
