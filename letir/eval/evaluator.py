"""``run_forward``: the reference evaluator, a visitor that continues from let to let by tail calls.

The environment counts the remaining uses of each value and drops it at the last one, so that arrays
are freed as soon as no later bind needs them [semantics.md C1]. For that the evaluator holds no
value in a local variable, a tuple, or a traceback.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive, results_tuple
from letir.ast.terms import Arg, Bind, Lambda, Let, Local, Ret
from letir.eval.arguments import checked_arguments, flat_arguments, nesting_of
from letir.eval.array_modules import array_module, evaluator_of
from letir.eval.memory_checks import check_writable, own_results, update_in_place
from letir.ops.effects.writes_to_arguments import changed_params
from letir.visitors.usedef import use_counts
from letir.visitors.visitor import ExprVisitor, TailCall


class Environment:
    """The values of live locals, with the number of remaining uses of each."""

    def __init__(self, fn: Lambda, args: Sequence):
        self.left = use_counts(fn).copy()  # a copy: the counts are cached on the program
        # unused arguments are dropped immediately
        self.values = {p: arg for p, arg in zip(fn.params, args, strict=True) if p in self.left}
        self.at: Bind | None = None  # the bind that is being evaluated, for error messages

    def operands(self, args: tuple[Arg, ...]) -> list:
        """The values of operands; the last use of a local moves its value out."""
        left, values, result = self.left, self.values, []
        for arg in args:
            if type(arg) is not Local:
                result.append(arg.value)
            # counts stop at 1, because no use follows the one that moves the value out
            elif left[arg] == 1:
                result.append(values.pop(arg))
            else:
                left[arg] -= 1
                result.append(values[arg])
        return result

    def keep(self, binder: Local, result: Any) -> None:
        """Store a result if it is used."""
        if binder in self.left:
            self.values[binder] = result

    def bind(self, binders: tuple[Local, ...], results: tuple) -> None:
        """Store the results that are used."""
        for binder, result in zip(binders, results, strict=True):
            self.keep(binder, result)


class Evaluator(ExprVisitor):
    """Evaluates a body in an environment: the semantics of the language in two methods.

    ``observe(bind, results)`` is called after every bind.
    """

    def __init__(self, xp, observe: Callable | None = None):
        self.xp, self.observe = xp, observe

    def visit_let(self, let: Let, env: Environment) -> TailCall:
        env.at = bind = let.bind
        # no variable for the operands: it would keep them alive beyond their last use
        op, attrs = bind.op, bind.attrs
        if op.holds_lambdas:
            out = _compute_with(self.call, op, self.xp, env.operands(bind.args), attrs)
        elif op.update is not None:
            out = update_in_place(op, self.xp, env.operands(bind.args), attrs)
        elif attrs:
            out = op.impl(self.xp, *env.operands(bind.args), **attrs)
        else:  # the usual case, without the dict that an empty ** makes
            out = op.impl(self.xp, *env.operands(bind.args))
        if self.observe is not None:
            self.observe(bind, results_tuple(op, out))
        if op.results is None:  # not ``results_tuple``, nor ``keep``: this runs once a bind
            if bind.binders[0] in env.left:
                env.values[bind.binders[0]] = out
        else:
            env.bind(bind.binders, out)
        return TailCall(let.body, env)

    def visit_ret(self, ret: Ret, env: Environment) -> tuple:
        return tuple(env.operands(ret.args))

    def call(self, fn: Lambda, args: Sequence) -> tuple:
        """The results of ``fn`` for the values ``args``; if that is a list, it is emptied.

        An exception gets a note with the let line; the frames of its traceback are cleared.
        """
        env, outer = Environment(fn, args), sys.exception()
        if type(args) is list:
            args.clear()
        try:
            results = LATE_BOUND["in_warning_state"](self.visit, fn.body, env)
        except BaseException as error:
            env.values.clear()
            LATE_BOUND["forget_values"](error, outer)
            if env.at is not None:
                LATE_BOUND["add_location_note"](error, fn, env.at)
            raise
        # for nested bodies too: the outer program does not know their constants
        return own_results(fn, results) if fn.constants else results


def run_forward(
    f: Lambda,
    *args: Any,
    observe: Callable[[Bind, tuple], Any] | None = None,
    debug_nans: bool = False,
    **kwargs: Any,
) -> Any:
    """Evaluate ``f`` on arrays of the types that it was recorded for.

    Every value is freed at its last use. ``observe(bind, results)`` is called after every bind.
    ``debug_nans`` raises FloatingPointError at the first bind that computes a nan. Traced and
    differentiable arguments give traced and differentiable results.
    Raises ShapeError or DTypeError if the arguments do not fit, GuardError if the recorded path
    does not hold.

    >>> from letir.ast.text.parser import parse
    >>> run_forward(parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }"), 3.0, 2.0)
    np.float64(6.0)
    """
    try:
        leaves = flat_arguments(f, args, kwargs)
        nest = nesting_of(f, args, kwargs)
        del args, kwargs  # they would keep the arguments alive until the end
        observe = LATE_BOUND["nan_observer"](observe, debug_nans) if observe or debug_nans else None
        return nest(run_flat(f, leaves, observe))
    except BaseException as error:
        LATE_BOUND["shorten_traceback"](error)
        raise


def run_unchecked(f: Lambda, leaves: list) -> tuple:
    """``run_flat`` without checks, for a program recorded at these arguments that mutates none."""
    for leaf in leaves:
        if hasattr(type(leaf), "__letir_run__"):
            return run_flat(f, leaves)
    return evaluator_of(leaves).call(f, leaves)


def run_flat(f: Lambda, leaves: list, observe: Callable | None = None) -> tuple:
    """The flat results of ``f`` for flat arguments; the list ``leaves`` is emptied."""
    # looked up on the class, as Python's protocols are: instances may define __getattr__
    runner = next((leaf for leaf in leaves if hasattr(type(leaf), "__letir_run__")), None)
    if runner is not None:
        return runner.__letir_run__(f, leaves)
    leaves = checked_arguments(f, leaves)
    if changed := changed_params(f):
        check_writable(f, leaves, changed)
    return evaluator_of(leaves, observe, f.params).call(f, leaves)


def compute(
    op: Primitive, operands: Sequence, attrs: Attrs, evaluator: Evaluator | None = None
) -> Any:
    """Compute one operation on arrays and numbers; returns a result, or a tuple of results."""
    xp = array_module(operands) if evaluator is None else evaluator.xp
    if not op.holds_lambdas:
        return op.impl(xp, *operands, **attrs) if attrs else op.impl(xp, *operands)
    return _compute_with((evaluator or Evaluator(xp)).call, op, xp, list(operands), attrs)


def _compute_with(call: Callable, op: Primitive, xp, operands: list, attrs: Attrs):
    """Compute an operation whose bodies ``call`` evaluates; ``operands`` may be emptied."""
    if op.consume is not None:
        return op.consume(xp, operands, call=call, **attrs)
    return op.impl(xp, *operands, call=call, **attrs)


LATE_BOUND.update(call=run_forward, compute=compute, evaluator=Evaluator)
