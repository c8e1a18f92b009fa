"""``join_error_regions``: one error state for the operations in a ``np.errstate`` block."""

from collections import Counter

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import map_bodies
from letir.ast.builder import fresh_binders
from letir.ast.liveness import may_raise
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret, substitute_args
from letir.eval.float_warnings import is_silent


@entry_point
@paused_gc()
def join_error_regions(fn: Lambda) -> Lambda:
    """Join ``errstate`` binds of equal modes that follow each other, also in bodies.

    A recording puts each operation into a region of its own; entering the state once is faster, and
    the operations of one region can be fused. Binds between two regions join them if their results
    are new arrays and they neither warn nor raise, whatever the state. Regions in which errors
    raise exceptions do not change. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> modes = "divide='ignore', over='ignore', under='ignore', invalid='ignore'"
    >>> f = parse(f'''lambda %0: float64[3] {{
    ...   %1: float64[3] = errstate(%0, body=lambda %2: float64[3] {{
    ...     %3: float64[3] = log(%2); return %3 }}, {modes});
    ...   %4: float64[3] = errstate(%1, body=lambda %5: float64[3] {{
    ...     %6: float64[3] = exp(%5); return %6 }}, {modes});
    ...   return %4 }}''')
    >>> print(join_error_regions(f).listing(), end="")
    %1 = errstate %0, lambda %2 {
      %3 = log %2
      %4 = exp %3
      return %4
    }, 'ignore', 'ignore', 'ignore', 'ignore', ()
    return %1
    """
    return map_bodies(fn, _join_level)


def _join_level(fn: Lambda) -> Lambda:
    """``join_error_regions`` of the binds of ``fn`` itself."""
    if sum([bind.op.role == "error_region" for bind in fn.binds]) < 2:
        return fn
    uses = Counter([arg for bind in fn.binds for arg in bind.args if type(arg) is Local])
    uses.update(fn.ret.locals())
    done: list[Bind] = []
    run: list[Bind] = []  # begins with a region
    modes: dict | None = None  # of the regions in ``run``
    for bind in fn.binds:
        bind_modes = _modes_of(bind)
        if run and (bind_modes == modes if bind_modes is not None else _fits_any_state(bind)):
            run.append(bind)
            continue
        done += _join_run(run, uses)
        run, modes = ([], None) if bind_modes is None else ([bind], bind_modes)
        if bind_modes is None:
            done.append(bind)
    done += _join_run(run, uses)
    return fn if len(done) == len(fn.binds) else fn.with_binds(done)


def _modes_of(bind: Bind) -> dict | None:
    """The modes of a region in which errors raise no exceptions; None for other binds."""
    if bind.op.role != "error_region":
        return None
    modes = {name: mode for name, mode in bind.attrs.items() if name != "body"}
    return None if "raise" in modes.values() else modes


def _fits_any_state(bind: Bind) -> bool:
    """Whether a bind computes the same new arrays in every error state."""
    op = bind.op
    is_plain = not (op.effect or op.random or op.holds_lambdas or op.is_user_defined or op.update)
    is_new = op.memory == "new" and not op.may_return_operand
    return is_plain and is_new and is_silent(op) and not may_raise(bind)


def _join_run(run: list[Bind], uses: Counter) -> list[Bind]:
    """The binds of a run, with one region from the first to the last region in it."""
    ends = [i for i, bind in enumerate(run) if bind.op.role == "error_region"]
    if len(ends) < 2:
        return run
    region = _Region()
    for bind in run[: ends[-1] + 1]:
        region.add(bind)
    return [region.region_bind(run[0], uses), *run[ends[-1] + 1 :]]


@define(eq=False)
class _Region:
    """The body of a joined region; ``names``: local outside -> its value in the body."""

    names: dict[Local, Arg] = field(factory=dict)
    operands: list[Local] = field(factory=list)
    binders: list[Local] = field(factory=list)  # the binders of the joined binds
    binds: list[Bind] = field(factory=list)
    inside: Counter = field(factory=Counter)  # the uses of locals by the joined binds

    def add(self, bind: Bind) -> None:
        """Append a bind that fits any state, or the binds in the body of a region."""
        for arg in bind.args:
            if type(arg) is Local and arg not in self.names:
                self.names[arg] = Local(arg.type, arg.name)
                self.operands.append(arg)
        self.inside.update(bind.args)
        args = substitute_args(bind.args, self.names)
        self.binders += bind.binders
        if bind.op.role != "error_region":
            self.append(bind, args, self.names, bind)
            return
        body = bind.attrs["body"]
        inner: dict[Local, Arg] = dict(zip(body.params, args, strict=True))
        for member in body.binds:
            self.append(member, substitute_args(member.args, inner), inner, bind)
        self.names.update(zip(bind.binders, substitute_args(body.ret.args, inner), strict=True))

    def append(self, bind: Bind, args: tuple[Arg, ...], names: dict, outer: Bind) -> None:
        """Append ``bind`` on other operands, at the user's line of ``outer`` if it has none."""
        source = outer.source if bind.source is None else bind.source
        self.binds.append(
            Bind(fresh_binders(bind.binders, names), bind.op, args, bind.attrs, source)
        )

    def region_bind(self, first: Bind, uses: Counter) -> Bind:
        """The region with the modes of ``first``, whose results are those used outside of it."""
        results = [local for local in self.binders if uses[local] > self.inside[local]]
        params = tuple([self.names[operand] for operand in self.operands])
        ret = Ret(tuple([self.names[local] for local in results]))
        attrs = Attrs({**first.attrs, "body": Lambda(params, tuple(self.binds), ret)})
        return Bind(tuple(results), first.op, tuple(self.operands), attrs, first.source)
