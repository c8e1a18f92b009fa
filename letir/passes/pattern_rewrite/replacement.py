"""``rewrite``: replaces the occurrences of a pattern."""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import token
from letir.ast.builder import LetBuilder
from letir.ast.liveness import needed_binds
from letir.ast.process_state import paused_gc
from letir.ast.source import source_line
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.text.printer import line_of
from letir.errors import DTypeError, LetirError, ShapeError
from letir.ops.elementwise.casting import cast
from letir.passes.pattern_rewrite.matching import (
    Match,
    Pattern,
    pattern_parameters,
    patterns_of,
    record_pattern,
)
from letir.visitors.usedef import use_counts, uses


@entry_point
@paused_gc()
def rewrite(
    f: Lambda,
    pattern: Callable | Lambda,
    replacement: Callable | Lambda,
    where: Callable[[Match], bool] | None = None,
    *,
    commutative: bool = False,
    shared: bool = False,
) -> Lambda:
    """``f`` with ``replacement`` wherever ``pattern`` occurs and ``where(match)`` is true.

    Both are NumPy functions of the same parameters, or Lambdas. A positional parameter matches any
    operand, the same at each occurrence; a Python number among the operands is passed to the
    replacement as that number. A keyword-only parameter matches any value of the attribute of its
    name (``axis``; a second one is ``axis_2``). Numbers, attributes and array constants written in
    the pattern must be equal, with their types: 2 is not 2.0.

    ``where`` gets a ``Match``: ``match["x"]``, ``match.type("x")``, ``match.definition("x")``,
    ``match.binds``. ``commutative``: operands of sums, products and similar operations match in
    both orders. A value inside the pattern that is used elsewhere prevents a match, unless
    ``shared``: then it is still computed. Matches do not overlap; the first one in the program
    wins. The replacement is placed at the last bind of the match and must have its types: another
    dtype or shape is an error. Order, effects, names and lines of all other binds stay; nested
    bodies are not searched. ``f`` itself is returned if nothing matched. Linear in the number of
    binds.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = trace(lambda x: np.log(np.exp(x * 2)), np.ones(3))
    >>> g = rewrite(f, lambda x: np.log(np.exp(x)), lambda x: x)
    >>> print(rewrite(g, lambda x: x * 2, lambda x: x + x).listing(), end="")
    %1 = add %0, %0
    return %1
    """
    finder = _Finder(f, shared, where)
    matches = finder.run(patterns_of(pattern, f, commutative))
    if not matches:
        return f
    return _Replacer(f, matches, replacement).run()


@define(eq=False)
class _Occurrence:
    """A match to be replaced, with its pattern and the positions of its binds."""

    match: Match
    pattern: Pattern
    inner: set[int]


@define(eq=False)
class _Finder:
    """Finds the occurrences of a pattern that may be replaced."""

    f: Lambda
    shared: bool
    where: Callable | None
    consumed: set[int] = field(factory=set)

    def run(self, patterns: list[Pattern]) -> dict[int, _Occurrence]:
        """{position of the last bind: match}; matches do not overlap."""
        by_root: dict = {}
        for pattern in patterns:
            key = pattern.root.op, pattern.root.attrs
            by_root.setdefault(key, []).append(pattern)
        ops = {pattern.root.op for pattern in patterns}
        result = {}
        for at, bind in enumerate(self.f.binds):
            if bind.op not in ops:  # most binds: the key below would hash their attributes
                continue
            for pattern in by_root.get((bind.op, bind.attrs), ()):
                match = self.match_at(pattern, at)
                if match is not None:
                    result[at] = match
                    self.consumed |= match.inner
                    break
        return result

    def match_at(self, pattern: Pattern, at: int) -> _Occurrence | None:
        """The match whose last bind is at this position."""
        ud = uses(self.f)
        values = pattern.match(self.f.binds[at], ud)
        if values is None:
            return None
        inner = {ud.position(values[b]) for bind in pattern.fn.binds for b in bind.binders}
        results = tuple([values[arg] for arg in pattern.fn.ret.locals()])
        if not inner.isdisjoint(self.consumed) or not self.is_free(inner, results, at):
            return None
        names = _parameter_names(pattern.fn)
        matched = {
            n: _plain_argument(values[p]) for n, p in zip(names, pattern.fn.params, strict=True)
        }
        binds = tuple([self.f.binds[i] for i in sorted(inner)])
        match = Match(matched | pattern.attributes, binds, results, ud)
        # last, so that the user's function sees only replaceable matches
        if self.where is not None and not self.where(match):
            return None
        return _Occurrence(match, pattern, inner)

    def is_free(self, inner: set[int], results: tuple, at: int) -> bool:
        """Whether inner values are not used elsewhere, and results not before the last bind."""
        binds, counts, ud = self.f.binds, use_counts(self.f), uses(self.f)
        inside: dict[Local, int] = {}
        for i in inner:
            for arg in binds[i].locals():
                inside[arg] = inside.get(arg, 0) + 1
        for local in [binder for i in inner for binder in binds[i].binders]:
            used, own = counts.get(local, 0), inside.get(local, 0)
            if local in results:
                # the replacement stands at ``at``: no use may be before
                before = used - ud.uses_left(local, at)
                after = own - sum(arg is local for arg in binds[at].args)
                if before > after:
                    return False
            elif used > own and not self.shared:
                return False
        return True


def _parameter_names(fn: Lambda) -> list[str]:
    """The names of a pattern's parameters."""
    return [param.name or f"%{i}" for i, param in enumerate(fn.params)]


