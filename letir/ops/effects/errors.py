"""``guard_raised`` and ``guard_computed``: exceptions that the recorded function may catch.

What raised while recording is recorded as ``guard_raised``: a replay has to raise the same, because
the function caught it and went on. What did not raise, in a ``try`` or ``with`` of the user's, is
followed by ``guard_computed``: the bind is computed in a replay too, although its value may be
unused, and its exception becomes a GuardError (``letir.eval.failures``). See docs/guards.md.
"""

from letir.ast.primitive import never
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


def _guard_raised_impl(xp, *args, call, body, error):
    """Raise GuardError unless the body raises the exception with which it was recorded."""
    try:
        call(body, list(args))
        found = "nothing"
    except Exception as raised:
        found = error_name(raised)
    if found != error:
        raise GuardError(
            f"the program was recorded where this raised {error}, now it raises {found}\n"
            "  trace again with these arguments, or call letir.jit(f), which does so"
        )
    return ()


def _mapped_guard_raised(args, axes, *, error, **_):
    """Raise TraceError: an exception of one example cannot hold for all."""
    raise TraceError(
        f"vmap: the program chose its path where a mapped value raised {error}, for one example\n"
        "  choose with numpy.where, which decides for each example"
    )


def _guard_raised_source(write, *args, body, error):
    """The body in a ``try`` statement, whose ``else`` raises."""
    name = error.removeprefix("numpy.linalg.") if error.startswith("numpy.linalg.") else None
    known = f"np.linalg.{name}" if name else error if "." not in error else "Exception"
    with write.block("try:"):
        for result in write.body(body, args):
            write.line(result)
    with write.block(f"except {known}:"):
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
    for_scripts=False,
)

guard_computed = define(
    "guard_computed",
    # the value is computed by now: an exception never gets here
    lambda xp, x, *, caught=True: (),
    lambda x, *, caught: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=batch_first(lambda args, mapped, **attrs: emit_op("guard_computed", args, **attrs)),
    results=lambda **_: 0,
    effect=True,
    source=lambda write, x, *, caught: write.line(x),  # an expression that nothing else may use
    role="guard_computed",
    for_scripts=False,
)
