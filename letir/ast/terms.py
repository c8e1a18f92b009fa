"""The terms of the language: the classes that programs consist of.

    Arg    = Local | Const
    Bind   = binders, op, args, attrs, source
    Expr   = Let(bind, body) | Ret(args)
    Lambda = params, binds, ret

A Lambda stores its binds in one tuple, not in a chain of a million cells. ``Let`` is a cursor into
it, made on demand by ``f.body`` and ``let.body``: ``match f.body: case Let(bind=b, body=rest)``.

Terms are immutable. The four made for every operation (Local, Const, Bind, Let) are ``define``d,
not ``frozen``, whose ``__init__`` takes three times as long: half of the budget of recording.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs, as_tuple, token
from letir.ast.primitive import Primitive
from letir.ast.source import Source
from letir.ast.types import WEAK, ArrayType


@final
@define(eq=False, repr=False)
class Local:
    """A name for an array, bound once; two locals are equal only if they are the same object.

    ``type`` is None if it is unknown. ``name`` is the user's name for it, only for display.

    >>> x = Local("x")
    >>> x == x, x == Local("x")
    (True, False)
    """

    # no reference to its bind: a program would be a chain of references, freed by deep recursion
    type: ArrayType | None = None
    name: str | None = None

    def __repr__(self):
        return f"%{self.name}: {self.type}" if self.name else f"Local({self.type})"

    def __reduce__(self):
        return Local, (self.type, self.name)


class _NoTypeType:
    """The class of ``NO_TYPE``, the type of operands None and ``Undef`` (None means unknown)."""

    __slots__ = ()

    def __repr__(self):
        return "no type"

    def __reduce__(self):
        return "NO_TYPE"  # the name of this module's global: a copy is the same object


NO_TYPE = _NoTypeType()


@final
@define(eq=False, repr=False)
class Const:
    """A Python number, None or ``Undef`` as an operand. Numbers are promoted weakly.

    >>> from letir import parse
    >>> f = parse("lambda %0 { %1 = mul(%0, 2.0); return %1 }")
    >>> f.binds[0].args[1] == Const(2.0), Const(2.0) == Const(2)
    (True, False)
    """

    value: Any
    type: Any = field(init=False)  # its weak type, or NO_TYPE

    def __attrs_post_init__(self):
        self.type = WEAK.get(type(self.value), NO_TYPE)  # a slot: type rules read it often

    def __eq__(self, other):
        # by tokens: 1, 1.0 and True are three constants, nan is one
        return type(other) is Const and token(self.value) == token(other.value)

    def __hash__(self):
        return hash(token(self.value))

    def __repr__(self):
        return repr(self.value)

    def __reduce__(self):
        return Const, (self.value,)


Arg = Local | Const


def substitute_args(args: tuple[Arg, ...], names: Mapping[Local, Arg]) -> tuple[Arg, ...]:
    """Operands or results with every local in ``names`` replaced."""
    return tuple([names.get(arg, arg) if type(arg) is Local else arg for arg in args])


@define(eq=False, repr=False)
class Bind:
    """``binders = op(args; attrs)``: one operation, its operands, the locals that name its results.

    >>> from letir import parse
    >>> bind = parse("lambda %0:x { %1:y = sum(%0, axis=0); return %1 }").binds[0]
    >>> bind.op.name, [local.name for local in bind.args], bind.attrs["axis"]
    ('sum', ['x'], 0)
    """

    binders: tuple[Local, ...]
    op: Primitive
    args: tuple[Arg, ...]
    attrs: Attrs = NO_ATTRS
    source: Source | None = None

    def locals(self) -> Iterator[Local]:
        """The locals among the operands in order, with repetitions."""
        return (arg for arg in self.args if type(arg) is Local)

    def replace(
        self,
        *,
        binders: tuple[Local, ...] | None = None,
        op: Primitive | None = None,
        args: tuple[Arg, ...] | None = None,
        attrs: Attrs | None = None,
    ) -> "Bind":
        """The same bind with these fields replaced, and the same source line."""
        return Bind(
            self.binders if binders is None else binders,
            self.op if op is None else op,
            self.args if args is None else args,
            self.attrs if attrs is None else attrs,
            self.source,
        )

    def with_args(self, args: tuple[Arg, ...]) -> "Bind":
        """The same bind on these operands; itself if they are equal to its own."""
        if args == self.args:  # most binds of a program do not change, and are shared
            return self
        return Bind(self.binders, self.op, args, self.attrs, self.source)

    def substitute(self, names: Mapping[Local, Arg]) -> "Bind":
        """The same bind with every operand in ``names`` replaced; itself if none is."""
        return self.with_args(substitute_args(self.args, names))

    def __str__(self):
        return LATE_BOUND["bind_text"](self)

    __repr__ = __str__


@frozen(eq=False)
class Ret:
    """The end of a body: its results.

    >>> from letir import parse
    >>> [local.name for local in parse("lambda %0:x, %1:y { return (%1, %0) }").ret.args]
    ['y', 'x']
    """

    args: tuple[Arg, ...]

    def locals(self) -> Iterator[Local]:
        """The locals among the results."""
        return (arg for arg in self.args if type(arg) is Local)

    def substitute(self, names: Mapping[Local, Arg]) -> "Ret":
        """The results with every local in ``names`` replaced."""
        return Ret(substitute_args(self.args, names))


@define(eq=False, repr=False)
class Let:
    """``let bind in body``: a cursor into a Lambda's binds, O(1) to make and to advance.

    >>> from letir import parse
    >>> body = parse("lambda %0 { %1 = exp(%0); return %1 }").body
    >>> body.bind.op.name, type(body.body).__name__
    ('exp', 'Ret')
    """

    bind: Bind
    fn: "Lambda"
    index: int

    @property
    def body(self) -> "Let | Ret":
        """The rest of the term."""
        # a new cursor each time: kept ones would form a chain as long as the program
        index = self.index + 1
        binds = self.fn.binds
        return Let(binds[index], self.fn, index) if index < len(binds) else self.fn.ret

    def __repr__(self):
        return f"Let({self.bind}, ...)"


@frozen(eq=False, repr=False, weakref_slot=True)
class Lambda:
    """A closed program: parameters, binds in the order of execution, results.

    ``in_tree`` and ``out_tree`` (``letir.ast.pytrees.Tree``) describe the nesting of arguments and
    results; None means flat arguments, and one result or a tuple of results. Equality is
    alpha-equality, which ignores names and source lines.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = trace(lambda x: np.sin(x) * 2, np.zeros(3))
    >>> len(f), [bind.op.name for bind in f.binds], f.params[0].type
    (2, ['sin', 'mul'], float64[3])
    >>> f(np.zeros(3))
    array([0., 0., 0.])
    """

    params: tuple[Local, ...] = field(converter=as_tuple)
    binds: tuple[Bind, ...] = field(converter=as_tuple)
    ret: Ret
    in_tree: Any = None
    out_tree: Any = None
    _memo: dict = field(factory=dict, init=False)  # init=False: evolve begins with an empty one

    @property
    def body(self) -> Let | Ret:
        """The term: ``Let`` or ``Ret``."""
        return Let(self.binds[0], self, 0) if self.binds else self.ret

    @property
    def constants(self) -> tuple[Bind, ...]:
        """The binds of array constants, with ``bind.attrs["value"]`` and ``bind.source``."""
        return self.memo(_constant_binds)

    def with_binds(self, binds: Iterable[Bind]) -> "Lambda":
        """The same parameters and results with other binds."""
        return self.replace(binds=binds)

    def replace(
        self,
        *,
        params: Iterable[Local] | None = None,
        binds: Iterable[Bind] | None = None,
        ret: Ret | None = None,
    ) -> "Lambda":
        """The same program with these fields replaced. A tree is dropped if the number of
        parameters or results that it describes changes.
        """
        params = self.params if params is None else tuple(params)
        ret = self.ret if ret is None else ret
        return Lambda(
            params,
            self.binds if binds is None else binds,
            ret,
            self.in_tree if len(params) == len(self.params) else None,
            self.out_tree if len(ret.args) == len(self.ret.args) else None,
        )

    def memo(self, analysis: Callable[["Lambda"], Any]) -> Any:
        """``analysis(self)``, computed once, for pure functions of a program.

        ``analysis`` is the key, so pass a module-level function, not a new closure each time.
        """
        result = self._memo.get(analysis)
        if result is None:
            result = self._memo[analysis] = analysis(self)
        return result

    def listing(self) -> str:
        """The bare text: a bind a line, no types, attributes by position in the record's order."""
        return LATE_BOUND["listing"](self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return LATE_BOUND["call"](self, *args, **kwargs)
        except BaseException as error:
            LATE_BOUND["shorten_traceback"](error)
            raise

    def __len__(self):
        return len(self.binds)

    def __bool__(self):
        return True  # also for a program without binds

    def __str__(self):
        return LATE_BOUND["text"](self)

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["program_html"](self)

    def _repr_pretty_(self, printer, cycle):
        LATE_BOUND["pretty_program"](self, printer, cycle)

    def __eq__(self, other):
        if type(other) is not Lambda:
            return NotImplemented
        return self is other or LATE_BOUND["equal"](self, other)

    def __hash__(self):
        return self.memo(LATE_BOUND["hash"])

    def __reduce__(self):
        return Lambda, (self.params, self.binds, self.ret, self.in_tree, self.out_tree)


def _constant_binds(fn: Lambda) -> tuple[Bind, ...]:
    return tuple([bind for bind in fn.binds if bind.op.role == "constant"])
