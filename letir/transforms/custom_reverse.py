"""``CustomFunction``, a function with a user-defined derivative rule, and ``custom_vjp``."""

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Generic

from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import Attrs
from letir.ast.derivative_types import carries_derivative
from letir.ast.pytrees import flatten
from letir.ast.signatures import P, R, dir_of
from letir.ast.terms import Arg
from letir.errors import DTypeError, LetirError, ShapeError
from letir.eval.evaluator import run_flat
from letir.ops.autodiff.gradient_steps import custom_vjp as custom_vjp_op
from letir.ops.define.records import cast_cotangent
from letir.ops.shape.shape_and_creation import zeros_like
from letir.tracing.checks.misuse import describe_value, is_operand
from letir.tracing.entry import record
from letir.tracing.manual import is_tracing
from letir.tracing.source_locations import user_place
from letir.tracing.trace_state import ABSTRACT, ACTIVE, Trace
from letir.tracing.tracer import Tracer
from letir.transforms.program_call import bind_arguments, record_call, split_arguments


class CustomFunction(Generic[P, R]):
    """A function with a user-defined derivative rule: the base of custom_vjp and custom_jvp.

    Arguments in ``nondiff_argnums`` may be any objects; the rule takes them before all others.
    """

    kind = ""

    @entry_point
    def __init__(self, function: Callable[P, R], nondiff_argnums: int | Sequence[int] = ()):
        LATE_BOUND["refuse_unless_function"](self.kind, function)
        LATE_BOUND["refuse_argnums"](self.kind, nondiff_argnums, "nondiff_argnums")
        functools.update_wrapper(self, function)  # type: ignore[arg-type]  # an object, not a function
        is_one = isinstance(nondiff_argnums, int)
        self.nondiff_argnums: tuple[int, ...] = (
            (nondiff_argnums,) if is_one else tuple(nondiff_argnums)  # type: ignore
        )
        self.function = function

    @property
    def name(self) -> str:
        """The name of the function in error messages."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def positional(self, args: tuple, kwargs: dict) -> tuple:
        """All arguments by position, in the order of the function's parameters, with defaults.

        NumPy's functions may have no signature: their arguments are not changed. Raises LetirError
        for keyword-only arguments.
        """
        module = getattr(self.function, "__module__", None) or "numpy"  # a ufunc may have none
        if not kwargs and module.partition(".")[0] == "numpy":
            return args
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except (ValueError, TypeError):
            if not kwargs:
                return args  # calling the function, or its rule, will raise the error
            raise
        if bound.kwargs:
            raise LetirError(
                f"{self}: its rule takes arguments by position, found the keywords "
                f"{', '.join(bound.kwargs)}\n  make them ordinary parameters"
            )
        bound.apply_defaults()
        return bound.args

    def call_with(self, positional: tuple[Any, ...]) -> R:
        """Call the function itself, without its rule."""
        function: Callable[..., R] = self.function
        return LATE_BOUND["call_plainly"](function, positional, {})

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}"


# the functions whose ``forward`` is being recorded
_inside_forward: ContextVar[tuple] = ContextVar("_inside_forward", default=())


class custom_vjp(CustomFunction[P, R]):
    """A function whose reverse-mode rule is given by ``defvjp(forward, backward)``.

    ``forward(*args)`` returns (result, residuals); ``backward(residuals, ct)`` returns a cotangent
    for each argument, None for zero. Outside traces the function itself is called; in a trace,
    ``forward`` is recorded instead. Arguments in ``nondiff_argnums`` may be any objects;
    ``backward`` takes them first, and returns no cotangents for them. Keyword arguments become
    positional ones. ``forward`` may call the function itself. In forward mode ``backward`` is
    transposed, for which it has to be linear in the cotangents.

    >>> import numpy as np
    >>> from letir import grad
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> grad(lambda x: 5 * clipped(x))(2.0)
    np.float64(1.0)
    """

    kind = "custom_vjp"
    __dir__ = dir_of("defvjp")
    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None

    @entry_point
    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the derivative rule, see ``custom_vjp``."""
        LATE_BOUND["refuse_unless_function"](f"{self}: forward", forward)
        LATE_BOUND["refuse_unless_function"](f"{self}: backward", backward)
        self.forward, self.backward = forward, backward

    @entry_point
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        positional = self.positional(args, kwargs)
        fixed, dynamic = split_arguments(
            positional, self.nondiff_argnums, f"{self}: nondiff_argnums"
        )
        leaves = flatten(dynamic)[0]
        if self in _inside_forward.get():  # called by its own forward: only the values are needed
            return self.call_with(positional)
        if not is_tracing():
            if not any(hasattr(type(leaf), "__letir_run__") for leaf in leaves):
                return self.call_with(positional)
            # Variables: recorded first, where ``self`` is called again on traced values
            call = record_call(bind_arguments(self, fixed, self.nondiff_argnums), dynamic, {})
            return call.out_tree.unflatten(run_flat(call.fn, list(call.leaves)))
        # without traced arguments all are constants, and the rule is not needed
        if not any(isinstance(leaf, Tracer) for leaf in leaves):
            return self.call_with(positional)
        if self.forward is None:
            raise LetirError(f"{self}: it has no rule\n  call its defvjp(forward, backward)")
        return self.record_call(positional, fixed, dynamic)

    def record_call(self, args: tuple, fixed: tuple, dynamic: tuple) -> Any:
        """Record ``forward``, then a bind that holds the backward program; returns its results."""
        trace = ACTIVE.get()
        assert isinstance(trace, Trace)
        before = len(trace.binds)  # the binds after this position belong to forward
        outer = _inside_forward.set((*_inside_forward.get(), self))
        try:
            result = LATE_BOUND["call_rule"](f"{self}: forward", self.forward, *args)
        finally:
            _inside_forward.reset(outer)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ShapeError(
                f"{self}: forward must return (result, residuals), "
                f"found {describe_value(result)}\n"
                "  return (result, None) if backward needs no residuals"
            )
        out, residuals = result
        outs, out_spec = flatten(out)
        saved = flatten(residuals)[0]
        inputs = [leaf for leaf in flatten(dynamic)[0] if isinstance(leaf, Tracer)]
        closed_over = _closed_over_by(trace, before, outs, inputs)
        rule = self._record_backward(residuals, out, fixed, dynamic)
        captured = rule.lifted
        attrs = Attrs(
            n_outs=len(outs),
            n_residuals=len(saved) + len(captured),
            backward=_reorder_backward(rule, len(saved)),
        )
        # operands in the order of the attributes: n_outs results, n_residuals residuals, arguments
        operands = [trace.enter(value) for value in (*outs, *saved, *captured, *inputs)]
        trace.source, _ = user_place(3)  # the caller of ``__call__``
        # closed_over values are operands, so that differentiating with respect to them is an error
        binders = trace.emit(custom_vjp_op, (*operands, *closed_over), attrs)
        values = [out.held_value if isinstance(out, Tracer) else out for out in outs]
        return out_spec.unflatten(map(functools.partial(Tracer, trace), binders, values))

    def _record_backward(self, residuals, out, fixed: tuple, dynamic: tuple):
        """``backward`` as a program: (residuals, cotangents) -> cotangents of traced arguments."""

        def backward(residuals, ct):
            caller = f"{self}: backward"
            cotangents = LATE_BOUND["call_rule"](caller, self.backward, *fixed, residuals, ct)
            if not isinstance(cotangents, tuple) or len(cotangents) != len(dynamic):
                raise ShapeError(
                    f"{caller} must return a tuple with one cotangent for each of {len(dynamic)} "
                    f"arguments, found {describe_value(cotangents)}\n"
                    "  write (ct,) for one, None for a zero"
                )
            return [
                self._cotangent(i, ct, leaf)
                for i, (ct, arg) in enumerate(zip(cotangents, dynamic, strict=True))
                for ct, leaf in _pair_cotangents(ct, arg)
                if isinstance(leaf, Tracer)
            ]

        # ABSTRACT: the program has to be valid for all values of the residuals
        return record(backward, (residuals, out), {}, ABSTRACT)

    def _cotangent(self, position: int, ct, leaf: Tracer):
        """``ct`` in the type of the argument ``leaf``; zeros for None."""
        if ct is None:
            return zeros_like(leaf)
        if not is_operand(ct):
            raise DTypeError(
                f"{self}: backward gave argument {position} {describe_value(ct)}, expected a "
                f"cotangent of type {leaf.type}\n  return an array, or None for a zero"
            )
        if getattr(ct, "shape", ()) != leaf.shape:
            raise ShapeError(
                f"{self}: backward gave argument {position} "
                f"a cotangent of shape {getattr(ct, 'shape', ())}, expected {leaf.shape}\n"
                "  a cotangent has the shape of its argument; sum over axes that were broadcast"
            )
        if getattr(ct, "dtype", leaf.dtype).kind == "c" and leaf.dtype.kind != "c":
            raise DTypeError(
                f"{self}: backward gave argument {position} a complex cotangent, expected "
                f"{leaf.dtype}\n  take .real of it"
            )
        return cast_cotangent(ct, leaf.dtype) if isinstance(ct, Tracer) else ct


def _closed_over_by(trace: Trace, before: int, outs: list, inputs: list) -> list[Arg]:
    """The floating locals, except inputs, that binds recorded since ``before`` read.

    The rule gives no derivative with respect to them.
    """
    new = trace.binds[before:]
    inside = {trace.enter(leaf) for leaf in inputs}
    inside.update(binder for bind in new for binder in bind.binders)
    read: list[Arg] = [local for bind in new for local in bind.locals()]
    read += [trace.enter(out) for out in outs if isinstance(out, Tracer)]
    return list(dict.fromkeys(x for x in read if x not in inside and carries_derivative(x)))


def _pair_cotangents(ct, arg) -> list[tuple]:
    """(cotangent, leaf) for each leaf of an argument."""
    leaves, spec = flatten(arg)
    if ct is None:
        return [(None, leaf) for leaf in leaves]
    return list(zip(spec.flatten_up_to(ct), leaves, strict=True))


def _reorder_backward(rule, count: int):
    """The backward program with the captured parameters moved from the end to the residuals."""
    fn, n = rule.fn, len(rule.lifted)
    cut = len(fn.params) - n
    params = (*fn.params[:count], *fn.params[cut:], *fn.params[count:cut])
    return type(fn)(params, fn.binds, fn.ret)
