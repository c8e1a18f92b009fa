"""``guard_raised`` and ``guard_computed``: exceptions that the recorded function may catch.

A bind that raised while recording is recorded as ``guard_raised``: a replay has to raise the same
exception, because the function caught it and continued. A bind that did not raise, in a ``try`` or
``with`` statement of the user's, is followed by ``guard_computed``: the bind is computed in a
replay too, although its value may be unused, and its exception becomes a GuardError
(``letir.eval.failures``). See docs/guards.md.
"""

from letir.ast import LATE_BOUND
from letir.ast.record_fields import never
from letir.ast.source import ERROR_EXPECTED
from letir.ast.terms import Const, Lambda
from letir.errors import GuardError, TraceError
from letir.ops.define.batch_rules import batch_first, emit_op
from letir.ops.define.records import define


def error_name(error: BaseException) -> str:
    """The name of the class of an exception, with its module unless it is Python's."""
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def first_line(error: BaseException) -> str:
    """The first line of the message of an exception."""
    return str(error).partition("\n")[0]


def _guard_raised_impl(xp, *args, call, body, error):
    """Raise GuardError unless the body raises the exception with which it was recorded.

    ``error``: the name of its class; then, if the function keeps it, a colon and its first line.
    """
    token = ERROR_EXPECTED.set(True)
    try:
        if body.memo(_is_one_call):
            LATE_BOUND["in_warning_state"](_compute_bind, xp, body, args)
        else:
            call(body, list(args))
        current = "nothing"
    except Exception as raised:
        current = error_name(raised)
        if ":" in error:
            current += f": {first_line(raised)}"
    finally:
        ERROR_EXPECTED.reset(token)
    if current != error:
        raise GuardError(
            f"the program was recorded where this raised {error}, now it raises {current}\n"
            "  trace again with these arguments, or call letir.jit(f), which does so"
        )
    return ()


def _is_one_call(body: Lambda) -> bool:
    """Whether a body is one bind, whose ``impl`` needs nothing but operands and attributes."""
    return len(body.binds) == 1 and not (body.binds[0].op.holds_lambdas or body.binds[0].op.effect)


def _compute_bind(xp, body: Lambda, args: tuple) -> None:
    """Compute the only bind of a body."""
    values = dict(zip(body.params, args, strict=True))
    (bind,) = body.binds
    operands = [arg.value if type(arg) is Const else values[arg] for arg in bind.args]
    bind.op.impl(xp, *operands, **bind.attrs)


def _mapped_guard_raised(args, axes, *, error, **_):
    """Raise TraceError: an exception of one example cannot hold for all."""
    raise TraceError(
        f"vmap: the program chose its path where a mapped value raised {error}, for one example\n"
        "  choose with numpy.where, which decides for each example"
    )


def _guard_raised_source(write, *args, body, error):
    """The body in a ``try`` statement, whose ``else`` raises."""
    error = error.partition(":")[0]  # text is not compared
    name = error.removeprefix("numpy.linalg.") if error.startswith("numpy.linalg.") else None
    caught = f"np.linalg.{name}" if name else error if "." not in error else "Exception"
    with write.block("try:"):
        for result in write.body(body, args):
            write.line(result)
    with write.block(f"except {caught}:"):
        write.line("pass")
    with write.block("else:"):
        write.line(f"raise ValueError({f'{write.place}recorded where it raised {error}'!r})")


guard_raised = define(
    "guard_raised",
    _guard_raised_impl,
    lambda *types, body, error: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=_mapped_guard_raised,
    results=lambda **_: 0,
    effect=True,
    holds_lambdas=True,
    source=_guard_raised_source,
    role="guard_raised",
    guards=True,
    for_scripts=False,
)

guard_computed = define(
    "guard_computed",
    # the value has been computed, so the bind has not raised
    lambda xp, x, *, caught=True: (),
    lambda x, *, caught: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=batch_first(lambda args, mapped, **attrs: emit_op("guard_computed", args, **attrs)),
    results=lambda **_: 0,
    effect=True,
    # the expression alone, maybe unused elsewhere
    source=lambda write, x, *, caught: write.line(x),
    role="guard_computed",
    guards=lambda *, caught: caught,
    for_scripts=False,
)
