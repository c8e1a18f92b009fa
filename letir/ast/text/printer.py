"""Programs as text: ``dumps`` (typed, lossless, read by ``parse``), ``str`` (bounded), ``listing``.

Locals are numbered in order of appearance: parameters first, then binders, continuing through
nested bodies. The grammar is in docs/language.md. A ``Printer`` makes one pass over a program; its
options select the parts of a bind that are written.
"""

import math
import re
import struct
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import Here, Required, token
from letir.ast.bodies import bodies_of
from letir.ast.primitive import Primitive
from letir.ast.source import Source
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.ast.types import ArrayType, Size, UndefType
from letir.errors import LetirError

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_MAX_BINDS = 200  # shown by str
_MAX_ELEMENTS = 8
_INLINE_BODY = 4  # a grad_of body of at most this many binds is written on one line


@entry_point
def dumps(fn: Lambda) -> str:
    """The lossless text of ``fn``: ``parse(dumps(fn)) == fn``.

    >>> from letir.ast.text.parser import parse
    >>> print(dumps(parse("lambda %0: float64[3] { %1 = exp(%0); return %1 }")))
    lambda %0: float64[3] {
      %1 = exp(%0)
      return %1
    }
    """
    return _checked_text(Printer(), fn)


def _checked_text(printer: "Printer", fn: Lambda) -> str:
    """The text of ``fn``. Raises what ``check`` raises if a part is of the wrong class."""
    try:
        return "".join(printer.lambda_lines(fn, ""))
    except LetirError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError) as error:  # a part of a wrong class
        raise LATE_BOUND["malformed_error"](fn, error) from None


def _readable_text(fn: Lambda) -> str:
    """The readable text of ``fn``, with long programs, arrays and paths abbreviated."""
    return _checked_text(Printer(bounded=True), fn)


def listing(fn: Lambda) -> str:
    """One bind a line, no types, attributes by position in the record's order [semantics.md A2]."""
    printer = Printer(types=False, positional=True, sources=False)
    for param in fn.params:
        printer.number(param)
    lines = [printer.bind_text(bind, "") for bind in fn.binds]
    return "\n".join([*lines, printer.ret_text(fn.ret)]) + "\n"


def untyped_text(fn: Lambda, name: str = "lambda", params: list[str] | None = None) -> str:
    """Untyped text with named attributes and a header ``name(%0 role, ...)``, as in gradients."""
    printer = Printer(types=False, sources=False, names=False)
    roles = params or [param.name or "" for param in fn.params]
    head = ", ".join(
        f"{printer.number(p)} {role}".rstrip() for p, role in zip(fn.params, roles, strict=True)
    )
    lines = [f"  {printer.bind_text(bind, '  ')}\n" for bind in fn.binds]
    results = ", ".join([printer.arg(arg) for arg in fn.ret.args])
    return "".join([f"{name}({head}):\n", *lines, f"  return ({results})\n"])


def bind_text(bind: Bind) -> str:
    """The text of a single bind: locals are shown by name, or as %_ without one."""
    printer = Printer(bounded=True, numbered=False)
    try:
        printer.numbers = dict.fromkeys(bind.locals(), "%_")
        return printer.bind_text(bind, "")
    except (AttributeError, TypeError):  # ``check`` says what is wrong with it
        return f"Bind(op={bind.op!r}, args={bind.args!r})"


def line_of(program: Any, bind: Bind) -> str:
    """The line of ``bind`` as ``str(program)`` shows it.

    ``program``: a Lambda or a builder, to which ``bind`` may be about to be added.
    """
    return _numbered_before(program, bind).bind_text(bind, "")


def numbered_local(builder: Any, local: Local) -> str:
    """The name of ``local``, or its number in the program that is being built, with its type."""
    if local.name:
        return repr(local)
    number = _numbered_before(builder, None).numbers.get(local, "")
    return f"{number}: {local.type!r}".removeprefix(": ")


