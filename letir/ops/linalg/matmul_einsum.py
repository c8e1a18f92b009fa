"""Products of arrays: matmul, dot, einsum.

The derivatives of ``einsum``, and of ``dot`` for arrays of more than 2 axes, are einsums
themselves: the cotangent takes the place of the operand, and the labels determine the axes to sum.
"""

import math
import string
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import MissingRule, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.records import (
    add_terms,
    array_dtype,
    broadcast_tangent,
    cast_cotangent,
    define,
    takes_gradient,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.linalg.product_batching import batched_dot, batched_einsum, batched_matmul
from letir.ops.reductions.cumulative import number_along
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import broadcast_to
from letir.ops.shape.transpose import move_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims, squeeze


def require_known_ranks(name: str, *args: Any) -> None:
    """Raise MissingRule if the rank of an operand is unknown: derivatives need a label for each
    axis.
    """
    if any(isinstance(arg, Value) and arg.type is None for arg in args):
        raise MissingRule(
            f"{name}: its derivative needs the ranks of its operands\n"
            "  give the program types: letir.retype"
        )


# ---- matmul ----


def _matmul_aval(x, y):
    """Rows by columns, with leading axes broadcast. A 1-d operand is a row on the left and a column
    on the right.
    """
    if not x.shape or not y.shape:
        raise ShapeError(
            f"matmul: an operand is 0-d, {x.shape} @ {y.shape}\n  multiply with * instead"
        )
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        raise ShapeError(
            f"matmul: inner sizes differ, {x.shape} @ {y.shape}\n"
            "  transpose one of them, or see numpy.einsum"
        )
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    return ArrayType(
        array_dtype(x, y), (*broadcast_shapes(x.shape[:-2], y.shape[:-2]), *rows, *columns)
    )


def _matmul_vjp(ct, out, x, y):
    """ct @ y.T and x.T @ ct, where a vector is a row or a column."""
    require_known_ranks("matmul", ct, x, y)
    by_x = unbroadcast(_matmul_by_left(ct, x, y), x) if takes_gradient(x) else None
    by_y = unbroadcast(_matmul_by_right(ct, x, y), y) if takes_gradient(y) else None
    return by_x, by_y


def _matmul_by_left(ct, x, y) -> Value:
    """The cotangent of ``x``, not yet summed over broadcast axes."""
    if y.ndim == 1:
        return ct * y if x.ndim == 1 else outer_product(ct, y)
    if x.ndim > 1:
        return ct @ swap_last_axes(y)  # no conjugate, by the convention in elementwise/ufuncs.py
    return y @ ct if y.ndim == 2 else squeeze(y @ expand_dims(ct, -1), -1)


def outer_product(column: Value, row: Value) -> Value:
    """The outer product of vectors along the last axes, with leading axes broadcast."""
    return expand_dims(column, -1) @ expand_dims(row, -2)


def _matmul_by_right(ct, x, y) -> Value:
    """The cotangent of ``y``, not yet summed over broadcast axes."""
    if x.ndim == 1 and y.ndim == 1:
        return ct * x
    if x.ndim == 1:
        return outer_product(x, ct)
    if y.ndim == 2 and x.ndim > 2:  # a sum over all rows of the stack is one product
        rows = math.prod(x.shape[:-1])
        return reshape(x, (rows, x.shape[-1])).T @ reshape(ct, (rows, ct.shape[-1]))
    if y.ndim > 1:
        return swap_last_axes(x) @ ct
    return ct @ x if x.ndim == 2 else squeeze(swap_last_axes(x) @ expand_dims(ct, -1), -1)


def swap_last_axes(x: Value) -> Value:
    """``x`` with its last two axes exchanged."""
    return x.T if x.ndim == 2 else move_axes(x, (-1,), (-2,))


def _product_jvp(name: str):
    """The JVP of matmul or dot, by the product rule."""

    def jvp(tangents, out, x, y):
        (by_x, by_y), product = tangents, PRIMITIVES[name]
        terms = (
            None if by_x is None else product(by_x, y),
            None if by_y is None else product(x, by_y),
        )
        return broadcast_tangent(add_terms(terms), out)

    return jvp


_MATRIX_PRODUCT: dict = {"product": "matrix", "odd_in": (0, 1), "compact": "scalar"}
_MATRIX_PRODUCT |= {"only_float_warnings": True}
matmul = define(
    "matmul",
    lambda xp, x, y: xp.matmul(x, y),
    _matmul_aval,
    vjp=_matmul_vjp,
    jvp=_product_jvp("matmul"),
    numpy=(np.matmul,),
    batch=batched_matmul,
    symbol="@",
    onnx="MatMul",
    order="all",
    scalar="matmul",
    **_MATRIX_PRODUCT,
    work=lambda out, x, y: 2 * out.size * x.shape[-1],
)

# ---- dot ----


def _dot_aval(x, y):
    """The type of np.dot: a product if an operand is a scalar, else a sum over the last axis of x
    and the last but one of y.
    """
    if not x.shape or not y.shape:
        return ArrayType(array_dtype(x, y), x.shape or y.shape)
    axis = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[axis]:
        raise ShapeError(
            f"dot: inner sizes differ, {x.shape} and {y.shape}\n  transpose one of them: x.T"
        )
    return ArrayType(array_dtype(x, y), (*x.shape[:-1], *y.shape[:axis], *y.shape[axis + 1 :]))


def _dot_labels(x, y) -> str:
    """The subscripts of ``dot`` as an einsum."""
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(x.ndim)]
    right = [next(letters) for _ in range(y.ndim)]
    right[max(y.ndim - 2, 0)] = left[-1]  # the last axis of x, the last but one of y
    out = [*left[:-1], *(a for a in right if a != left[-1])]
    return f"{''.join(left)},{''.join(right)}->{''.join(out)}"


