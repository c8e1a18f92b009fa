"""Errors for shapes, axes, indices and dtypes that do not match, of the kind that NumPy raises.

Each message has the requested operation, the types found, the let line and the user's line (NN).
"""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import AxisBoundsError, BoundsError, DTypeError, ShapeError
from tests.each_sample import in_one_test

S = np.float64(2.0)
X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)
KINDS = (IndexError, ValueError, TypeError)

PROGRAMS = {
    "matmul": (lambda m: m @ m, M),
    "matmul of a scalar": (lambda m: m @ m[0, 0], M),
    "add": (lambda x: x + np.ones(4), X),
    "where": (lambda x: np.where(x > 1, x, np.ones(2)), X),
    "dot": (lambda x: np.dot(x, np.ones(4)), X),
    "einsum": (lambda m: np.einsum("ij,jk->ik", m, m), M),
    "einsum operands": (lambda m: np.einsum("ij,jk->ik", m), M),
    "reshape": (lambda x: x.reshape(2, 2), X),
    "two unknown sizes": (lambda x: x.reshape(-1, -1), X),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4,)), X),
    "squeeze": (lambda x: np.squeeze(x, 0), X),
    "concatenate": (lambda x: np.concatenate([x, np.ones((2, 2))]), X),
    "concatenate scalars": (lambda x: np.concatenate([x[0], x[1]]), X),
    "stack": (lambda x: np.stack([x, x[:2]]), X),
    "a ragged list": (lambda x: lnp.array([x, x[:2]]), X),
    "split": (lambda x: np.split(x, 2), X),
    "an axis beyond the last": (lambda m: m.sum(axis=2), M),
    "an axis twice": (lambda m: np.sum(m, axis=(0, 0)), M),
    "axes twice": (lambda m: m.transpose(0, 0), M),
    "too many axes": (lambda m: m.transpose(0, 1, 2), M),
    "the maximum of nothing": (lambda x: x[:0].max(), X),
    "an index beyond the end": (lambda x: x[3], X),
    "too many indices": (lambda x: x[0, 0], X),
    "an index of a scalar": (lambda x: x[0], S),
    "two ellipses": (lambda m: m[..., 0, ...], M),
    "a mask of another shape": (lambda x: x[np.array([True, False])], X),
    "bits of floats": (lambda x: x & 1, X),
}

