"""Dead-code elimination: binds, results and operands that nothing needs, in bodies too.

A bind that holds bodies loses the results that nobody uses, and the operands that its bodies do not
read any more. ``SHAPES`` says by an operation's name where in its operands those of the bodies are;
of other operations the bodies are cleaned and keep all their results.

Passes that remove what is not needed: dead_code.
"""

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from letir.ast.attrs import Attrs
from letir.ast.bodies import attrs_with, bodies_of, with_bodies
from letir.ast.liveness import has_effect
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import Size


@frozen
class Shape:
    """How the operands of an operation and the parameters of its bodies belong together.

    ``ahead``: operands that no body takes; ``steps``: parameters that are no operands. For a loop
    ``n_carry(bind)`` says how many results are carried, which are the first; ``own(bind)`` how many
    after these are the operation's own, and not of its body.
    """

    ahead: int = 0
    steps: int = 0
    n_carry: Callable[[Bind], int] | None = None
    own: Callable[[Bind], int] = lambda bind: 0


@define(eq=False)
class DeadResultElimination:
    """One run through a program. Bodies that many binds share are narrowed once."""

    made: dict = field(factory=dict)  # (id of a body, ...) -> (that body, which keeps its id, ...)

    def program(self, fn: Lambda, wanted: tuple[int, ...] | None = None) -> Lambda:
        """``fn`` with what its results need, or only those at the places ``wanted``; itself if that
        is all there is.
        """
        ret = fn.ret if wanted is None else Ret(tuple([fn.ret.args[i] for i in wanted]))
        live, kept, changed = set(ret.locals()), [], False
        for bind in reversed(fn.binds):
            if not live.isdisjoint(bind.binders) or has_effect(bind):
                found = self.bind(bind, live) if bind.op.holds_lambdas else bind
                changed = changed or found is not bind
                live.update([arg for arg in found.args if type(arg) is Local])
                kept.append(found)
        if not changed and len(kept) == len(fn.binds):
            return fn if len(ret.args) == len(fn.ret.args) else fn.replace(ret=ret)
        return fn.replace(binds=tuple(reversed(kept)), ret=ret)

    def body(self, body: Lambda, wanted: tuple[int, ...] | None = None) -> Lambda:
        """As ``program``, once for each body and choice of results."""
        key = id(body), wanted
        if key not in self.made:
            self.made[key] = body, self.program(body, wanted)
        return self.made[key][1]

    def bind(self, bind: Bind, live: set[Local]) -> Bind:
        """``bind`` without the results that are not ``live`` and without what these need."""
        bodies = bodies_of(bind)
        if not bodies:  # a composite
            return bind
        shape = SHAPES.get(bind.op.name)
        if shape is None:
            return with_bodies(bind, list(map(self.body, bodies)))
        wanted = [i for i, binder in enumerate(bind.binders) if binder in live]
        if shape.n_carry is not None:
            return self.loop(bind, bodies, shape, wanted)
        everything = len(wanted) == len(bind.binders)
        bodies = [self.body(body, None if everything else tuple(wanted)) for body in bodies]
        return self.refitted(bind, bodies, shape, wanted, self.read_by(bind, bodies))

    def read_by(self, bind: Bind, bodies: Sequence[Lambda]) -> list[int]:
        """The parameters that stay, in the order that they get."""
        n_cts = bind.attrs.get("n_cts")
        if n_cts is not None:  # captured in the order of first use, as is printed
            reads = self.reads(bodies[0])
            return [*range(n_cts), *(i for i in reads if i >= n_cts)]
        read = {i for body in bodies for i in self.reads(body)}
        return sorted(read)

    def reads(self, body: Lambda) -> tuple[int, ...]:
        """The positions of the parameters that a body uses, in the order of first use."""
        key = id(body), "reads"
        if key not in self.made:
            places = {param: i for i, param in enumerate(body.params)}
            used = (arg for term in (*body.binds, body.ret) for arg in term.args)
            found = dict.fromkeys(places[a] for a in used if type(a) is Local and a in places)
            self.made[key] = body, tuple(found)
        return self.made[key][1]

    def refitted(
        self, bind: Bind, bodies: Sequence[Lambda], shape: Shape, wanted: list[int], stay: list[int]
    ) -> Bind:
        """``bind`` with other bodies, these of its results, and the parameters that stay."""
        old = bodies_of(bind)
        is_whole = len(wanted) == len(bind.binders) and stay == [*range(len(bodies[0].params))]
        if is_whole and all(a is b for a, b in zip(old, bodies, strict=True)):
            return bind
        new = [self.with_params(body, tuple(stay)) for body in bodies]
        attrs = Attrs({**attrs_with(bind.attrs, old, new), **counts(bind, shape, wanted, stay)})
        operands = [bind.args[i + shape.ahead - shape.steps] for i in stay if i >= shape.steps]
        binders = tuple([bind.binders[i] for i in wanted])
        return Bind(binders, bind.op, (*bind.args[: shape.ahead], *operands), attrs, bind.source)

    def with_params(self, body: Lambda, stay: tuple[int, ...]) -> Lambda:
        """``body`` with these of its parameters."""
        if stay == tuple(range(len(body.params))):
            return body
        key = id(body), "params", stay
        if key not in self.made:
            params = [body.params[i] for i in stay]
            self.made[key] = body, Lambda(params, body.binds, body.ret, None, body.out_tree)
        return self.made[key][1]

    def loop(self, bind: Bind, bodies: Sequence[Lambda], shape: Shape, wanted: list[int]) -> Bind:
        """A loop without the carried values on which nothing depends that is wanted."""
        *tests, body = bodies  # the test of a while_loop stands before its body
        tests, n_carry, own = list(map(self.body, tests)), shape.n_carry(bind), shape.own(bind)
        asked = {i - shape.steps for test in tests for i in self.reads(test)}
        asked = {i for i in asked if i < n_carry}
        asked.update([i for i in wanted if i < n_carry])
        asked.update([i - own for i in wanted if i >= n_carry + own])
        if bind.attrs.get("numbered"):  # the first that are stacked are the operation's as well
            asked.add(n_carry)
        carried = self.carried(body, shape.steps, n_carry, asked)
        kept = [i for i in range(len(body.ret.args)) if i in (carried if i < n_carry else asked)]
        is_whole = len(kept) == len(body.ret.args)
        body = self.body(body, None if is_whole else tuple(kept))
        stay = self.staying(bind, (*tests, body), shape, carried)
        results = [i for i in kept if i < n_carry]
        results += [*range(n_carry, n_carry + own), *(i + own for i in kept if i >= n_carry)]
        return self.refitted(bind, (*tests, body), shape, results, stay)

    def staying(
        self, bind: Bind, bodies: Sequence[Lambda], shape: Shape, carried: set[int]
    ) -> list[int]:
        """The parameters of the bodies of a loop that stay."""
        read = {i for fn in bodies for i in self.reads(fn)}
        first, end = shape.steps, shape.steps + shape.n_carry(bind)
        return [
            i
            for i, param in enumerate(bodies[-1].params)
            if i < first or (i - first in carried if i < end else i in read or _tells(bind, param))
        ]

    def carried(self, body: Lambda, steps: int, n_carry: int, asked: set[int]) -> set[int]:
        """The carried values on which these results of the body of a loop depend."""
        found = _depended(body, steps, n_carry, asked)
        if not any(inner.op.name in SHAPES for inner in body.binds):
            return found
        return self.refined(body, steps, found, asked)

    def refined(self, body: Lambda, steps: int, most: set[int], wanted: set[int]) -> set[int]:
        """As ``_depended``, of which ``most`` is the answer, with the results of bodies in ``body``
        told apart.
        """
        found = most & wanted
        while len(found) < len(most):
            places = range(len(body.ret.args))
            results = tuple([i for i in places if i in found or (i in wanted and i not in most)])
            reads = self.reads(self.body(body, results))
            more = found | {i - steps for i in reads if i - steps in most}
            if more == found:
                break
            found = more
        return found


