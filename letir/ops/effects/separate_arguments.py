"""``guard_separate``: the operation that refuses arguments which share memory.

The derivative of a function that writes into an argument holds for arrays that share no memory with
it: a write into one of them would change the other. See docs/in_place.md.
"""

from typing import Any

from letir.ast.record_fields import never
from letir.ops.define.batch_rules import emit_op
from letir.ops.define.records import define
from letir.ops.effects.writes_to_arguments import overlap_error, overlapping_pair


def _guard_separate_impl(xp: Any, *arrays: Any, written: int, names: tuple[str, ...]) -> tuple:
    """Raise TraceError if one of the first ``written`` arrays shares memory with another one."""
    pair = overlapping_pair(arrays, range(written))
    if pair is not None:
        raise overlap_error(names[pair[0]], names[pair[1]])
    return ()


def _guard_separate_source(write: Any, *arrays: str, written: int, names: tuple[str, ...]) -> None:
    """A statement that raises for two arrays that share memory."""
    pairs = [(i, j) for i in range(written) for j in range(i + 1, len(arrays))]
    for i, j in pairs:
        with write.block(f"if np.shares_memory({arrays[i]}, {arrays[j]}):"):
            text = f"{write.place}{names[i]}, which was changed, shares memory with {names[j]}"
            write.line(f"raise ValueError({text!r})")


guard_separate = define(
    "guard_separate",
    _guard_separate_impl,
    lambda *arrays, written, names: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=lambda args, axes, **attrs: (emit_op("guard_separate", args, **attrs), ()),
    results=lambda **_: 0,
    effect=True,
    source=_guard_separate_source,
    role="guard_separate",
    guards=True,
    raises=True,
)