def _numbered_before(program: Any, bind: Bind | None) -> "Printer":
    """A printer that has numbered the locals of ``program`` before ``bind``."""
    printer = Printer(bounded=True)
    for param in program.params:
        printer.number(param)
    for other in program.binds:
        if other is bind:
            break
        printer.skip(other)
    return printer


@define(eq=False)
class Printer:
    """Numbers locals and writes terms; ``arrays`` collects constants written as references."""

    types: bool = True
    names: bool = True
    sources: bool = True
    positional: bool = False
    bounded: bool = False
    numbered: bool = True
    bodies: bool = True  # else written as {...}
    arrays: list | None = None
    numbers: dict[Local, str] = field(factory=dict)
    count: int = 0
    # sources by id, which is valid as long as the printed program holds them
    # of types and sources, of which a program has few different ones
    texts: dict = field(factory=dict)

    def number(self, local: Local) -> str:
        """Give ``local`` the next number."""
        text = self.numbers[local] = f"%{self.count}"
        self.count += 1
        return text

    def skip(self, bind: Bind) -> None:
        """Number the binders of ``bind`` (and in its bodies) without writing it."""
        # in the order of bind_text: abbreviated programs and errors show the numbers of dumps
        for binder in bind.binders:
            self.number(binder)
        for body in bodies_of(bind):
            for param in () if is_printed_in_place(bind) else body.params:
                self.number(param)
            for inner in body.binds:
                self.skip(inner)

    def binder(self, local: Local) -> str:
        """A binder: number, name and type."""
        text = self.numbers[local] = f"%{self.count}" if self.numbered else "%_"
        self.count += 1
        if self.names and local.name and not self.positional:
            text += self.texts.get(local.name) or self.name_text(local.name)
        aval = local.type
        if aval is None or not self.types:
            return text
        return f"{text}: {self.texts.get(aval) or self.texts.setdefault(aval, repr(aval))}"

    def arg(self, arg: Arg) -> str:
        """An operand."""
        return self.numbers[arg] if type(arg) is Local else self.value(arg.value, "")

    def lambda_lines(self, fn: Lambda, indent: str) -> list[str]:
        """The text of a Lambda in pieces."""
        params = ", ".join([self.binder(param) for param in fn.params])
        trees = "".join(
            f" {k} {t.written}"
            for k, t in (("in", fn.in_tree), ("out", fn.out_tree))
            if t is not None
        )
        # pieces, joined by the caller: repeated concatenation would be quadratic
        pieces = [f"lambda {params}{trees} {{\n" if params else f"lambda{trees} {{\n"]
        inner = indent + "  "
        left_out = len(fn.binds) - _MAX_BINDS if self.bounded else 0
        for i, bind in enumerate(fn.binds):
            if left_out > 0 and _MAX_BINDS // 2 <= i < _MAX_BINDS // 2 + left_out:
                self.skip(bind)
                if i == _MAX_BINDS // 2:
                    pieces.append(
                        f"{inner}... {left_out} binds left out: dumps(f) has them all ...\n"
                    )
                continue
            pieces += (inner, self.bind_text(bind, inner), "\n")
        pieces.append(f"{inner}{self.ret_text(fn.ret)}\n{indent}}}")
        return pieces

    def bind_text(self, bind: Bind, indent: str) -> str:
        """One bind, without its line's indentation and end."""
        numbers, binders = self.numbers, bind.binders
        operands = [
            numbers[a] if type(a) is Local else self.value(a.value, indent) for a in bind.args
        ]
        if len(binders) == 1:
            # before the attributes: binders are numbered before those in bodies
            head = self.binder(binders[0]) + " = "
        else:
            head = ", ".join([self.binder(b) for b in binders]) + (" = " if binders else "")
        if self.bodies and bind.op.holds_lambdas and is_printed_in_place(bind):
            line = head + self.grad_of_text(bind, operands, indent)
        elif self.positional:
            operands += [self.value(v, indent) for v in bind.attrs.values()]
            line = f"{head}{bind.op.name} {', '.join(operands)}"
        else:
            if bind.attrs:
                operands += self.attr_texts(bind, indent)
            line = f"{head}{bind.op.name}({', '.join(operands)})"
        source = bind.source
        if source is None or not self.sources:
            return line.rstrip()  # the positional form without operands ends in a blank
        line += self.texts.get(id(source)) or self.source_text(source)
        # a line may have several conditions that Python evaluated, a model several nodes
        return line + _excerpt_text(source) if bind.op.name == "guard" or source.text else line

    def source_text(self, source: Source) -> str:
        """The comment with the source line, cached by the Source object."""
        place = source.short if self.bounded else f"{source.file}:{source.line}"
        # a file's name may hold a line break, which a comment cannot
        text = self.texts[id(source)] = f"  # {place}" if len(place.splitlines()) == 1 else ""
        return text

    def name_text(self, name: str) -> str:
        """``:name``, or nothing for a name that ``parse`` would not read."""
        text = self.texts[name] = f":{name}" if _NAME.fullmatch(name) else ""
        return text

    def attr_texts(self, bind: Bind, indent: str) -> list[str]:
        """``name=value`` for the attributes that are not the defaults."""
        defaults = bind.op.attrs
        return [
            f"{name}={self.value(value, indent)}"
            for name, value in bind.attrs.items()
            # mostly decided by `is`; then by tokens, because 0 == False and 1 == 1.0 in Python
            if defaults.get(name, Required) is not value
            and (name not in defaults or token(defaults[name]) != token(value))
        ]

    def grad_of_text(self, bind: Bind, operands: list[str], indent: str) -> str:
        """``grad_of[op](cts) { binds -> (results) }`` with captured operands substituted."""
        n_cts, body = bind.attrs["n_cts"], bind.attrs["body"]
        # Scope.find (parser) is the inverse
        self.numbers.update(zip(body.params, operands, strict=True))
        inner = indent + "  "
        binds = [self.bind_text(inner_bind, inner) for inner_bind in body.binds]
        head = f"grad_of[{bind.attrs['op'].name}]({', '.join(operands[:n_cts])}) {{"
        ret = f"-> ({', '.join([self.arg(arg) for arg in body.ret.args])})"
        if len(binds) <= _INLINE_BODY and not any(b.source for b in body.binds):
            return f"{head} {'; '.join(binds)}{' ' if binds else ''}{ret} }}"
        lines = "".join(f"{inner}{line}\n" for line in binds)
        return f"{head}\n{lines}{inner}{ret}\n{indent}}}"

    def ret_text(self, ret: Ret) -> str:
        """The return."""
        results = ", ".join([self.arg(arg) for arg in ret.args])
        return f"return {results}" if len(ret.args) == 1 else f"return ({results})"

    def value(self, value: Any, indent: str) -> str:
        """An attribute or a constant, as ``parse`` reads it back."""
        kind = type(value)
        # exact types: np.float64 is a float with another repr
        if kind in (int, bool, str, type(None), Size, UndefType, Here, ArrayType):
            return repr(value)
        if kind is float:
            return _float_text(value)
        if kind is tuple:
            items = ", ".join([self.value(v, indent) for v in value])
            return f"({items}{',' if len(value) == 1 else ''})"
        if kind is complex:
            return f"complex({_float_text(value.real)}, {_float_text(value.imag)})"
        if kind is slice:
            return _slice_text(value)
        if kind is Lambda:
            return "".join(self.lambda_lines(value, indent)) if self.bodies else "{...}"
        if kind is np.ndarray:
            return self.array(value)
        if value is Ellipsis:
            return "..."
        if isinstance(value, np.dtype):
            return value.name
        if isinstance(value, Primitive):
            return value.name
        if isinstance(value, np.generic):
            return f"{value.dtype.name}({_array_element(value)})"
        return repr(value)

    def array(self, value: np.ndarray) -> str:
        """An array: its type and its elements in C order."""
        kind = f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
        if self.arrays is not None:
            self.arrays.append(value)
            return f"{kind}@{len(self.arrays) - 1}"
        flat = value.reshape(-1)
        if self.bounded and flat.size > _MAX_ELEMENTS:
            half = _MAX_ELEMENTS // 2
            shown = [*map(_array_element, flat[:half]), "...", *map(_array_element, flat[-half:])]
        else:
            shown = [*map(_array_element, flat)]
        return f"{kind}{{{', '.join(shown)}}}"


