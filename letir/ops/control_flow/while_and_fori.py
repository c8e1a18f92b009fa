"""``while_loop``, ``while_scan`` and ``fori_loop``: a closed body is evaluated repeatedly.

Loop-carried values keep their types. Captured values are further operands, the same in every
iteration. ``while_scan`` is a ``while_loop`` that also stacks results of each iteration, such as
the residuals of the backward pass. Derivatives are in
``letir.ops.control_flow.while_and_fori_derivatives``, batching rules in
``letir.ops.control_flow.while_and_fori_batching``.
"""

from letir.ast.record_fields import BodyLayout
from letir.ast.terms import Bind, Lambda
from letir.ast.types import WEAK, ArrayType, Size
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import loops
from letir.ops.autodiff.checkpoint_and_custom_jvp import (
    as_numbers,
    define_body_op,
    fit_body_keeping_numbers,
)
from letir.ops.control_flow.fori_as_while import is_weak
from letir.ops.control_flow.scans import zero_trip_results
from letir.ops.control_flow.while_and_fori_batching import fori_batch, while_batch, while_scan_batch
from letir.ops.control_flow.while_and_fori_derivatives import (
    fori_fused_jvp,
    fori_jvp,
    fori_vjp,
    fori_with_residuals,
    while_fused_jvp,
    while_jvp,
    while_scan_fused_jvp,
    while_scan_jvp,
    while_scan_vjp,
    while_scan_with_residuals,
    while_vjp,
    while_with_residuals,
)

INDEX_AS_NUMBER = WEAK[int]  # the type of an iteration number that is a Python int
_INDEX = ArrayType(INDEX_AS_NUMBER.dtype)
# the trip count, known when the loop has run; a leading underscore marks internal sizes, which are
# never compared
_TRIPS = Size.named("_trips")

# ---- types ----


def _carried_types(name: str, body: Lambda, types, leading: int, n_carry: int | None = None):
    """(types of the carried values, types of the further results) of a loop with this body.

    ``leading``: the number of operands before the carried values. ``n_carry``: the number of
    carried values, by default the number of results. Raises ShapeError or DTypeError if the body
    changes the type of a carried value.
    """
    body = fit_body_keeping_numbers(body, types)
    returned = [arg.type for arg in body.ret.args]
    n_carry = len(returned) if n_carry is None else n_carry
    before = [param.type for param in body.params[leading : leading + n_carry]]
    if len(before) < n_carry or len(returned) < n_carry:
        raise ShapeError(
            f"{name}: its body returns {len(returned)} results for {len(before)} carried values\n"
            "  return one result for each carried value"
        )
    for i, (aval, after) in enumerate(zip(before, returned, strict=False)):
        if aval is None or (after is not aval and after is not None):
            error = ShapeError if aval and after and aval.dtype == after.dtype else DTypeError
            raise error(
                f"{name}: carried value {i} is {aval!r}, its body returns {after!r} for it\n"
                "  give both the same shape and dtype"
            )
    return tuple(before), returned[n_carry:]


def _check_test(name: str, test: Lambda) -> None:
    """Raise unless the test of a loop gives one number."""
    avals = [arg.type for arg in test.ret.args]
    if len(avals) != 1 or (avals[0] is not None and avals[0].shape):
        raise ShapeError(
            f"{name}: its test must return one truth value, found {avals}\n"
            "  reduce the condition with .all() or .any()"
        )


# ---- while_loop ----


def _run_while(xp, operands: list, *, call, test, body):
    """The carried values when the test fails; empties ``operands``."""
    as_numbers(body, operands)
    count = len(body.ret.args)
    carry, captured = operands[:count], operands[count:]
    operands.clear()
    while call(test, [*carry, *captured])[0]:
        carry += captured
        carry = list(call(body, carry))  # call empties the list: a value is freed at its last use
    return tuple(carry)


def _while_aval(*types, test, body):
    """The types of the carried values."""
    carried, _ = _carried_types("while_loop", body, types, 0)
    _check_test("while_loop", fit_body_keeping_numbers(test, types))
    return carried


def _all_results(bind: Bind) -> int:
    """The number of carried values of a loop that has no other results."""
    return len(bind.binders)


while_loop = define_body_op(
    "while_loop",
    _run_while,
    _while_aval,
    vjp=while_vjp,
    jvp=while_jvp,
    fused_jvp=while_fused_jvp,
    batch=while_batch,
    with_residuals=while_with_residuals,
    results=lambda *, test, body: len(body.ret.args),
    source=loops.while_loop,
    bodies=BodyLayout(loop="test", n_carry=_all_results),
)