def _plain_argument(arg: Arg) -> Any:
    """A local, or the value of a constant."""
    return arg if type(arg) is Local else arg.value


@define(eq=False)
class _Replacer:
    """Builds the program with the matches replaced."""

    f: Lambda
    matches: dict[int, _Occurrence]
    replacement: Callable | Lambda
    names: dict[Local, Arg] = field(factory=dict)  # replaced result -> its replacement
    programs: dict = field(factory=dict)

    def run(self) -> Lambda:
        """The new program."""
        builder, f = LetBuilder(), self.f
        inside = set().union(*[occurrence.inner for occurrence in self.matches.values()])
        inner: set[Bind] = set()
        for at, bind in enumerate(f.binds):
            # matched binds are emitted too: ``needed_binds`` drops them unless they have other uses
            builder.binds.append(bind.substitute(self.names))
            if at in inside:
                inner.add(builder.binds[-1])
            if at in self.matches:
                self.replace(builder, self.matches[at], bind)
        ret = f.ret.substitute(self.names)
        # dead binds of the original program stay
        binds = needed_binds(builder.binds, ret, lambda bind: bind not in inner)
        return f.replace(binds=binds, ret=ret)

    def current_arg(self, arg: Arg) -> Arg:
        """The current replacement of ``arg``."""
        return self.names.get(arg, arg) if type(arg) is Local else arg

    def replace(self, builder: LetBuilder, occurrence: _Occurrence, bind: Bind) -> None:
        """Emit the replacement for a match whose last bind is ``bind``."""
        operands = {
            name: self.current_arg(value) if type(value) is Local else Const(value)
            for name, value in occurrence.match.values.items()
            if name not in occurrence.pattern.attributes
        }
        program, names = self.replacement_program(operands, occurrence.pattern.attributes)
        args = [operands[name] for name in names]
        builder.source, start = bind.source, len(builder.binds)
        emitted = builder.inline(program, args)  # one recording, renamed for each match
        _check_count(occurrence.match.results, emitted)
        pairs = zip(occurrence.match.results, emitted, strict=True)
        results = [_as_numpy_scalar(builder, old, new) for old, new in pairs]
        new_locals = {binder for new in builder.binds[start:] for binder in new.binders}
        for old, new in zip(occurrence.match.results, results, strict=True):
            _check_replacement_type(self.f, old, new, bind)
            # an operand that is returned unchanged keeps its name
            if type(new) is Local and new in new_locals and new.name is None:
                new.name = old.name
            self.names[old] = new

    def replacement_program(
        self, values: dict[str, Arg], attributes: dict
    ) -> tuple[Lambda, list[str]]:
        """(replacement program, the operands that are its parameters); cached by operand types."""
        if isinstance(self.replacement, Lambda):
            return self.replacement, list(values)
        operands = {n: arg.type if type(arg) is Local else arg for n, arg in values.items()}
        # the key has types and numbers, on which the replacement may depend
        key = (*operands.items(), *((n, token(v)) for n, v in attributes.items()))
        if key not in self.programs:
            names, keywords = pattern_parameters(self.replacement)
            _check_names(names, keywords, operands, attributes)
            chosen = {name: operands[name] for name in names}
            fn = record_pattern(self.replacement, chosen, {n: attributes[n] for n in keywords})
            names = [name for name, kind in chosen.items() if type(kind) is not Const]
            self.programs[key] = _without_places(fn), names
        return self.programs[key]


def _without_places(fn: Lambda) -> Lambda:
    """``fn`` without source lines, so that its binds get the line of the bind they replace."""
    return fn.with_binds([Bind(b.binders, b.op, b.args, b.attrs) for b in fn.binds])


def _check_names(names: list, keywords: list, operands: dict, attributes: dict) -> None:
    """Raise LetirError if a replacement has a parameter that the pattern lacks."""
    unknown = [name for name in names if name not in operands]
    unknown += [name for name in keywords if name not in attributes]
    if unknown:
        known_names = ", ".join([*operands, *attributes])
        raise LetirError(
            f"rewrite: the replacement takes {', '.join(unknown)}, the pattern has {known_names}\n"
            "  give both the same parameter names, attributes after a *"
        )


def _as_numpy_scalar(builder: LetBuilder, old: Local, new: Arg) -> Arg:
    """``new``, converted to a NumPy scalar if it is a Python number that replaces one.

    In programs an operation on Python numbers is the NumPy function followed by ``weaken``.
    """
    aval, new_type = old.type, new.type
    if None in (aval, new_type) or not getattr(new_type, "weak", False) or aval.weak:
        return new
    if aval.dtype != new_type.dtype or aval.shape:
        return new
    return builder.emit(cast, (new,), cast.complete({"dtype": aval.dtype}))[0]


def _check_count(old: tuple, new: tuple) -> None:
    """Raise LetirError if a replacement has another number of results."""
    if len(old) != len(new):
        raise LetirError(
            f"rewrite: the replacement gives {len(new)} results, the pattern {len(old)}\n"
            "  return as many results from both"
        )


def _check_replacement_type(fn: Lambda, old: Local, new: Arg, bind: Bind) -> None:
    """Raise DTypeError or ShapeError if a replacement has another type than the replaced result."""
    if None in (old.type, new.type) or old.type is new.type:
        return
    wrong = ShapeError if getattr(new.type, "dtype", None) == old.type.dtype else DTypeError
    at = source_line(bind.source)
    raise wrong(
        f"rewrite: the replacement is {new.type}, the replaced value is {old.type}\n"
        f"  in {line_of(fn, bind)}{at}\n"
        "  cast it there, or leave such places out: where=lambda match: ..."
    )
