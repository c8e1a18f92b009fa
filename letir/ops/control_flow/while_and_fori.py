"""``while_loop`` and ``fori_loop``: a closed body is evaluated again and again on what it carries.

The carried values keep their types. What a body reads beside them is ``captured``: further
operands, the same for every iteration. ``while_scan`` is a ``while_loop`` that also stacks what
each iteration gives, and so what the way back reads. Derivatives are in ``repetition_gradients``,
batching rules in ``batched_repetition``.
"""

from letir.ast.terms import Lambda
from letir.ast.types import WEAK, ArrayType, Size
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import loops
from letir.ops.autodiff.checkpoint_and_custom_jvp import as_numbers, body_op, suited
from letir.ops.control_flow.fori_as_while import is_weak
from letir.ops.control_flow.scans import no_steps
from letir.ops.control_flow.while_and_fori_batching import fori_batch, while_batch, while_scan_batch
from letir.ops.control_flow.while_and_fori_derivatives import (
    fori_joint,
    fori_jvp,
    fori_saving,
    fori_vjp,
    while_joint,
    while_jvp,
    while_saving,
    while_scan_joint,
    while_scan_jvp,
    while_scan_saving,
    while_scan_vjp,
    while_vjp,
)

INDEX_AS_NUMBER = WEAK[int]  # of the number of an iteration
_INDEX = ArrayType(INDEX_AS_NUMBER.dtype)
# a size that is known when the loop has run; the leading underscore: no two of them are compared
_TRIPS = Size.named("_trips")

# ---- types ----


def _carried_types(name: str, body: Lambda, types, leading: int, n_carry: int | None = None):
    """(types of what ``body`` carries, types of its further results).

    Carried are ``n_carry`` of its operands after the ``leading`` ones, by default as many as it has
    results. Raises ShapeError or DTypeError for one that it changes.
    """
    body = suited(body, types)
    returned = [arg.type for arg in body.ret.args]
    n_carry = len(returned) if n_carry is None else n_carry
    given = [param.type for param in body.params[leading : leading + n_carry]]
    if len(given) < n_carry or len(returned) < n_carry:
        raise ShapeError(f"{name}: its body gives {len(returned)} results for {len(given)} carried")
    for i, (kind, found) in enumerate(zip(given, returned, strict=False)):
        if kind is None or (found is not kind and found is not None):
            error = ShapeError if kind and found and kind.dtype == found.dtype else DTypeError
            raise error(
                f"{name}: it carries {kind!r} as value {i}, for which its body gives {found!r}\n"
                "  give both the same shape and dtype"
            )
    return tuple(given), returned[n_carry:]


def _check_test(name: str, test: Lambda) -> None:
    """Raise unless the test of a loop gives one number."""
    kinds = [arg.type for arg in test.ret.args]
    if len(kinds) != 1 or (kinds[0] is not None and kinds[0].shape):
        raise ShapeError(f"{name}: its test gives one truth value, found {kinds}")


# ---- while_loop ----


def _run_while(xp, operands: list, *, call, test, body):
    """What is carried when the test fails; ``operands`` is emptied."""
    as_numbers(body, operands)
    count = len(body.ret.args)
    carry, captured = operands[:count], operands[count:]
    operands.clear()
    while call(test, [*carry, *captured])[0]:
        carry += captured
        carry = list(call(body, carry))  # a list, which call empties: it is freed at its last use
    return tuple(carry)


def _while_aval(*types, test, body):
    """The types of what is carried."""
    carried, _ = _carried_types("while_loop", body, types, 0)
    _check_test("while_loop", suited(test, types))
    return carried


while_loop = body_op(
    "while_loop",
    _run_while,
    _while_aval,
    vjp=while_vjp,
    jvp=while_jvp,
    joint=while_joint,
    batch=while_batch,
    saving=while_saving,
    results=lambda *, test, body: len(body.ret.args),
    source=loops.while_loop,
)

# ---- while_scan ----


def _run_while_scan(xp, operands: list, *, call, test, body, n_carry, numbered):
    """What is carried at last, the numbers of the iterations, and what each of them gave, stacked;
    ``operands`` is emptied. ``numbered``: the first that they give are the numbers.
    """
    as_numbers(body, operands)
    carry, captured = operands[:n_carry], operands[n_carry:]
    operands.clear()
    rows: list[list] = [[] for _ in body.ret.args[n_carry:]]
    count = 0
    while call(test, [*carry, *captured])[0]:
        carry += captured
        found = call(body, carry)
        carry = [*found[:n_carry]]
        for k, row in enumerate(rows, n_carry):
            row.append(found[k])
        del found  # else the next iteration would run while this is held
        count += 1
    if count:
        stacked = [_stack_freeing(xp, row) for row in rows]
    else:
        stacked = no_steps(xp, [*carry, *captured], body, n_carry, 0)
    return (*carry, *([] if numbered else [xp.arange(count)]), *stacked)


def _stack_freeing(xp, row: list):
    """The values in ``row`` as one array, each freed when it has been copied."""
    first = xp.asarray(row[0])
    out = xp.empty((len(row), *first.shape), first.dtype)
    del first
    for i in range(len(row)):
        out[i] = row[i]
        row[i] = None
    return out


def _while_scan_aval(*types, test, body, n_carry, numbered):
    """The types of what is carried, of the numbers of the iterations, and of what these give."""
    carried, further = _carried_types("while_scan", body, types, 0, n_carry)
    _check_test("while_scan", suited(test, types))
    stacked = [kind and ArrayType(kind.dtype, (_TRIPS, *kind.shape)) for kind in further]
    return (*carried, *([] if numbered else [ArrayType(_INDEX.dtype, (_TRIPS,))]), *stacked)


while_scan = body_op(
    "while_scan",
    _run_while_scan,
    _while_scan_aval,
    vjp=while_scan_vjp,
    jvp=while_scan_jvp,
    joint=while_scan_joint,
    batch=while_scan_batch,
    saving=while_scan_saving,
    results=lambda *, test, body, n_carry, numbered: len(body.ret.args) + (not numbered),
    source=loops.while_scan,
)

# ---- fori_loop ----


def _run_fori(xp, operands: list, *, call, body):
    """What is carried when all numbers from ``lower`` to ``upper`` were passed; ``operands`` is
    emptied.
    """
    lower, upper = map(int, operands[:2])
    as_numbers(body, operands, 1)  # its parameters begin with the number of the iteration
    end = 2 + len(body.ret.args)
    carry, captured = operands[2:end], operands[end:]
    operands.clear()
    number = int if is_weak(body.params[0].type) else xp.int64
    for i in range(lower, upper):
        carry = [number(i), *carry, *captured]
        carry = list(call(body, carry))
    return tuple(carry)


def _fori_aval(lower, upper, *types, body):
    """The types of what is carried."""
    for kind in (lower, upper):
        if kind not in (_INDEX, INDEX_AS_NUMBER):
            raise DTypeError(f"fori_loop: its bounds are of int64, found {kind!r}")
    index = INDEX_AS_NUMBER if is_weak(body.params[0].type) else _INDEX  # as the body takes it
    return _carried_types("fori_loop", body, (index, *types), 1)[0]


fori_loop = body_op(
    "fori_loop",
    _run_fori,
    _fori_aval,
    vjp=fori_vjp,
    jvp=fori_jvp,
    joint=fori_joint,
    batch=fori_batch,
    saving=fori_saving,
    results=lambda *, body: len(body.ret.args),
    source=loops.fori_loop,
)
