"""``propagate_shapes`` fills in types inferred from operands; ``map_fitting_bodies`` is
``map_bodies`` for passes that depend on types.
"""

from collections.abc import Callable

from attrs import define, field

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import all_bodies, bodies_of, has_bodies, map_bodies, with_bodies
from letir.ast.builder import result_types
from letir.ast.process_state import paused_gc
from letir.ast.terms import NO_TYPE, Bind, Lambda, Local
from letir.errors import LetirError


def map_fitting_bodies(fn: Lambda, change: Callable[[Lambda], Lambda]) -> Lambda:
    """``map_bodies`` for a ``change`` that depends on types: bodies stay unchanged if their
    parameters have other types than the operands.
    """
    if not has_bodies(fn):  # nearly all programs
        return change(fn)
    unfit = {
        id(body.params)  # not the body's id: its nested bodies have been replaced by then
        for outer in all_bodies(fn)
        for bind in outer.binds
        if bind.op.holds_lambdas
        for body in bodies_of(bind)
        if not _is_fit(bind, body)
    }
    if not unfit:
        return map_bodies(fn, change)
    return map_bodies(fn, lambda body: body if id(body.params) in unfit else change(body))


def _is_fit(bind: Bind, body: Lambda) -> bool:
    """Whether the declared types of a body's parameters agree with its operands, if known."""
    types = _given_types(bind)
    if len(types) != len(body.params):  # a loop whose type rule has checked the operands
        return True
    pairs = zip(types, body.params, strict=True)
    # a missing cotangent has no type
    return all(kind is param.type or kind is NO_TYPE for kind, param in pairs)


def _given_types(bind: Bind) -> list:
    """The types of the arguments of a bind's bodies: of its operands or their elements."""
    types, layout = [arg.type for arg in bind.args], bind.op.bodies
    if layout is None or layout.given_types is None or None in types or NO_TYPE in types:
        return types
    return layout.given_types(types, bind.attrs)


@entry_point
@paused_gc()
def propagate_shapes(fn: Lambda) -> Lambda:
    """Fill in types that are unknown, or have symbolic sizes, from the types of operands; also in
    bodies of conditionals and gradient steps.

    Declared types that are more specific than the type rules stay. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0: float64[3] { %1 = exp(%0); %2 = sum(%1, axis=None); return %2 }")
    >>> print(propagate_shapes(f))
    lambda %0: float64[3] {
      %1: float64[3] = exp(%0)
      %2: float64[] = sum(%1)
      return %2
    }
    """
    return _Propagation().program(fn)


@define(eq=False)
class _Propagation:
    """The propagation in one program; ``cache``: bodies by id and types of their operands."""

    cache: dict = field(factory=dict)

    def program(self, fn: Lambda) -> Lambda:
        """``propagate_shapes`` of ``fn``."""
        names: dict[Local, Local] = {}
        binds, changed = list(fn.binds), False
        for i, original in enumerate(fn.binds):
            bind = original.substitute(names) if names else original
            fit = self.with_fitting_bodies(bind) if bind.op.holds_lambdas else bind
            if fit is not original or _is_unknown(fit):
                # a bind whose type rule gives another type stays as it was recorded
                binds[i] = _retype_bind(fit, names) or bind
                changed = changed or binds[i] is not original
        if not changed:
            return fn
        return fn.replace(binds=binds, ret=fn.ret.substitute(names))

    def with_fitting_bodies(self, bind: Bind) -> Bind:
        """``bind`` with bodies typed for its operands."""
        bodies, layout = bodies_of(bind), bind.op.bodies
        if not bodies:
            return bind
        if layout is None or layout.loop or not layout.is_separable:
            return with_bodies(bind, [self.body(body, None) for body in bodies])
        types = tuple([arg.type for arg in bind.args[layout.ahead :]])
        return with_bodies(bind, [self.body(body, types) for body in bodies])

    def body(self, body: Lambda, types: tuple | None) -> Lambda:
        """A body typed for operands of these types, if they are more specific."""
        params = [param.type for param in body.params]
        if types is not None:
            params = [
                old if new is None or new is NO_TYPE else new
                for old, new in zip(params, types, strict=True)
            ]
        key = id(body), tuple(params)
        if key not in self.cache:
            self.cache[key] = body, self.program(_retype_body(body, params))
        return self.cache[key][1]


def _retype_body(body: Lambda, types: list) -> Lambda:
    """``body`` with parameters of these types; unchanged if they agree, or if a type rule fails."""
    if all(param.type is kind for param, kind in zip(body.params, types, strict=True)):
        return body
    try:
        return LATE_BOUND["retype"](body, *types)
    except LetirError:
        return body


def _is_unknown(bind: Bind) -> bool:
    """Whether a result of a bind has an unknown type."""
    for binder in bind.binders:  # noqa: SIM110  a generator would be slower, once for every bind
        if binder.type is None:
            return True
    return False


def _retype_bind(bind: Bind, names: dict[Local, Local]) -> Bind | None:
    """``bind`` with types inferred from its operands; binders with better types are replaced and
    entered into ``names``. None if the type rule refuses.
    """
    if any(arg.type is None for arg in bind.args):
        return bind
    try:
        types = result_types(bind.op, bind.args, bind.attrs)
    except (RecursionError, MemoryError):  # of the process, not of the operands
        raise
    except Exception:  # any error of a rule: attributes of a parsed program are arbitrary
        return None
    if all(new is None or new is b.type for new, b in zip(types, bind.binders, strict=True)):
        return bind
    binders = []
    for kind, old in zip(types, bind.binders, strict=True):
        new = old if kind is None or kind is old.type else Local(kind, old.name)
        if new is not old:
            names[old] = new
        binders.append(new)
    return bind.replace(binders=tuple(binders))
