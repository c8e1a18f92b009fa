"""``explain_residuals``: the residuals of a gradient, the rules that read them, and which of them
another policy would recompute.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import field, frozen

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import Gradient, Policy
from letir.ad.remat.cost_model import is_view_or_identity, nbytes, nominal_bytes
from letir.ad.remat.policies import ResidualChoice, check_policy, with_policy
from letir.ad.remat.recomputation import SplitGradient, split_gradient
from letir.ast import LATE_BOUND, entry_point
from letir.ast.terms import Bind, Lambda, Local, Ret, Source
from letir.ast.text.printer import Printer
from letir.ast.types import ArrayType, Size
from letir.errors import LetirError
from letir.transforms.program_call import record_call

_MAX_NAMES = 4  # names of rules or operations in one cell of the table
_MAX_RECOMPUTED = 64  # recomputed operations to count
_MAX_ROWS = 200  # rows that str shows
_MAX_WIDTH = 60  # characters of a bind that the table shows
_HEAD = ("kept", "type", "bytes", "read by the rule of", "made by", "at", "instead")


@frozen(eq=False)
class Residual:
    """One residual: a value that a gradient keeps for the backward pass.

    ``number`` and ``text`` are as in the text of ``f``, ``name`` is the user's. ``readers``: the
    operations whose derivative rules read it, directly or through recomputed values. ``view_of``:
    the value whose memory it shares. ``instead``: its treatment by the other policy, "kept" or the
    operations that recompute it.
    """

    number: str
    name: str | None
    text: str
    type: ArrayType | None
    nbytes: int | Size | None
    is_argument: bool
    readers: tuple[str, ...]
    source: Source | None
    view_of: str | None
    instead: str

    @property
    def dtype(self) -> Any:
        """The dtype, None if it is unknown."""
        return None if self.type is None else self.type.dtype

    @property
    def shape(self) -> tuple | None:
        """The shape, None if it is unknown."""
        return None if self.type is None else self.type.shape

    def row(self) -> tuple[str, ...]:
        """The cells of this residual in the table."""
        label = f"{self.number}:{self.name}" if self.name else self.number
        shared = f" (a view of {self.view_of})" if self.view_of else ""
        kind = "unknown" if self.type is None else repr(self.type)
        size = "unknown" if self.nbytes is None else str(self.nbytes)
        place = self.source.short if self.source else ""
        result = self.text if len(self.text) <= _MAX_WIDTH else self.text[:_MAX_WIDTH] + " ..."
        result = " ".join(result.split())
        return (label + shared, kind, size, _first_names(self.readers), result, place, self.instead)


@frozen(eq=False, repr=False)
class Residuals:
    """The residuals of a gradient, as a sequence of ``Residual``: arguments, then other values.

    ``total``: the bytes of all residuals; ``temporaries``: the bytes without arguments, which the
    caller holds anyway; ``instead``: the bytes of temporaries under ``policy``. Shared memory
    counts once. Bytes are ints, or formulas in symbolic sizes; ``unknown`` counts values of unknown
    type, which are left out.
    """

    rows: tuple[Residual, ...]
    total: int | Size
    temporaries: int | Size
    unknown: int
    policy: str
    instead: int | Size
    gradient: Gradient = field(eq=False)

    def __iter__(self) -> Iterator[Residual]:
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index) -> Residual:
        return self.rows[index]

    def table(self) -> tuple[list[tuple[str, ...]], int]:
        """The heads and the rows that ``str`` shows, and the number of rows left out after the
        first half of them.
        """
        rows, left_out = self.rows, len(self.rows) - _MAX_ROWS
        if left_out > 0:
            rows = rows[: _MAX_ROWS // 2] + rows[-_MAX_ROWS // 2 :]
        return [_HEAD, *[row.row() for row in rows]], max(left_out, 0)

    def __str__(self):
        table, left_out = self.table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        if left_out:
            lines.insert(
                1 + _MAX_ROWS // 2, f"... {left_out} left out: iterate for all of them ..."
            )
        return "\n".join([self.summary, *lines])

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["residuals_html"](self)

    @property
    def summary(self) -> str:
        """One line with the numbers of values and bytes."""
        arguments = sum(row.is_argument for row in self.rows)
        values = len(self.rows) - arguments
        unknown = f", {self.unknown} of unknown size" if self.unknown else ""
        return (
            f"{values} value{'s' * (values != 1)} of {self.temporaries} bytes and "
            f"{arguments} argument{'s' * (arguments != 1)}, "
            f"{self.total} bytes in all{unknown}; {self.policy}: {self.instead} bytes"
        )


@entry_point
def explain_residuals(
    g: Gradient | Callable[..., Any],
    *args: Any,
    policy: Policy = "keep_all",
    exact: bool = False,
    instead: Policy = "min_bytes",
) -> Residuals:
    """The residuals of ``g``: values that the forward pass keeps for the backward pass.

    For each, the report has its bytes, the rules that read it, its source line, and what the policy
    ``instead`` would recompute. ``g`` is a Gradient, or a Lambda or function, which is
    differentiated under ``policy``, a function at the arguments ``args``. Linear in the number of
    binds.

    >>> import numpy as np
    >>> found = explain_residuals(lambda x: np.exp(x * 2) * np.tanh(x * 2), np.ones(3))
    >>> [(row.text, row.nbytes, row.readers) for row in found]
    [('%4 = tanh(%3)', 24, ('mul', 'tanh')), ('%2 = exp(%1)', 24, ('mul', 'exp'))]
    >>> found.total, found.instead
    (48, 0)
    """
    gradient = _gradient_at(g, args)
    gradient = with_policy(gradient, policy, exact=exact)
    parts = split_gradient(gradient)
    others = _alternative_report(parts, instead)
    inputs = set(gradient.f.params)
    total, unknown = shared_bytes(gradient.f, parts.captured)
    temporaries, _ = shared_bytes(gradient.f, [v for v in parts.captured if v not in inputs])
    less, _ = shared_bytes(gradient.f, [v for v in others if v not in inputs])
    name = instead if isinstance(instead, str) else getattr(instead, "__name__", "the policy")
    rows = tuple(_residual_rows(parts, others))
    return Residuals(rows, total, temporaries, unknown, name, less, gradient)


def _gradient_at(g: Gradient | Callable, args: tuple) -> Gradient:
    """``g``, or the Gradient of a Lambda or of a function at these arguments."""
    if isinstance(g, Gradient):
        return g
    if not callable(g):
        raise LetirError(
            f"explain_residuals: found {g!r}, expected a Gradient, a Lambda, or a function and "
            "its arguments\n"
            "  write explain_residuals(f, *args)"
        )
    fn = g if isinstance(g, Lambda) else record_call(g, args, {}).fn
    return differentiate(fn, defined=[True] * len(fn.ret.args))  # like grad and vjp


def _alternative_report(parts: SplitGradient, policy: Policy) -> set[Local]:
    """The residuals that another policy would keep for the same gradient."""
    check_policy(policy)
    if policy == "keep_all":
        return set(parts.captured)
    return ResidualChoice(parts, policy, anything=True).choose_residuals(exact=False)


# ---- bytes ----


def _view_bases(fn: Lambda) -> dict[Local, Local]:
    """{view: the value whose memory it shares}."""
    result: dict[Local, Local] = {}
    for bind in fn.binds:
        if is_view_or_identity(bind):
            base: Any = bind.args[0]
            result.update(dict.fromkeys(bind.binders, result.get(base, base)))
    return result


def shared_bytes(fn: Lambda, values: Iterable[Local]) -> tuple[int | Size, int]:
    """(bytes of these values, number of values of unknown type); shared memory counts once."""
    base_of, unknown = fn.memo(_view_bases), 0
    groups: dict[Local, list[Local]] = {}
    for local in values:
        if local.type is None:
            unknown += 1
        else:
            groups.setdefault(base_of.get(local, local), []).append(local)
    total: int | Size = 0
    for base, views in groups.items():
        own = sum([nbytes(view) for view in views])
        is_more = base.type is None or nominal_bytes(base) > sum(map(nominal_bytes, views))
        total = total + (own if is_more else nbytes(base))
    return total, unknown


# ---- readers of residuals ----


def _rules_reading(parts: SplitGradient) -> dict[Local, dict[str, None]]:
    """For each residual, the operations whose rules read it, directly or through recomputed values.

    They are found in the "keep_all" gradient. A residual that does not exist there, because a
    policy moved a part of a rule into ``f``, is attributed to the rules of its source line.
    """
    captured, f = set(parts.captured), parts.gradient.f
    plain = split_gradient(_keeping_all(parts.gradient))
    readers, at_line = _steps_reading(plain)
    moved = [bind for bind in f.binds if not captured.isdisjoint(bind.binders)]
    moved = [bind for bind in moved if not any(b in readers for b in bind.binders)]
    for bind in moved:
        near = [readers.get(a, {}).get(bind.source, ()) for a in bind.locals()]
        rule_names = [name for names in near for name in names] or at_line.get(bind.source, ())
        for binder in bind.binders:
            readers[binder] = {bind.source: dict.fromkeys(rule_names)}
    names = {
        v: dict.fromkeys(n for line in rule_names.values() for n in line)
        for v, rule_names in readers.items()
    }
    _, recomputed = plain.needed(captured)
    done = {(bind.op, bind.source) for bind in parts.primal_binds[parts.lifted :]}
    for bind in reversed(plain.primal_binds):  # users first, so that names propagate to the inputs
        if id(bind) in recomputed and (bind.op, bind.source) in done:
            # bounded: a long chain would collect all names, and the table shows _MAX_NAMES only
            names_of_results = [name for b in bind.binders for name in names.get(b, ())][
                : _MAX_NAMES + 1
            ]
            for local in bind.locals():
                if len(names.setdefault(local, {})) <= _MAX_NAMES:
                    names[local].update(dict.fromkeys(names_of_results))
    return names


def _keeping_all(gradient: Gradient) -> Gradient:
    """The "keep_all" Gradient of the same function, with a ``grad_of`` for each bind."""
    f = gradient.f
    real = Ret(f.ret.args[: gradient.f_real_outputs])
    inputs = set(gradient.df_output_vjps)
    return differentiate(
        Lambda(f.params, f.binds, real), [i in inputs for i in range(len(f.params))]
    )


def _steps_reading(plain: SplitGradient) -> tuple[dict, dict]:
    """({local: {source line: rules that read the local}}, {source line: rules of that line})."""
    readers: dict[Local, dict] = {}
    at_line: dict = {}
    for step in plain.linear:
        if step.op.role == "grad_of":
            name, line = step.attrs["op"].name, step.source
            at_line.setdefault(line, {})[name] = None
            for local in step.locals():
                readers.setdefault(local, {}).setdefault(line, {})[name] = None
    return readers, at_line


def _first_names(names: Iterable[str]) -> str:
    """The first ``_MAX_NAMES`` names as a string."""
    names = list(names)
    return ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")


# ---- the table ----


def _residual_rows(parts: SplitGradient, others: set[Local]) -> Iterator[Residual]:
    """One ``Residual`` for each captured value; ``others``: the values the other policy keeps."""
    f, captured = parts.gradient.f, set(parts.captured)
    readers, base_of = _rules_reading(parts), f.memo(_view_bases)
    printer = Printer(types=False, sources=False, names=False, bounded=True)
    for param in f.params:
        printer.number(param)
    texts: dict[Local, str] = {}
    for bind in f.binds:
        if captured.isdisjoint(bind.binders):
            printer.skip(bind)  # numbers the bind without printing it: most binds are not residuals
        else:
            texts.update(dict.fromkeys(bind.binders, printer.bind_text(bind, "")))
    _, recomputed = parts.needed(others)
    for local in parts.captured:
        bind, base = parts.producers.get(local), base_of.get(local)
        yield Residual(
            number=printer.numbers[local],
            name=local.name,
            text=texts.get(local, "an argument"),
            type=local.type,
            nbytes=nbytes(local),
            is_argument=bind is None,
            readers=tuple(readers.get(local, ())),
            source=None if bind is None else bind.source,
            view_of=None if base is None else printer.numbers[base],
            instead=_instead_text(parts, local, others, recomputed, printer.numbers),
        )


def _instead_text(
    parts: SplitGradient,
    local: Local,
    others: set[Local],
    recomputed: dict[int, Bind],
    numbers: dict,
) -> str:
    """The treatment of ``local`` by another policy: "kept", or the operations that recompute it.

    ``others``: the residuals of that policy; ``recomputed``: the binds that it recomputes.
    """
    if local in others:
        return "kept"
    if id(parts.producers.get(local)) not in recomputed:
        return "not needed"
    binds: dict[int, Bind] = {}
    origins: dict[str, None] = {}
    stack = deque([local])
    while stack and len(binds) < _MAX_RECOMPUTED:
        value = stack.popleft()
        bind = parts.producers.get(value)
        if bind is None or value in others:
            origins[numbers.get(value, "a mask")] = None
        elif id(bind) not in binds:
            binds[id(bind)] = bind
            stack += bind.locals()
    if stack:
        return f"more than {_MAX_RECOMPUTED} operations"
    ops = ", ".join(bind.op.name for bind in reversed(binds.values()))
    ops = ops if len(binds) <= _MAX_NAMES else f"{len(binds)} operations"
    return f"{ops} of {_first_names(origins)}" if origins else ops