def _excerpt_text(source) -> str:
    """The part of a comment after the source line: the condition of a guard, a node's name.

    Without semicolons, which would end a comment in a program on one line.
    """
    excerpt = source.excerpt.partition(";")[0].rstrip()
    return f": {excerpt}" if excerpt and len(str(source).splitlines()) == 1 else ""


def is_printed_in_place(bind: Bind) -> bool:
    """Whether the captures of a ``grad_of`` can be substituted so that the parser lifts them back.

    That holds if no operand is repeated and the captured ones are in the order of their first use
    in the body.
    """
    if bind.op.name != "grad_of":
        return False
    op, n_cts, body = bind.attrs["op"], bind.attrs["n_cts"], bind.attrs["body"]
    if not isinstance(op, Primitive) or type(n_cts) is not int or type(body) is not Lambda:
        return False  # malformed, but ``check`` must be able to print it
    if not 0 <= n_cts <= len(bind.args) == len(body.params):
        return False
    args, captured = bind.args, list(body.params[n_cts:])
    if (
        len(set(args)) < len(args)
        or any(type(arg) is Const for arg in args)
        or body.in_tree
        or body.out_tree
    ):
        return False
    if any(p.name or p.type is not arg.type for arg, p in zip(args, body.params, strict=True)):
        return False
    params = set(body.params)
    used = dict.fromkeys(a for b in body.binds for a in b.locals() if a in params)
    used.update(dict.fromkeys(a for a in body.ret.locals() if a in params))
    return [p for p in used if p not in set(body.params[:n_cts])] == captured