def _dot_vjp(ct, out, x, y):
    """The VJP of a product for scalars, of matmul for matrices, of an einsum for higher ranks."""
    require_known_ranks("dot", ct, x, y)
    ranks = [arg.ndim if isinstance(arg, Value) else 0 for arg in (x, y)]
    if 0 in ranks:
        return unbroadcast(ct * y, x) if takes_gradient(x) else None, unbroadcast(
            ct * x, y
        ) if takes_gradient(y) else None
    if max(ranks) <= 2:  # dot and matmul differ only for higher ranks
        return _matmul_vjp(ct, out, x, y)
    return _einsum_vjp(ct, out, x, y, subscripts=_dot_labels(x, y), optimize=False)


def _dot_prepare(a, b, out=None):
    """np.dot."""
    return (a, b), {}


dot = define(
    "dot",
    lambda xp, x, y: xp.dot(x, y),
    _dot_aval,
    vjp=_dot_vjp,
    jvp=_product_jvp("dot"),
    prepare=_dot_prepare,
    numpy=(np.dot,),
    batch=batched_dot,
    order="C",
    scalar="dot",
    **_MATRIX_PRODUCT,
    work=lambda out, x, y: out.size * (2 * x.shape[-1] if x.shape and y.shape else 1),
)

# ---- einsum ----


