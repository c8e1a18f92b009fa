"""``while_loop`` and ``fori_loop``: a closed body is evaluated again and again on what it carries.

The carried values keep their types. What a body reads beside them is ``captured``: further
operands, the same for every iteration. ``while_history`` is a ``while_loop`` that also gives what
it carried, which is what the way back needs.
"""

import numpy as np

from letir.ast.primitive import todo
from letir.ast.terms import Lambda
from letir.ast.types import WEAK, ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.bodies import body_op, fitted

INDEX = ArrayType(np.int64)  # of the number of an iteration
INDEX_AS_NUMBER = WEAK[int]

# ---- types ----


def carried_types(name: str, body: Lambda, types, leading: int) -> tuple:
    """The types of what ``body`` carries: those of its results, and of as many of its operands
    after the ``leading`` ones.

    Raises ShapeError or DTypeError for one that it changes.
    """
    returned = [arg.type for arg in fitted(body, types).ret.args]
    given = types[leading : leading + len(returned)]
    if len(given) < len(returned):
        raise ShapeError(f"{name}: its body gives {len(returned)} results for {len(given)} carried")
    for i, (kind, found) in enumerate(zip(given, returned, strict=True)):
        if kind is None or (found is not kind and found is not None):
            error = ShapeError if kind and found and kind.dtype == found.dtype else DTypeError
            raise error(
                f"{name}: it carries {kind!r} as value {i}, for which its body gives {found!r}\n"
                "  give both the same shape and dtype"
            )
    return tuple(given)


# ---- while_loop ----


def run_while(xp, operands: list, *, call, test, body):
    """What is carried when the test fails; ``operands`` is emptied."""
    count = len(body.ret.args)
    carry, captured = operands[:count], operands[count:]
    operands.clear()
    while call(test, [*carry, *captured])[0]:
        carry += captured
        carry = list(call(body, carry))  # a list, which call empties: it is freed at its last use
    return tuple(carry)


def while_aval(*types, test, body):
    """The types of what is carried."""
    carried = carried_types("while_loop", body, types, 0)
    check_test(fitted(test, types))
    return carried


def check_test(test: Lambda) -> None:
    """Raise unless the test of a loop gives one number."""
    kinds = [arg.type for arg in test.ret.args]
    if len(kinds) != 1 or (kinds[0] is not None and kinds[0].shape):
        raise ShapeError(f"while_loop: its test gives one truth value, found {kinds}")


while_loop = body_op(
    "while_loop",
    run_while,
    while_aval,
    vjp=todo("soon"),
    jvp=todo("soon"),
    batch=todo("soon"),
    results=lambda *, test, body: len(body.ret.args),
)

# ---- fori_loop ----


def run_fori(xp, operands: list, *, call, body):
    """What is carried when all numbers from ``lower`` to ``upper`` were passed; ``operands`` is
    emptied.
    """
    lower, upper = map(int, operands[:2])
    end = 2 + len(body.ret.args)
    carry, captured = operands[2:end], operands[end:]
    operands.clear()
    number = int if is_weak(body.params[0].type) else xp.int64
    for i in range(lower, upper):
        carry = [number(i), *carry, *captured]
        carry = list(call(body, carry))
    return tuple(carry)


def is_weak(kind: ArrayType | None) -> bool:
    """Whether it is the type of a Python number."""
    return kind is not None and kind.weak


def index_type(body: Lambda) -> ArrayType:
    """The type of the number of an iteration: as the body takes it, a Python number or none."""
    return INDEX_AS_NUMBER if is_weak(body.params[0].type) else INDEX


def fori_aval(lower, upper, *types, body):
    """The types of what is carried."""
    for kind in (lower, upper):
        if kind is None or kind.shape or kind.dtype.kind not in "biu":
            raise DTypeError(f"fori_loop: its bounds are integers, found {kind!r}")
    return carried_types("fori_loop", body, (index_type(body), *types), 1)


fori_loop = body_op(
    "fori_loop",
    run_fori,
    fori_aval,
    vjp=todo("soon"),
    jvp=todo("soon"),
    batch=todo("soon"),
    results=lambda *, body: len(body.ret.args),
)
