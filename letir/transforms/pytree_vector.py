"""``ravel``: a pytree of arrays as one vector, the form that optimisers and solvers take."""

from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.pytrees import Tree, flatten
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.eval.arguments import is_static
from letir.eval.array_modules import type_of
from letir.ops.define.records import array_dtype
from letir.ops.elementwise.casting import weaken
from letir.ops.shape.concatenate_stack_split import concatenate


@entry_point
def ravel(tree: Any) -> tuple[Any, "Unravel"]:
    """(vector, unravel): the leaves of a pytree concatenated, and the inverse function.

    The dtype of the vector is the one to which NumPy promotes the dtypes of the leaves.
    ``unravel(vector)`` restores the nesting, dtypes and shapes, and Python numbers; it takes
    vectors of the same size and dtype only. Works on arrays and traced values, and both directions
    are differentiable. Strings and bools are not part of the vector.

    >>> vector, unravel = ravel({"x": np.zeros(2), "y": 1.5})
    >>> vector
    array([0. , 0. , 1.5])
    >>> unravel(2 * vector)
    {'x': array([0., 0.]), 'y': 3.0}

    With SciPy: ``scipy.optimize.minimize(value_and_grad(lambda v: f(unravel(v))), vector,
    jac=True)``.
    """
    leaves, spec = flatten(tree)
    parts = tuple([_Part.from_leaf(leaf) for leaf in leaves])
    numbers = [leaf for leaf, part in zip(leaves, parts, strict=True) if part.type is not None]
    avals = [part.type for part in parts if part.type is not None]
    if not numbers:
        return np.zeros(0), Unravel(Tree(spec), parts, ArrayType(float, (0,)))
    dtype = array_dtype(*avals)
    aval = ArrayType(dtype, (sum(aval.size for aval in avals),))
    return concatenate(numbers, axis=None, dtype=dtype), Unravel(Tree(spec), parts, aval)


@frozen(eq=False)
class _Part:
    """A leaf: its type, None for a ``static`` leaf, and whether it is a NumPy scalar."""

    type: ArrayType | None
    is_scalar: bool = False
    static: Any = None

    @classmethod
    def from_leaf(cls, leaf) -> "_Part":
        """The description of ``leaf``."""
        if is_static(leaf):  # static leaves, as in all pytrees of letir
            return cls(None, static=leaf)
        if not isinstance(leaf, Value):
            return cls(type_of(leaf), isinstance(leaf, np.generic))
        if leaf.type is None:
            raise DTypeError(
                "ravel: the size of a traced value is not known\n  trace with concrete arguments"
            )
        return cls(leaf.type)

    def from_slice(self, elements):
        """The leaf made from ``elements``, its slice of the vector."""
        aval = self.type
        # a real leaf among complex ones; astype alone would warn about the imaginary part
        if elements.dtype.kind == "c" and aval.dtype.kind != "c":
            elements = elements.real
        if not isinstance(elements, Value) or elements.dtype != aval.dtype:
            elements = elements.astype(aval.dtype)
        array = elements.reshape(aval.shape)  # a view of the vector if dtypes agree, as in NumPy
        if aval.weak:
            return weaken(array)
        return array[()] if self.is_scalar and not isinstance(array, Value) else array


@frozen(eq=False, repr=False)
class Unravel:
    """The inverse of ``ravel``: from a vector of ``type`` to a pytree nested as ``tree``.

    ``parts``: the leaves, in order.
    """

    tree: Tree
    parts: tuple[_Part, ...]
    type: ArrayType

    def __repr__(self):
        return f"unravel({self.type} -> {self.tree})"

    @entry_point
    def __call__(self, vector: Any) -> Any:
        """The pytree for ``vector``. Raises ShapeError or DTypeError if its type is another."""
        aval = vector.type if isinstance(vector, Value) else type_of(vector)
        if aval is not self.type:  # types are interned
            other = aval is None or aval.shape != self.type.shape
            remedy = (
                "\n  pass one number for each element of the pytree"
                if other
                else f"\n  convert it: vector.astype('{self.type.dtype}')"
            )
            raise (ShapeError if other else DTypeError)(
                f"unravel: a vector of type {self.type} is expected, found {aval}{remedy}"
            )
        leaves, start = [], 0
        for part in self.parts:
            if part.type is None:
                leaves.append(part.static)
            else:
                stop = start + part.type.size
                leaves.append(part.from_slice(vector[start:stop]))
                start = stop
        return self.tree.unflatten(leaves)
