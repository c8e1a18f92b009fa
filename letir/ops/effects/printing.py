"""``print``: the operation that ``letir.debug.print`` records."""

import builtins
import string
from typing import Any

from letir.ast.record_fields import never
from letir.ops.define.batch_rules import batch_first, emit_op
from letir.ops.define.records import define


def _split_named(values: tuple, names: tuple) -> tuple[tuple, dict]:
    """(positional values, named values): the last ``len(names)`` of ``values`` are named."""
    count = len(values) - len(names)
    return values[:count], dict(zip(names, values[count:], strict=True))


class _Elements(string.Formatter):
    """``str.format`` that applies the format of an array to each element."""

    def format_field(self, value: Any, spec: str) -> str:
        if not spec or not getattr(value, "shape", ()):
            return format(value, spec)
        return f"[{' '.join([self.format_field(row, spec) for row in value])}]"


def print_impl(xp: Any, *values: Any, text: str, names: tuple[str, ...] = ()) -> tuple:
    """Print ``text`` with the values in its braces; no results."""
    on_host = tuple([v.get() if hasattr(v, "get") else v for v in values])  # CuPy arrays have get
    builtins.print(_Elements().vformat(text, *_split_named(on_host, names)))
    return ()


_ELEMENTS = """
def elements(text, *values, **named):
    '''text.format, which applies the format of an array to each of its elements.'''

    def spelled(value, spec):
        if not spec or not np.shape(value):
            return format(value, spec)
        return f"[{' '.join([spelled(row, spec) for row in value])}]"

    formatter = FORMATTER()
    formatter.format_field = spelled
    return formatter.vformat(text, values, named)
"""


def _print_source(write, *values, text, names):
    """A call of Python's print."""
    by_place, by_name = _split_named(values, names)
    named = [f"{name}={value}" for name, value in by_name.items()]
    arguments = ", ".join([repr(text), *by_place, *named])
    formatter = write.writer.module.imported("string", "Formatter")
    function = write.helper(_ELEMENTS.replace("FORMATTER", formatter))
    write.line(f"print({function}({arguments}))")


print_ = define(
    "print",
    print_impl,
    lambda *values, text, names: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    # one print of the values of all examples
    batch=batch_first(lambda args, mapped, **attrs: emit_op("print", args, **attrs)),
    results=lambda **_: 0,
    effect=True,
    source=_print_source,
)
