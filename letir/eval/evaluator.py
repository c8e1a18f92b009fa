"""``run_forward``: the reference evaluator. A visitor that goes from let to let by tail calls.

The environment counts uses down and forgets a value at its last one, so that every array is freed
as soon as no later bind needs it [C1]: the evaluator itself holds no value in a local variable, a
tuple, or a traceback.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.attrs import Attrs
from letir.ast.primitive import LATE_BOUND, Primitive, results_tuple
from letir.ast.terms import Arg, Bind, Lambda, Let, Local, Ret
from letir.eval.arguments import checked_arguments, flat_arguments, nested_results
from letir.eval.array_modules import array_module
from letir.eval.failures import forget_values, say_where
from letir.eval.memory_checks import check_writable, own_results, update_in_place
from letir.eval.nan_checks import nan_finder
from letir.ops.effects.writes_to_arguments import changed_params
from letir.visitors.usedef import use_counts
from letir.visitors.visitor import ExprVisitor, TailCall


class Environment:
    """The values of locals that are still needed, with the number of uses that each has left."""

    def __init__(self, fn: Lambda, args: Sequence):
        self.left = use_counts(fn).copy()  # the counts are kept with the program, for all its calls
        # an argument that is never used is not kept for a moment
        self.values = {p: arg for p, arg in zip(fn.params, args, strict=True) if p in self.left}
        self.at: Bind | None = None  # the bind that is being evaluated, for error messages

    def operands(self, args: tuple[Arg, ...]) -> list:
        """The values of operands; the last use of a local moves its value out."""
        left, values, found = self.left, self.values, []
        for arg in args:
            if type(arg) is not Local:
                found.append(arg.value)
            # counts only go down to 1: a value that is moved out is not asked for again
            elif left[arg] == 1:
                found.append(values.pop(arg))
            else:
                left[arg] -= 1
                found.append(values[arg])
        return found

    def keep(self, binder: Local, result: Any) -> None:
        """Remember a result if it is used at all."""
        if binder in self.left:
            self.values[binder] = result

    def bind(self, binders: tuple[Local, ...], results: tuple) -> None:
        """Remember those results that are used at all."""
        for binder, result in zip(binders, results, strict=True):
            self.keep(binder, result)


class Evaluator(ExprVisitor):
    """Evaluates a body in an environment: the semantics of the language in two methods.

    ``observe(bind, results)`` sees every value as it is made.
    """

    def __init__(self, xp, observe: Callable | None = None):
        self.xp, self.observe = xp, observe

    def visit_let(self, let: Let, env: Environment) -> TailCall:
        env.at = bind = let.bind
        # operands are never named here: a name would keep them beyond their last use [C1]
        op, attrs = bind.op, bind.attrs
        if op.holds_lambdas:
            out = _computed_with(self.call, op, self.xp, env.operands(bind.args), attrs)
        elif op.update is not None:
            out = update_in_place(op, self.xp, env.operands(bind.args), attrs)
        elif attrs:
            out = op.impl(self.xp, *env.operands(bind.args), **attrs)
        else:  # nearly all binds: without the copy that an empty ** makes
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
        """The results of ``fn`` on values; a list of them is emptied.

        An exception passes through as it is, with a note that says the let line; no frame of its
        traceback keeps a value.
        """
        env, outer = Environment(fn, args), sys.exception()
        if type(args) is list:
            args.clear()
        try:
            results = self.visit(fn.body, env)
        except BaseException as error:
            env.values.clear()
            forget_values(error, outer)
            if env.at is not None:
                say_where(error, fn, env.at)
            raise
        # of nested bodies too: the program around does not know their constants
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
    ``debug_nans`` raises FloatingPointError at the first bind that makes a nan. Traced and
    differentiable arguments give traced and differentiable results.
    Raises ShapeError or DTypeError if the arguments do not fit, GuardError if the recorded path
    does not hold.

    >>> from letir.ast.text.parser import parse
    >>> run_forward(parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }"), 3.0, 2.0)
    np.float64(6.0)
    """
    leaves = flat_arguments(f, args, kwargs)
    del args, kwargs  # else this frame holds the arguments until the end
    return nested_results(f, run_flat(f, leaves, nan_finder(observe) if debug_nans else observe))


def run_fitting(f: Lambda, leaves: list) -> tuple:
    """``run_flat`` for a program that was recorded at these very arguments, and changes none."""
    for leaf in leaves:
        if hasattr(type(leaf), "__letir_run__"):
            return run_flat(f, leaves)
    return Evaluator(array_module(leaves)).call(f, leaves)


def run_flat(f: Lambda, leaves: list, observe: Callable | None = None) -> tuple:
    """The results in a row for arguments in a row; ``leaves`` is emptied."""
    # asked of the class, as Python asks for its protocols: instances may answer __getattr__
    runner = next((leaf for leaf in leaves if hasattr(type(leaf), "__letir_run__")), None)
    if runner is not None:
        return runner.__letir_run__(f, leaves)
    leaves = checked_arguments(f, leaves)
    if changed := changed_params(f):
        check_writable(f, leaves, changed)
    return Evaluator(array_module(leaves), observe).call(f, leaves)


def compute(
    op: Primitive, operands: Sequence, attrs: Attrs, evaluator: Evaluator | None = None
) -> Any:
    """One operation on arrays and numbers, at once: a result, or a tuple of them."""
    xp = array_module(operands) if evaluator is None else evaluator.xp
    if not op.holds_lambdas:
        return op.impl(xp, *operands, **attrs) if attrs else op.impl(xp, *operands)
    return _computed_with((evaluator or Evaluator(xp)).call, op, xp, list(operands), attrs)


def _computed_with(call: Callable, op: Primitive, xp, operands: list, attrs: Attrs):
    """An operation that holds bodies, which ``call`` evaluates; ``operands`` may be emptied."""
    if op.consume is not None:
        return op.consume(xp, operands, call=call, **attrs)
    return op.impl(xp, *operands, call=call, **attrs)


LATE_BOUND.update(call=run_forward, compute=compute)
