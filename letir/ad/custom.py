"""``custom_vjp``: a function with a derivative rule of the user's own."""

import functools
from collections.abc import Callable

from letir.ast.attrs import Attrs
from letir.ast.trees import flatten
from letir.errors import LetirError, ShapeError
from letir.ops.control import custom_vjp as custom_vjp_op
from letir.ops.makers import recast
from letir.ops.sizes import zeros_like
from letir.tracing.recorder import ABSTRACT, ACTIVE, Trace
from letir.tracing.recording import is_tracing, record
from letir.tracing.tracer import Tracer


class custom_vjp:
    """A function whose reverse-mode rule is given by ``defvjp(forward, backward)``.

    ``forward(*args)`` returns (result, residuals), ``backward(residuals, ct)`` a cotangent for each
    argument, None for zero. Without a trace the function is called as it is; in a trace ``forward``
    is recorded in its place.

    >>> import numpy as np
    >>> from letir import grad
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> grad(lambda x: 5 * clipped(x))(2.0)
    np.float64(1.0)
    """

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.function, self.forward, self.backward = function, None, None

    def defvjp(self, forward: Callable, backward: Callable) -> None:
        """Set the rule."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args):
        if not is_tracing() or not any(isinstance(leaf, Tracer) for leaf in flatten(args)[0]):
            return self.function(*args)
        if self.forward is None:
            raise LetirError(
                f"custom_vjp {self.function.__name__}: it has no rule\n"
                "  call its defvjp(forward, backward)"
            )
        out, residuals = self.forward(*args)
        outs, out_spec = flatten(out)
        kept = flatten(residuals)[0]
        inputs = [leaf for leaf in flatten(args)[0] if isinstance(leaf, Tracer)]
        rule = self._recorded_backward(residuals, out, args)
        captured = rule.lifted
        attrs = Attrs(
            n_outs=len(outs),
            n_residuals=len(kept) + len(captured),
            backward=_reordered(rule, len(kept)),
        )
        trace: Trace = ACTIVE.get()
        return out_spec.unflatten(
            trace.apply(custom_vjp_op, (*outs, *kept, *captured, *inputs), attrs)
        )

    def _recorded_backward(self, residuals, out, args):
        """``backward`` as a program of residuals and cotangents; its results are those of the
        traced arguments.
        """

        def backward(residuals, ct):
            found = self.backward(residuals, ct)
            if not isinstance(found, tuple) or len(found) != len(args):
                raise ShapeError(
                    f"custom_vjp {self.function.__name__}: backward returns a tuple with one "
                    f"cotangent for each of {len(args)} arguments, found {found!r}"
                )
            return [
                self._cotangent(i, ct, leaf)
                for i, (ct, arg) in enumerate(zip(found, args, strict=True))
                for ct, leaf in _paired(ct, arg)
                if isinstance(leaf, Tracer)
            ]

        return record(backward, (residuals, out), {}, ABSTRACT)

    def _cotangent(self, position: int, ct, leaf: Tracer):
        """``ct`` as the argument's type wants it; zeros for None."""
        if ct is None:
            return zeros_like(leaf)
        if getattr(ct, "shape", ()) != leaf.shape:
            raise ShapeError(
                f"custom_vjp {self.function.__name__}: backward gave argument {position} "
                f"a cotangent of shape {getattr(ct, 'shape', ())}, expected {leaf.shape}"
            )
        return recast(ct, leaf.dtype) if isinstance(ct, Tracer) else ct


def _paired(ct, arg) -> list[tuple]:
    """(cotangent, leaf) for each leaf of an argument."""
    leaves, spec = flatten(arg)
    if ct is None:
        return [(None, leaf) for leaf in leaves]
    return list(zip(spec.flatten_up_to(ct), leaves, strict=True))


def _reordered(rule, count: int):
    """The backward program with the captured values right after the residuals, before the
    cotangents.
    """
    fn, n = rule.fn, len(rule.lifted)
    cut = len(fn.params) - n
    params = (*fn.params[:count], *fn.params[cut:], *fn.params[count:cut])
    return type(fn)(params, fn.binds, fn.ret)
