"""Common subexpression elimination, and pooling of equal constants."""

from collections.abc import Callable
from functools import cache

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.bodies import all_bodies, map_bodies
from letir.ast.liveness import has_effect
from letir.ast.primitive import Primitive
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.passes.memory.aliases import result_sharing_locals, updated_locals

# ---- common subexpressions ----


@entry_point
@paused_gc()
def common_subexpressions(fn: Lambda) -> Lambda:
    """Merge binds of the same operation on the same values with the same attributes, compared by
    bits; also in bodies.

    Of equal guards the first one stays. Never merged: other effects, random draws, values that an
    update consumes, user-defined operations unless they are elementwise, and values that would make
    two results share memory [semantics.md F4]. Equal updates of equal values merge. Rematerialised
    values are protected by a ``barrier``. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = exp(%0); %3 = mul(%1, %2); return %3 }")
    >>> print(common_subexpressions(f).listing(), end="")
    %1 = exp %0
    %2 = mul %1, %1
    return %2
    """
    return map_bodies(fn, _merge_subexpressions)


def _merge_subexpressions(fn: Lambda) -> Lambda:
    """``common_subexpressions`` of the binds of ``fn`` itself."""
    return merge_equal_binds(fn, _is_mergeable, _Aliases(fn).may_merge)


def merge_equal_binds(
    fn: Lambda,
    is_mergeable: Callable[[Primitive], bool],
    may_merge: Callable[[Bind, Bind], bool] = lambda bind, first: True,
) -> Lambda:
    """``fn`` with equal binds (same operation, operands, attributes) merged; ``fn`` if it has none.

    ``is_mergeable(op)``: whether binds of an operation are merged at all; ``may_merge(bind,
    first)``: whether this one may be replaced by the first equal one.
    """
    names: dict[Local, Local] = {}
    first: dict[tuple, Bind] = {}
    equal: dict[Arg, Arg] = {}  # values that are not merged, with the first value equal to each
    binds: list[Bind] = []
    n_guards = 0  # the number of guards left out
    for original in fn.binds:
        bind = original.substitute(names) if names else original
        op, args, attrs = bind.op, bind.args, bind.attrs
        if is_mergeable(op):
            if equal:
                args = tuple([equal.get(arg, arg) for arg in args])
            # tuples of locals: hash and equality need no Python code, as locals are themselves
            key = (op, args) if attrs is NO_ATTRS else (op, args, attrs.token)
            if op.role == "constant":  # results keep the memory order
                key = (op, *_token_of_constant(attrs))
            earlier = first.setdefault(key, bind)
            if earlier is not bind:
                if may_merge(bind, earlier):
                    names.update(zip(bind.binders, earlier.binders, strict=True))
                    continue
                if not op.holds_lambdas:  # whose bodies may draw
                    equal.update(zip(bind.binders, earlier.binders, strict=True))
        elif op.role == "write_back":  # views of the argument now have new contents, equal ones too
            first.clear()
        elif op.role == "guard" and first.setdefault((op, args, attrs.token), bind) is not bind:
            n_guards += 1
            continue
        binds.append(bind)
    if not names and not n_guards:
        return fn
    return fn.replace(binds=binds, ret=fn.ret.substitute(names))


@cache
def _is_mergeable(op: Primitive) -> bool:
    """Whether binds of an operation may be merged at all."""
    if op.effect or op.random or op.role == "barrier":
        return False
    # a user's operation may be impure unless declared
    return op.elementwise or not op.is_user_defined


@define(eq=False)
class _Aliases:
    """The locals that share memory with results or are consumed by updates; computed lazily."""

    fn: Lambda
    shared_with_results: set[Local] | None = None
    updated: set[Local] = field(factory=set)

    def may_merge(self, bind: Bind, first: Bind) -> bool:
        """Whether results of ``first`` may replace those of ``bind``; if so, note that they do."""
        if bind.op.holds_lambdas and (has_effect(bind) or _draws_numbers(bind)):
            return False
        pairs = list(zip(bind.binders, first.binders, strict=True))
        # one of two equal operations may have been declared with fewer facts
        if any(new.type is not old.type for new, old in pairs):
            return False
        if bind.op.role == "constant":  # updates use copies of constants; each result is one
            return not any(binder in self.fn.ret.args for binder in bind.binders)
        if self.shared_with_results is None:
            self.shared_with_results, self.updated = (
                result_sharing_locals(self.fn),
                updated_locals(self.fn),
            )
        if not self.updated.isdisjoint(bind.binders) or not self.updated.isdisjoint(first.binders):
            return False
        if any(
            new in self.shared_with_results and old in self.shared_with_results
            for new, old in pairs
        ):
            return False
        self.shared_with_results.update(
            [old for new, old in pairs if new in self.shared_with_results]
        )
        return True


def _draws_numbers(bind: Bind) -> bool:
    """Whether a bind, or a bind in its bodies, draws random numbers."""
    if bind.op.random or not bind.op.holds_lambdas:
        return bind.op.random
    bodies = all_bodies(Lambda((), (bind,), Ret(())))
    return any(inner.op.random for body in bodies[1:] for inner in body.binds)


# ---- constants ----


@entry_point
@paused_gc()
def constant_pooling(fn: Lambda) -> Lambda:
    """Merge equal array constants; constants of different bodies share one array in memory.

    Constants are equal if dtype, shape, bits and memory order are: 0.0 and -0.0 differ. Results
    are not merged: two results would be one array. Linear in the number of binds and bytes.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda {
    ...   %0 = constant(value=float64[2]{0.0, 1.0});
    ...   %1 = constant(value=float64[2]{0.0, 1.0});
    ...   %2 = mul(%0, %1);
    ...   return %2 }''')
    >>> print(constant_pooling(f).listing(), end="")
    %0 = constant float64[2]{0.0, 1.0}
    %1 = mul %0, %0
    return %1
    """
    return map_bodies(fn, _Pool().level)


def _token_of_constant(attrs: Attrs) -> tuple:
    """A token of an array constant: its bits, and whether it is in C order."""
    return attrs.token, attrs["value"].flags.c_contiguous


@define(eq=False)
class _Pool:
    """The constants of a program and its bodies."""

    arrays: dict[tuple, Attrs] = field(factory=dict)

    def level(self, fn: Lambda) -> Lambda:
        """``constant_pooling`` of the binds of ``fn`` itself."""
        names: dict[Local, Local] = {}
        bound: dict[tuple, Local] = {}
        binds: list[Bind] = []
        changed, returned = False, set(fn.ret.args)
        for original in fn.binds:
            bind = original.substitute(names) if names else original
            if bind.op.role == "constant":
                token = _token_of_constant(bind.attrs)
                attrs = self.arrays.setdefault(token, bind.attrs)
                (binder,) = bind.binders
                first = bound.setdefault((token, binder.type), binder)
                if first is not binder and binder not in returned:
                    names[binder] = first
                    continue
                if attrs is not bind.attrs:
                    bind, changed = bind.replace(attrs=attrs), True
            binds.append(bind)
        return fn.replace(binds=binds, ret=fn.ret.substitute(names)) if names or changed else fn
