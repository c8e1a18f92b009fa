"""``with_captured_constants``: constant arrays of a loop's body become captured values."""

from letir.ast.attrs import Attrs
from letir.ast.bodies import bodies_of, map_bodies
from letir.ast.terms import Bind, Lambda, Local

_MIN_SIZE = 64  # elements: smaller constants are part of a kernel's code


def with_captured_constants(fn: Lambda) -> Lambda:
    """``fn`` where arrays are made before a counted loop, not in its body; also in bodies.

    A kernel that contains the loop reads them as operands. Linear time.
    """
    if not any(bind.op.holds_lambdas for bind in fn.binds):
        return fn
    return map_bodies(fn, _captured_level)


def _captured_level(fn: Lambda) -> Lambda:
    """``fn`` with the large constants of its own loops made in front of the loops."""
    binds: list[Bind] = []
    for bind in fn.binds:
        constants = _constants_of(bind)
        copies = [x.replace(binders=(Local(x.binders[0].type),)) for x in constants]
        results = [x.binders[0] for x in copies]
        binds += [*copies, _with_captured(bind, constants, results) if copies else bind]
    return fn if len(binds) == len(fn.binds) else fn.with_binds(binds)


def _constants_of(bind: Bind) -> list[Bind]:
    """The binds of a counted loop's body that are constant arrays."""
    layout = bind.op.bodies
    if layout is None or layout.loop not in ("elements", "numbers"):
        return []
    (body,) = bodies_of(bind)
    return [x for x in body.binds if x.op.role == "constant" and _is_large(x)]


def _is_large(bind: Bind) -> bool:
    size = bind.binders[0].type.size
    return type(size) is int and size >= _MIN_SIZE


def _with_captured(bind: Bind, constants: list[Bind], results: list[Local]) -> Bind:
    """A loop whose body has these constants as parameters."""
    (body,) = bodies_of(bind)
    moved = {id(x) for x in constants}
    new_body = body.replace(
        params=(*body.params, *[x.binders[0] for x in constants]),
        binds=tuple([x for x in body.binds if id(x) not in moved]),
    )
    return bind.replace(
        args=(*bind.args, *results), attrs=Attrs(**{**bind.attrs, "body": new_body})
    )