MESSAGES = {
    "matmul": (
        ShapeError,
        """\
matmul: inner sizes differ, (2, 3) @ (2, 3)
  transpose one of them, or see numpy.einsum
  in matmul(%0, %0)""",
    ),
    "matmul of a scalar": (
        ShapeError,
        """\
matmul: an operand is 0-d, (2, 3) @ ()
  multiply with * instead
  in matmul(%0, %1)""",
    ),
    "add": (
        ShapeError,
        """\
shapes (3,), (4,) do not broadcast: 3 and 4 at axis -1
  sizes at one axis must be equal, or 1: add axes with x[:, None]
  in add(%0, %1)""",
    ),
    "where": (
        ShapeError,
        """\
shapes (3,), (3,), (2,) do not broadcast: 3 and 2 at axis -1
  sizes at one axis must be equal, or 1: add axes with x[:, None]
  in where(%1, %0, %2)""",
    ),
    "dot": (
        ShapeError,
        """\
dot: inner sizes differ, (3,) and (4,)
  transpose one of them: x.T
  in dot(%0, %1)""",
    ),
    "einsum": (
        ShapeError,
        """\
einsum: label 'j' has sizes 3 and 2, shapes [(2, 3), (2, 3)]
  axes of one label must be equally long: rename one label or transpose
  in einsum(%0, %0, subscripts='ij,jk->ik')""",
    ),
    "einsum operands": (
        ShapeError,
        """\
einsum: 'ij,jk->ik' names 2 operands, found 1
  separate one group of labels for each operand by commas
  in einsum(%0, subscripts='ij,jk->ik')""",
    ),
    "reshape": (
        ShapeError,
        """\
reshape: (3,) has 3 elements, (2, 2) has 4
  the number of elements must stay; write -1 for the size that follows
  in reshape(%0, shape=(2, 2))""",
    ),
    "two unknown sizes": (
        ShapeError,
        """\
reshape: (-1, -1) is not a shape; at most one size may be -1
  pass sizes from 0, and -1 once for the rest
  in reshape(%0, shape=(-1, -1))""",
    ),
    "broadcast_to": (
        ShapeError,
        """\
shapes (3,), (4,) do not broadcast: 3 and 4 at axis -1
  sizes at one axis must be equal, or 1: add axes with x[:, None]
  in broadcast_to(%0, shape=(4,))""",
    ),
    "squeeze": (
        ShapeError,
        """\
squeeze: axis 0 of (3,) is not of length 1
  leave axis out to squeeze those of length 1, or index it: x[0]
  in squeeze(%0, axis=0)""",
    ),
    "concatenate": (
        ShapeError,
        """\
concatenate: shapes (3,), (2, 2) differ in axes other than 0
  the arrays may differ in size along that axis only: choose another, or use stack
  in concatenate(%0, %1)""",
    ),
    "concatenate scalars": (
        ShapeError,
        """\
concatenate: 0-d arrays cannot be concatenated; use stack
  or make them vectors: np.atleast_1d(x)
  in concatenate(%1, %2)""",
    ),
    "stack": (
        ShapeError,
        """\
stack: all arrays must have one shape, found (3,), (2,)
  pad or broadcast them to one shape, or use concatenate
  in stack(%0, %1)""",
    ),
    "a ragged list": (
        ShapeError,
        """\
stack: all arrays must have one shape, found (3,), (2,)
  pad or broadcast them to one shape, or use concatenate
  in stack(%0, %1)""",
    ),
    "split": (
        ShapeError,
        """\
split: 2 equal sections do not divide an axis of 3; see array_split
  or pass the places at which to split
  in split(%0, sections=2)""",
    ),
    "an axis beyond the last": (
        AxisBoundsError,
        """\
axis 2 is out of bounds for array of dimension 2
  count axes from 0, or from -1 for the last one
  in sum(%0, axis=2)""",
    ),
    "an axis twice": (
        ShapeError,
        """\
axes (0, 0) name an axis twice, of an array with 2 axes
  name each axis once
  in sum(%0, axis=(0, 0))""",
    ),
    "axes twice": (
        ShapeError,
        """\
axes (0, 0) name an axis twice, of an array with 2 axes
  name each axis once
  in transpose(%0, axes=(0, 0))""",
    ),
    "too many axes": (
        AxisBoundsError,
        """\
axis 2 is out of bounds for array of dimension 2
  count axes from 0, or from -1 for the last one
  in transpose(%0, axes=(0, 1, 2))""",
    ),
    "the maximum of nothing": (
        ShapeError,
        """\
the extremum of an empty axis of (0,) has no value: give initial=
  or reduce over an axis with elements
  in max(%1)""",
    ),
    "an index beyond the end": (
        BoundsError,
        """\
index 3 is out of bounds for axis 0 with size 3
  valid indices are below the size; negative ones count from the end
  in index(%0, item=3)""",
    ),
    "too many indices": (
        BoundsError,
        """\
too many indices: 2 for an array of shape (3,)
  leave indices out, or add axes with x[:, None]
  in index(%0, item=(0, 0))""",
    ),
    "an index of a scalar": (
        BoundsError,
        """\
too many indices: 1 for an array of shape ()
  leave indices out, or add axes with x[:, None]
  in index(%0, item=0)""",
    ),
    "two ellipses": (
        BoundsError,
        """\
an index can only have one ellipsis
  write : for each further axis
  in index(%0, item=(..., 0, ...))""",
    ),
    "a mask of another shape": (
        BoundsError,
        """\
a mask of shape (2,) does not fit (3,) from axis 0
  a mask has the sizes of the axes that it selects from
  in index(%0, %1, item=@1)""",
    ),
    "bits of floats": (
        DTypeError,
        "bitwise_and does not take operands of types float64[3], int64*[]: "
        "ufunc 'bitwise_and' not supported for the input types, and the inputs could not be "
        "safely coerced to any supported types according to the casting rule ''safe''\n"
        "  convert an operand with .astype\n"
        "  in bitwise_and(%0, 1)",
    ),
}


@in_one_test
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_message_names_the_mismatch(told, name):
    error, message = MESSAGES[name]

    assert (error, f"{message}\n  at test_wrong_shapes.py:NN") == told(*PROGRAMS[name])


@in_one_test
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_is_of_the_kind_that_numpy_raises(name):
    program, argument = PROGRAMS[name]

    with pytest.raises(KINDS) as plain:
        program(argument)
    with pytest.raises(lt.LetirError) as recorded:
        lt.trace(program, argument)

    assert any(isinstance(plain.value, k) and isinstance(recorded.value, k) for k in KINDS)


# ---- errors raised in letir/ops ----

AWAITED = {
    "a float index": lambda x: x[1.5],
    "a string index": lambda x: x["a"],
    "a float slice": lambda x: x[1.0:],
    "an index array of floats": lambda x: x[x],
    "index arrays that do not broadcast": lambda x: x[None][[0, 0], [0, 1, 2]],
    "a float axis": lambda x: x.sum(axis=0.0),
    "a string axis": lambda x: np.sum(x, axis="a"),
    "a float size": lambda x: x.reshape(3.0),
    "None": lambda x: np.add(x, None),
}


@pytest.mark.parametrize("name", AWAITED)
def test_the_error_of_a_wrong_index_or_axis_is_of_the_kind_that_numpy_raises(name):
    with pytest.raises(KINDS) as plain:
        AWAITED[name](X)
    with pytest.raises(lt.LetirError) as recorded:
        lt.trace(AWAITED[name], X)

    assert any(isinstance(plain.value, k) and isinstance(recorded.value, k) for k in KINDS)