def parse_subscripts(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with ``...`` replaced by unused letters from
    the end of the alphabet.

    Raises ShapeError if the number of operands or of labels is wrong.
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if len(parts) != len(ranks):
        raise ShapeError(
            f"einsum: {subscripts!r} names {len(parts)} operands, found {len(ranks)}\n"
            "  separate one group of labels for each operand by commas"
        )
    spare = [c for c in reversed(string.ascii_letters) if c not in subscripts]
    depth = max(
        [rank - len(p) + 3 for p, rank in zip(parts, ranks, strict=True) if "..." in p], default=0
    )
    dots = "".join(spare[:depth])
    if arrow and dots and "..." not in output:
        raise ShapeError(
            f"einsum: the result of {subscripts!r} lacks the ... of its operands\n"
            "  write ... in the result, too"
        )
    labelled = []
    for part, rank in zip(parts, ranks, strict=True):
        n = rank - len(part.replace("...", ""))
        # aligned at the right, as axes broadcast
        labelled.append(part.replace("...", dots[len(dots) - n :] if n > 0 else ""))
        if len(labelled[-1]) != rank:
            raise ShapeError(
                f"einsum: {subscripts!r} does not fit operands of ranks {ranks}\n"
                "  write one label for each axis of each operand"
            )
    # without -> the result has its labels in alphabetical order:
    # https://numpy.org/doc/stable/reference/generated/numpy.einsum.html
    if not arrow:
        flat = "".join(labelled)
        output = dots + "".join(
            sorted(c for c in set(flat) if flat.count(c) == 1 and c not in dots)
        )
    return labelled, output.replace("...", dots)


def _label_sizes(labels: list[str], shapes: list[tuple]) -> dict:
    """The size of each label, where 1 broadcasts. Raises ShapeError if sizes differ."""
    sizes: dict = {}
    for part, shape in zip(labels, shapes, strict=True):
        for label, n in zip(part, shape, strict=True):
            if sizes.setdefault(label, n) == 1:  # np.einsum broadcasts an axis of length 1
                sizes[label] = n
            elif n not in (1, sizes[label]):
                raise ShapeError(
                    f"einsum: label {label!r} has sizes {sizes[label]} and {n}, shapes {shapes}\n"
                    "  axes of one label must be equally long: rename one label or transpose"
                )
    return sizes


def _einsum_aval(*arrays, subscripts, optimize):
    """The shape given by the labels of the result."""
    labels, out = parse_subscripts(subscripts, [x.ndim for x in arrays])
    sizes = _label_sizes(labels, [x.shape for x in arrays])
    if any(label not in sizes for label in out) or len(set(out)) < len(out):
        raise ShapeError(
            f"einsum: each label of the result {out!r} must be a label of an operand "
            "and occur once\n"
            "  write the labels of the result once, from those of the operands"
        )
    return ArrayType(array_dtype(*arrays), tuple(sizes[label] for label in out))


def _einsum_vjp(ct, out, *arrays, subscripts, optimize):
    """For each operand, the einsum of the cotangent and the other operands to its labels."""
    require_known_ranks("einsum", ct, *arrays)
    optimize = optimize if type(optimize) is bool else True  # a path fits only these operands
    shapes = [x.shape if isinstance(x, Value) else () for x in arrays]
    labels, result = parse_subscripts(subscripts, [len(shape) for shape in shapes])
    sizes = _label_sizes(labels, shapes)
    return tuple(
        unbroadcast(_einsum_by(i, ct, arrays, labels, result, sizes, optimize), x)
        if takes_gradient(x)
        else None
        for i, x in enumerate(arrays)
    )


def _einsum_by(i, ct, arrays, labels, result, sizes, optimize) -> Value:
    """The cotangent of operand ``i``, not yet summed over broadcast axes."""
    part, x = labels[i], arrays[i]
    others = [(labels[j], y) for j, y in enumerate(arrays) if j != i]
    others_labels = "".join([result, *(other for other, _ in others)])
    summed = "".join([label for label in dict.fromkeys(part) if label in others_labels])
    text = ",".join([result, *(other for other, _ in others)]) + "->" + summed
    by = einsum(text, ct, *(y for _, y in others), optimize=optimize)
    # axes come back by broadcasting if their label was summed away (no other operand has it) or is
    # repeated in this operand (it reads a diagonal)
    new = [k for k, label in enumerate(part) if label not in summed or label in part[:k]]
    by = expand_dims(by, tuple(new)) if new else by
    full = tuple(sizes[label] for label in part)
    if by.shape != full:
        by = broadcast_to(by, x if isinstance(x, Value) and x.shape == full else full)
    for k, label in enumerate(part):
        if label in part[:k]:  # the cotangent is zero off the diagonal
            by = where(number_along(by, part.index(label)) == number_along(by, k), by, 0)
    return by


def _einsum_jvp(tangents, out, *arrays, subscripts, optimize):
    """The tangent by the product rule."""
    terms = (
        einsum(subscripts, *arrays[:i], t, *arrays[i + 1 :], optimize=optimize)
        for i, t in enumerate(tangents)
        if t is not None
    )
    return cast_cotangent(add_terms(terms), out.dtype)


def _einsum_prepare(
    subscripts, *operands, out=None, dtype=None, order="K", casting="safe", optimize=False
):
    """np.einsum, with subscripts as text, or as a list of axes after each operand. ``dtype`` is the
    dtype to which operands are cast.
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    if dtype is not None:
        operands = tuple([_cast_operand(x, dtype, casting) for x in operands])
    return operands, {"subscripts": subscripts, "optimize": _as_order(optimize)}


def _as_order(optimize):
    """``optimize`` as an attribute: a bool, the name of a strategy, or a path as a tuple."""
    if isinstance(optimize, list | tuple):
        return tuple([tuple(step) if isinstance(step, list) else step for step in optimize])
    return optimize if isinstance(optimize, str) else bool(optimize)


def _cast_operand(x, dtype, casting: Any) -> Any:
    """An operand cast to ``dtype``. Raises a TypeError if ``casting`` forbids it."""
    if isinstance(x, Value):
        return PRIMITIVES["cast"](x, dtype, casting=casting)
    return np.asarray(x).astype(dtype, casting=casting)


def _from_lists(operands) -> tuple[str, tuple]:
    """(subscripts, operands) for a call such as ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""
    # if the number of arguments is odd, the last one is the list of the result
    arrays, lists = operands[: len(operands) // 2 * 2 : 2], operands[1::2]
    part_texts = [_part_text(part) for part in lists]
    return ",".join(part_texts) + (
        "->" + _part_text(operands[-1]) if len(operands) % 2 else ""
    ), tuple(arrays)


def _part_text(part) -> str:
    """One list of axes as letters."""
    # capitals first: where no result is given, labels are sorted as NumPy sorts the numbers
    letters = string.ascii_uppercase + string.ascii_lowercase
    return "".join("..." if axis is Ellipsis else letters[axis] for axis in part)


def _einsum_views(x, *others, subscripts, **_) -> bool:
    """Whether an einsum of one array sums over no axis: a transpose or a diagonal, and so a
    view.
    """
    labels, arrow, result = subscripts.replace(" ", "").partition("->")
    return not others and bool(arrow) and set(labels) == set(result)


def _einsum_work(result, *arrays, subscripts, optimize):
    """The operations of one sum over all labels: each term has as many as it has factors."""
    labels, _ = parse_subscripts(subscripts, [x.ndim for x in arrays])
    count = len(arrays) * math.prod(_label_sizes(labels, [x.shape for x in arrays]).values())
    return None if optimize and len(arrays) > 2 else count  # depends on the path


einsum = define(
    "einsum",
    lambda xp, *xs, subscripts, optimize=False: xp.einsum(subscripts, *xs, optimize=optimize),
    _einsum_aval,
    vjp=_einsum_vjp,
    jvp=_einsum_jvp,
    prepare=_einsum_prepare,
    numpy=(np.einsum,),
    batch=batched_einsum(parse_subscripts),
    onnx="Einsum",
    source=arrays.einsum,
    memory="may_alias",
    scalar="einsum",
    product="subscripts",
    work=_einsum_work,
    views=_einsum_views,
    write_through="by_place",
)
