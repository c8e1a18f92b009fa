"""In which order the elements of a traced array lie in memory, as far as a program knows.

It decides whether a reshape is a view or a copy, and depends on the memory order of the arguments.
In a concrete trace that is the order of the arrays that were given, else C; where a write makes it
matter, a guard says so in the program.
"""

import math

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.ops.memory import order_of
from letir.tracing.views import PUTS, Memory

# Operations whose result lies in C order whatever the operands do.
IN_C_ORDER = frozenset(["zeros", "ones", "full", "eye", "arange", "constant", "stack", "assemble"])
# Operations whose result lies as their first operand, which is a C-ordered array here or not.
KEEP = frozenset(
    ["copy", "index_set", "index_add", "cast", "complex_of", "reshape", "expand_dims", "squeeze"]
)


def sources(trace, local: Local) -> frozenset:
    """The arguments whose memory order that of ``local`` may depend on."""
    found, done = trace.orders
    # from where the last question ended: linear in all
    for bind in trace.binds[done:]:
        if bind.op.name in IN_C_ORDER:
            continue
        from_these = frozenset().union(*[found[arg] for arg in bind.locals() if arg in found])
        if from_these:
            found.update((b, from_these) for b in bind.binders if len(b.type.shape) > 1)
    trace.orders = found, len(trace.binds)
    return found.get(local, frozenset())


def fix_order(trace, local: Local) -> None:
    """Record that the program holds for arguments in the memory order that these have."""
    for param in sources(trace, local) - trace.fixed:
        trace.fixed.add(param)
        trace.emit(PRIMITIVES["guard_order"], (param,), Attrs(order=trace.arguments[param]))


def given_order(given) -> "str | tuple":
    """The memory order of an argument: C for one of which only the type is known."""
    given = given.known_value() if hasattr(given, "known_value") else getattr(given, "array", given)
    return order_of(given) if isinstance(given, np.ndarray) else "C"


def array_like(trace, base, local: Local) -> "np.ndarray | None":
    """An array that lies in memory as ``base``, at first ``local``, does; None if not known."""
    another = trace.as_another.get(local)
    value = trace.demand(local if another is None else another)
    if isinstance(value, np.ndarray):
        return value if another is None else np.empty_like(value)
    if not all(type(n) is int for n in base.shape) or not is_in_c_order(trace, local):
        return None
    size = base.dtype.itemsize
    strides = [size * math.prod(base.shape[i + 1 :]) for i in range(base.ndim)]
    # nobody reads its elements, which are not there
    return np.lib.stride_tricks.as_strided(np.empty(1, base.dtype), base.shape, strides)


def is_in_c_order(trace, local: Local) -> bool:
    """Whether a value is sure to lie in C order where all arguments do."""
    made = {b: bind for bind in trace.binds for b in bind.binders}
    todo = [local]
    seen = set()
    while todo:
        local = todo.pop()
        local = trace.as_another.get(local, local)
        bind = made.get(local)
        if bind is not None and bind.op.name in PUTS.keys() - KEEP:
            return False  # a view, of one axis too: it may skip elements, or go backwards
        if bind is None or bind.op.name in IN_C_ORDER or local in seen or local.type.ndim < 2:
            continue
        seen.add(local)
        if bind.op.name in KEEP and bind.attrs.get("order", "C") in "CK":
            todo.append(bind.args[0])
        elif bind.op.elementwise:
            todo += [arg for arg in bind.locals() if arg.type.shape == local.type.shape]
        else:
            return False
    return True


def ordered_like(made, like, order: str = "K"):
    """``made`` in the memory order that NumPy's ``zeros_like`` gives it."""
    trace = made.emitter
    if not hasattr(trace, "orders"):  # of a Variable
        return made
    if not made.shape:
        made.sharing = Memory(made.arg)  # an array, also without a value known to be no scalar
    if made.ndim < 2 or order == "C" or made.shape != like.shape:
        return made
    if order == "F":
        return PRIMITIVES["copy"](made, "F")
    trace.orders[0][made.arg] = sources(trace, like.arg)  # it has no operand that would tell
    array = like.known_value()
    if array is None:
        trace.as_another[made.arg] = like.arg  # to be found out if it matters
        return made
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return made
    steps = np.empty_like(array).strides
    axes = sorted(range(made.ndim), key=lambda i: -steps[i])
    if axes == list(range(made.ndim)):
        return made
    rows = PRIMITIVES["copy"](PRIMITIVES["transpose"](made, tuple(axes)), "C")
    return PRIMITIVES["transpose"](rows, tuple(sorted(range(made.ndim), key=axes.__getitem__)))
