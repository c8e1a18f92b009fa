"""Calls of users' functions in a program, of which only the run tells whether they require grad."""

from letir.ast.primitive import Absent
from letir.ast.terms import Bind, Lambda


def might_require_grad(fn: Lambda) -> bool:
    """Whether a result may require grad although no parameter does.

    True if an opaque function is called, which may hold a Variable of its own.
    """
    return any(is_opaque_call(bind) for bind in fn.binds)


def is_opaque_call(bind: Bind) -> bool:
    """Whether a bind calls a user's function without a known derivative."""
    return bind.op.is_users and type(bind.op.vjp) is Absent and not bind.op.vjp.final
