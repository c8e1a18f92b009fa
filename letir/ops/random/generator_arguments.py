"""Programs whose arguments are generators, instead of states that each draw takes and returns.

A recorded program takes the state of a generator as an array and writes the last state back. If
each draw takes the state that the draw before it returned, or that a seed has set, a plan needs no
states: the generator itself is the argument. If the run fails, the generator gets back its state at
the start, so that the call can be completed in another way.
"""

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.elementwise.casting import copy
from letir.ops.indexing.basic import index_set
from letir.ops.random.generator_snapshots import set_words
from letir.ops.random.numpy_generator import generator_draw, numbers_of

_NO_RULE = never("plans are made after derivatives are taken")


def _own_draw_impl(xp, generator, *operands, method, shape, dtype, options=()):
    """The numbers that the generator draws by its ``method``, copied to a device of operands."""
    is_on_device = hasattr(xp, "copy_to_device")
    if is_on_device:
        operands = tuple(map(xp.copy_to_host, operands))
    result = numbers_of(generator, operands, method, shape, dtype, dict(options))
    return xp.copy_to_device(result) if is_on_device and result.shape else result


own_draw = Primitive(
    "own_draw",
    _own_draw_impl,
    lambda generator, *operands, method, shape, dtype, options: ArrayType(dtype, shape),
    _NO_RULE,
    _NO_RULE,
    random=True,
    raises=True,
    role="own_draw",
)


def _own_seed_impl(xp, generator, words):
    """Give the generator the state in the array ``words``; the result is not used."""
    set_words(generator, xp.copy_to_host(words) if hasattr(xp, "copy_to_host") else words)
    return xp.bool_(False)


own_seed = Primitive(
    "own_seed",
    _own_seed_impl,
    lambda generator, words: ArrayType(bool),
    _NO_RULE,
    _NO_RULE,
    random=True,
    raises=True,
    role="own_seed",  # in the order of the draws
)


@define(eq=False)
class _States:
    """The states of generators in a program: the parameter to which each belongs, and how many
    draws precede it. ``others``: parameters with a use for which the state itself is needed.
    ``drawn``: parameters from which a draw is taken; others may be arrays of the user's.
    """

    origins: dict[Local, tuple[Local, int]]
    latest: dict[Local, int]
    written: dict[Local, int] = field(factory=dict)
    others: set[Local] = field(factory=set)
    drawn: set[Local] = field(factory=set)

    def record_states(self, bind: Bind) -> None:
        """Record which states a bind reads and which it makes."""
        origins = [self.origins.get(arg) if type(arg) is Local else None for arg in bind.args]
        if not any(origins):
            return
        (first, *rest), op = origins, bind.op
        if op is copy and first is not None:
            self.origins[bind.binders[0]] = first
        elif op is index_set and bind.attrs["item"] is ... and len(rest) == 1 and rest[0]:
            self.origins[bind.binders[0]] = rest[0]
        elif op is index_set and bind.attrs["item"] is ... and first is not None and rest == [None]:
            # a seed: the generator gets a known state
            self.origins[bind.binders[0]] = self.state_after(first)
        elif op is generator_draw and first is not None and not any(rest):
            self.origins[bind.binders[1]] = self.state_after(first)
            self.drawn.add(first[0])
        elif op.role == "write_back" and first is not None and rest[0] is not None:
            is_own = bind.args[0] is first[0] is rest[0][0]
            self.written[first[0]] = rest[0][1] if is_own else -1
            self.origins[bind.binders[0]] = rest[0]
        else:
            self.others.update([origin[0] for origin in origins if origin is not None])

    def state_after(self, state: tuple[Local, int]) -> tuple[Local, int]:
        """The state after a draw from ``state``, or after a seed; it must be the latest one."""
        param, number = state
        if number != self.latest[param]:
            self.others.add(param)
        self.latest[param] = number + 1
        return param, number + 1

    def live_params(self, results: tuple[Arg, ...]) -> set[Local]:
        """The parameters that may be generators instead of states."""
        for arg in results:
            if type(arg) is Local and arg in self.origins:
                self.others.add(self.origins[arg][0])
        return {
            param
            for param, number in self.latest.items()
            if param in self.drawn - self.others and self.written.get(param) == number
        }


def with_generator_arguments(fn: Lambda) -> tuple[Lambda, tuple[int, ...]]:
    """(``fn`` with generators as parameters instead of states, the positions of these parameters).

    ``fn`` itself if there are none. Linear time.
    """
    changed = {bind.args[0] for bind in fn.binds if bind.op.role == "write_back"}
    states = [p for p in fn.params if p in changed and p.type.dtype == np.uint64]
    tracked = _States({p: (p, 0) for p in states}, dict.fromkeys(states, 0))
    for bind in fn.binds:
        tracked.record_states(bind)
    live = tracked.live_params(fn.ret.args)
    if not live:
        return fn, ()
    binds = []
    for bind in fn.binds:
        first = (
            tracked.origins.get(bind.args[0]) if bind.args and type(bind.args[0]) is Local else None
        )
        if first is None or first[0] not in live:
            binds.append(bind)
        elif bind.op is generator_draw:
            args = (first[0], *bind.args[1:])
            binds.append(Bind(bind.binders[:1], own_draw, args, bind.attrs, bind.source))
        elif _is_seed(bind, tracked.origins):
            unused = Local(ArrayType(bool))
            seeded = (first[0], bind.args[1])
            binds.append(Bind((unused,), own_seed, seeded, Attrs(), bind.source))
    return fn.with_binds(binds), tuple([n for n, p in enumerate(fn.params) if p in live])


def _is_seed(bind: Bind, states: dict) -> bool:
    """Whether a bind replaces a state by words that are not the state of a generator."""
    return bind.op is index_set and not (type(bind.args[1]) is Local and bind.args[1] in states)


LATE_BOUND["with_generator_arguments"] = with_generator_arguments
