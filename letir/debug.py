"""``letir.debug``: print values while a program runs.

>>> import letir, numpy as np
>>> def f(x):
...     y = x * x
...     letir.debug.print("sum {:.1f} of {y}", y.sum(), y=y)
...     return y
>>> program = letir.trace(f, np.zeros(2))
>>> program(np.array([1.0, 3.0]))
sum 10.0 of [1. 9.]
array([1., 9.])
"""

from typing import Any

from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import TraceError
from letir.ops.effects.printing import print_impl
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import ACTIVE, Trace

__all__ = ["print"]


class _Anything:
    """A stand-in for a value when a text is checked: accepts any format, attribute and index."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> "_Anything":
        return self

    def __getitem__(self, item: Any) -> "_Anything":
        return self


@entry_point
def print(text: str, *values: Any, **named: Any) -> None:
    """Print ``text`` with the values in its braces, as ``text.format`` fills them in.

    In a recorded function the print becomes part of the program: each run prints, in order with
    guards and other prints. A derivative prints the values of the forward computation once;
    ``vmap`` prints once, with the values of all examples stacked. Outside of a recording it prints
    immediately. Values are arrays and numbers; a format is applied to each element of an array.
    Raises TraceError if the text and the values do not fit.

    >>> import letir as lt
    >>> def f(x):
    ...     lt.debug.print("x is {}, its half {half:.2f}", x, half=x / 2)
    ...     return x + 1
    >>> program = lt.trace(f, 3.0)  # records the print, and prints nothing
    >>> program(5.0)
    x is 5.0, its half 2.50
    6.0
    """
    try:
        text.format(*[_Anything() for _ in values], **{name: _Anything() for name in named})
    except (IndexError, KeyError, ValueError) as error:
        reason = f"no value is called {error}" if isinstance(error, KeyError) else error
        count = "1 value" if len(values) == 1 else f"{len(values)} values"
        given = f"{count} and {', '.join(f'{name}=' for name in named)}" if named else count
        raise TraceError(
            f"debug.print: the text {text!r} does not fit {given}: {reason}"
            f"{at_user()}\n  write a pair of braces for each value, and double ones for a brace"
        ) from None
    values, names = (*values, *named.values()), tuple(named)
    active = ACTIVE.get()
    if isinstance(active, Trace):
        op = PRIMITIVES["print"]
        active.apply(op, values, op.complete({"text": text, "names": names}))
        return
    print_impl(None, *[_known_array(value) for value in values], text=text, names=names)


def _known_array(value):
    """The array of a Variable, or of a traced value while tracing is paused."""
    return value.concrete_value() if isinstance(value, Value) else value