def _float_text(value: float) -> str:
    """``repr`` of a float; a nan with unusual bits shows them."""
    if not math.isnan(value):
        return repr(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return "nan" if bits == 0x7FF8000000000000 else f"nan@{bits:016x}"


def _array_element(value: Any) -> str:
    """An element with the fewest digits that round-trip."""
    if value.dtype.kind == "c":
        return f"complex({_array_element(value.real)}, {_array_element(value.imag)})"
    if value.dtype.kind != "f":
        return str(value)
    if not np.isnan(value):
        return float_digits(value)
    bits = value.tobytes()[::-1] if np.little_endian else value.tobytes()
    plain = np.array(np.nan, value.dtype).tobytes()
    return "nan" if value.tobytes() == plain else f"nan@{bits.hex()}"


def float_digits(value: np.floating) -> str:
    """The shortest text that gives ``value`` back when read as float64 and rounded to its dtype."""
    short = (
        repr(value.item())
        if value.dtype.itemsize == 8
        else np.format_float_scientific(value, unique=True)
    )
    # double rounding, first to float64 and then to the dtype, may give the neighbour
    return short if value.dtype.type(float(short)) == value else repr(float(value))


def _slice_text(value: slice) -> str:
    """``start:stop:step`` without the parts that are None."""
    start, stop, step = (
        "" if n is None else repr(n) for n in (value.start, value.stop, value.step)
    )
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


LATE_BOUND.update(
    text=_readable_text,
    listing=listing,
    bind_text=bind_text,
    numbered_local=numbered_local,
    dumps=dumps,
    line_of=line_of,
    untyped_text=untyped_text,
)
