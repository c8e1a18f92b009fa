"""``sink_negations``: pushes ``neg`` through linear operations until it cancels or is needed."""

from operator import attrgetter

from letir.ast import entry_point
from letir.ast.attrs import NO_ATTRS
from letir.ast.derivative_types import is_known_inexact
from letir.ast.primitive import Primitive
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.ops.elementwise.ufuncs import add, neg, sub


@entry_point
def sink_negations(fn: Lambda) -> Lambda:
    """Negate as late as possible: signs move through products and linear operations, and turn sums
    into differences.

    Results are the same up to signs of zeros. Linear in the number of binds; keeps parameters,
    results and all other binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[], %1: float64[] {
    ...   %2: float64[] = neg(%0);
    ...   %3: float64[] = mul(%2, %1);
    ...   %4: float64[] = add(%0, %3);
    ...   return %4 }''')
    >>> print(sink_negations(f).listing(), end="")
    %2 = mul %0, %1
    %3 = sub %0, %2
    return %3
    """
    if neg not in map(attrgetter("op"), fn.binds):
        return fn
    with paused_gc():
        sinker = _NegationSinker()
        for bind in fn.binds:
            sinker.bind(bind)
        results = tuple([sinker.with_sign(arg) for arg in fn.ret.args])
        return fn.replace(binds=sinker.binds, ret=Ret(results))


class _NegationSinker:
    """Emits binds; ``signed`` maps a local to (replacement, whether it is the negative)."""

    def __init__(self):
        self.binds: list[Bind] = []
        self.signed: dict[Arg, tuple[Arg, bool]] = {}

    def bind(self, bind: Bind) -> None:
        """Emit ``bind`` on the replacements of its operands, or defer the sign of its result."""
        signed, args, op = self.signed, bind.args, bind.op
        if op is neg and is_known_inexact(bind.binders[0]):
            arg, negative = signed.get(args[0], (args[0], False))
            # ``with_sign`` emits the negation when it is needed
            signed[bind.binders[0]] = arg, not negative
        elif not signed or signed.keys().isdisjoint(args):  # nearly all binds
            self.binds.append(bind)
        elif op is add or op is sub:
            self.sum(bind)
        else:
            negated = [i for i, arg in enumerate(args) if signed.get(arg, (arg, False))[1]]
            # not every operand is linear: a negated index is another index
            is_odd = bool(op.odd_in) and set(op.odd_in).issuperset(negated)
            if is_odd and not bind.attrs.get(op.added):
                self.emit(bind, op, args, len(negated) % 2 == 1)
            else:
                whole = tuple([self.with_sign(arg) for arg in args])
                self.binds.append(bind.with_args(whole))

    def sum(self, bind: Bind) -> None:
        """Emit a sum or a difference of two operands with signs."""
        x, y = bind.args
        first, second = (self.signed.get(arg, (arg, False))[1] for arg in (x, y))
        if bind.op is sub:
            second = not second
        if first == second:
            self.emit(bind, add, (x, y), first)
        else:
            self.emit(bind, sub, (y, x) if first else (x, y), False)  # -x + y = y - x

    def emit(self, bind: Bind, op: Primitive, args: tuple, negative: bool) -> None:
        """Emit ``op`` without signs of operands; its result is that of ``bind`` up to sign."""
        (binder,) = bind.binders
        result = Local(binder.type, binder.name) if negative else binder
        if negative:
            self.signed[binder] = result, True
        plain = tuple([self.signed.get(arg, (arg, False))[0] for arg in args])
        self.binds.append(Bind((result,), op, plain, bind.attrs, bind.source))

    def with_sign(self, arg: Arg) -> Arg:
        """The value of ``arg`` with its sign, negated now if necessary."""
        replacement, negative = self.signed.get(arg, (arg, False))
        if type(arg) is Const or not negative:
            return replacement
        result = Local(arg.type, arg.name)
        self.binds.append(Bind((result,), neg, (replacement,), NO_ATTRS))
        self.signed[arg] = result, False  # negated once, for all uses of the signed value
        return result