def _depended(body: Lambda, steps: int, n_carry: int, wanted: set[int]) -> set[int]:
    """The carried values on which these results of a loop and the effects in it depend, in any
    iteration: the least fixpoint.
    """
    carry = {param: i for i, param in enumerate(body.params[steps : steps + n_carry])}
    makers = {binder: bind for bind in body.binds for binder in bind.binders}
    found = {i for i in wanted if i < n_carry}
    stack = [body.ret.args[i] for i in wanted if i < len(body.ret.args)]
    stack += [local for bind in body.binds if has_effect(bind) for local in bind.locals()]
    seen: set = set()
    while stack:
        local = stack.pop()
        if type(local) is not Local or local in seen:
            continue
        seen.add(local)
        if local in makers:
            bind = makers[local]
            seen.update(bind.binders)
            stack += bind.args
        elif local in carry:
            found.add(carry[local])
            stack.append(body.ret.args[carry[local]])
    return found


def _tells(bind: Bind, param: Local) -> bool:
    """Whether a loop needs an operand that its body does not read: for how often it runs, or for a
    size that a result has.
    """
    if bind.op.name not in ("scan", "while_scan"):
        return False
    return bind.attrs.get("length", 0) is None or any(
        type(n) is Size for n in (param.type.shape if param.type else ())
    )


def counts(bind: Bind, shape: Shape, wanted: list[int], stay: list[int]) -> dict:
    """The attributes that count results or operands, for those that stay."""
    if bind.op.name == "checkpoint":
        first_saved = len(bind.binders) - bind.attrs["saved"]
        return {"saved": sum(i >= first_saved for i in wanted)}
    if bind.op.name == "scan":
        n_carry, n_xs = bind.attrs["n_carry"], bind.attrs["n_xs"]
        xs = range(n_carry, n_carry + n_xs)
        return {"n_carry": sum(i < n_carry for i in wanted), "n_xs": sum(i in xs for i in stay)}
    if bind.op.name == "while_scan":
        return {"n_carry": sum(i < bind.attrs["n_carry"] for i in wanted)}
    return {}


def _all_results(bind: Bind) -> int:
    """How many values a loop carries that has no other results."""
    return len(bind.binders)


SHAPES = {
    "cond": Shape(ahead=1),
    "switch": Shape(ahead=1),
    "grad_of": Shape(),
    "when_defined": Shape(),
    "checkpoint": Shape(),
    "errstate": Shape(),
    "fused": Shape(),
    "while_loop": Shape(n_carry=_all_results),
    "fori_loop": Shape(ahead=2, steps=1, n_carry=_all_results),
    "scan": Shape(n_carry=lambda bind: bind.attrs["n_carry"]),
    "while_scan": Shape(
        n_carry=lambda bind: bind.attrs["n_carry"],
        own=lambda bind: 0 if bind.attrs["numbered"] else 1,
    ),
}


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Of conditionals, steps of gradients and loops also the results that nobody uses go [F4], with
    what their bodies compute for them; a carried value goes if no other that stays depends on it.
    Linear in the number of binds. Keeps binders, order, effects, parameters and results; a program
    in which nothing is dead is returned as it is.
    """
    return DeadResultElimination().program(fn)