# ---- while_scan ----


def _run_while_scan(xp, operands: list, *, call, test, body, n_carry, numbered):
    """The last carried values, the iteration numbers and the stacked results.

    Empties ``operands``. ``numbered``: the body's first stacked result is the iteration number.
    """
    as_numbers(body, operands)
    carry, captured = operands[:n_carry], operands[n_carry:]
    operands.clear()
    rows: list[list] = [[] for _ in body.ret.args[n_carry:]]
    count = 0
    while call(test, [*carry, *captured])[0]:
        carry += captured
        results = call(body, carry)
        carry = [*results[:n_carry]]
        for k, row in enumerate(rows, n_carry):
            row.append(results[k])
        del results  # would keep these results alive through the next iteration
        count += 1
    if count:
        stacked = [_stack_freeing(xp, row) for row in rows]
    else:
        stacked = zero_trip_results(xp, [*carry, *captured], body, n_carry, 0)
    return (*carry, *([] if numbered else [xp.arange(count)]), *stacked)


def _stack_freeing(xp, row: list):
    """The values in ``row`` stacked; each is freed when it has been copied."""
    first = xp.asarray(row[0])
    out = xp.empty((len(row), *first.shape), first.dtype)
    del first
    for i in range(len(row)):
        out[i] = row[i]
        row[i] = None
    return out


def _while_scan_aval(*types, test, body, n_carry, numbered):
    """The types of the carried values, the iteration numbers, and the stacked results."""
    carried, further = _carried_types("while_scan", body, types, 0, n_carry)
    _check_test("while_scan", fit_body_keeping_numbers(test, types))
    stacked = [aval and ArrayType(aval.dtype, (_TRIPS, *aval.shape)) for aval in further]
    return (*carried, *([] if numbered else [ArrayType(_INDEX.dtype, (_TRIPS,))]), *stacked)


while_scan = define_body_op(
    "while_scan",
    _run_while_scan,
    _while_scan_aval,
    vjp=while_scan_vjp,
    jvp=while_scan_jvp,
    fused_jvp=while_scan_fused_jvp,
    batch=while_scan_batch,
    with_residuals=while_scan_with_residuals,
    results=lambda *, test, body, n_carry, numbered: len(body.ret.args) + (not numbered),
    source=loops.while_scan,
    bodies=BodyLayout(
        loop="test",
        n_carry=lambda bind: bind.attrs["n_carry"],
        own=lambda bind: 0 if bind.attrs["numbered"] else 1,
        reads_results=lambda bind: (bind.attrs["n_carry"],) if bind.attrs["numbered"] else (),
        needs_sizes=True,
        counts=lambda bind, results, params: {
            "n_carry": sum(i < bind.attrs["n_carry"] for i in results)
        },
    ),
)

# ---- fori_loop ----


def _run_fori(xp, operands: list, *, call, body):
    """The carried values after iterations ``lower``, ..., ``upper`` - 1; empties ``operands``."""
    lower, upper = map(int, operands[:2])
    as_numbers(body, operands, 1)  # parameter 0 of the body is the iteration number
    end = 2 + len(body.ret.args)
    carry, captured = operands[2:end], operands[end:]
    operands.clear()
    number = int if is_weak(body.params[0].type) else xp.int64
    for i in range(lower, upper):
        carry = [number(i), *carry, *captured]
        carry = list(call(body, carry))
    return tuple(carry)


def _fori_aval(lower, upper, *types, body):
    """The types of the carried values."""
    for kind in (lower, upper):
        if kind not in (_INDEX, INDEX_AS_NUMBER):
            raise DTypeError(
                f"fori_loop: its bounds must be int64, found {kind!r}\n"
                "  convert them with .astype(np.int64)"
            )
    index = INDEX_AS_NUMBER if is_weak(body.params[0].type) else _INDEX  # as the body takes it
    return _carried_types("fori_loop", body, (index, *types), 1)[0]


fori_loop = define_body_op(
    "fori_loop",
    _run_fori,
    _fori_aval,
    vjp=fori_vjp,
    jvp=fori_jvp,
    fused_jvp=fori_fused_jvp,
    batch=fori_batch,
    with_residuals=fori_with_residuals,
    results=lambda *, body: len(body.ret.args),
    bodies=BodyLayout(ahead=2, steps=1, loop="numbers", n_carry=_all_results),
    source=loops.fori_loop,
)
