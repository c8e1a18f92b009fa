"""What a plan is made for: ``ArgumentSpec``, and the short key of a call of arrays in a row [F1].

Of an array its dtype, shape, and whether it is C-contiguous; of a Python number its type; of a
Variable whether it requires grad; of a static value the value with its type.
"""

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from letir.ast.attrs import token
from letir.ast.trees import flatten
from letir.eager.modes import RECORDS
from letir.eval.arrays import type_of
from letir.tracing.recording import StaticLeaf

NUMBERS = frozenset([int, float, complex])


def key_of_arrays(args: tuple) -> tuple | None:
    """What a plan depends on for arrays and numbers in a row; None if there is anything else."""
    key: list = []
    add, ndarray = key.append, np.ndarray
    for arg in args:
        kind = type(arg)
        if kind is ndarray:
            add(arg.dtype)
            add(arg.shape)
            add(arg.flags.c_contiguous)
        elif kind is float or kind is int or kind is complex:
            add(kind)
        else:
            return None
    return tuple(key)


@frozen
class ArraySpec:
    """What is known of one argument.

    ``kind``: its type; ``requires_grad``: whether a gradient flows to it, here and now.
    """

    kind: object
    contiguous: bool
    requires_grad: bool = False
    holder: type = np.ndarray

    @classmethod
    def of(cls, leaf) -> "ArraySpec":
        """That of an argument. Raises DTypeError for what is no array of numbers [B11]."""
        holder = type(leaf)
        is_variable = hasattr(holder, "__letir_run__")
        array = leaf.array if is_variable else leaf
        kind = type_of(array)
        flags = getattr(array, "flags", None)
        contiguous = flags is None or bool(flags.c_contiguous)
        requires = is_variable and leaf.requires_grad and RECORDS.get()
        return cls(kind, contiguous, requires, holder)


@frozen
class StaticSpec:
    """A static argument: equal to another if the type and the value are."""

    token: object = field()
    value: object = field(eq=False)


@frozen(eq=False)
class ArgumentSpec:
    """What a plan is made for: how arguments nest, and what is known of each.

    Its hash is computed once, where it is made.
    """

    tree: object
    leaves: tuple
    digest: int = field(init=False)

    def __attrs_post_init__(self):
        object.__setattr__(self, "digest", hash((self.tree, self.leaves)))

    @classmethod
    def of(cls, args: tuple, kwargs: dict) -> tuple["ArgumentSpec", list]:
        """(the spec of arguments in which static ones are marked, the arrays among them)."""
        leaves, tree = flatten((args, kwargs))
        specs, arrays = [], []
        for leaf in leaves:
            if type(leaf) is StaticLeaf:
                specs.append(StaticSpec(token(leaf.value), leaf.value))
            elif type(leaf) in (bool, str):
                specs.append(StaticSpec(token(leaf), leaf))
            else:
                specs.append(ArraySpec.of(leaf))
                arrays.append(leaf)
        return cls(tree, tuple(specs)), arrays

    @property
    def arrays(self) -> Sequence[ArraySpec]:
        """Those of the arguments that are not static."""
        return [leaf for leaf in self.leaves if type(leaf) is ArraySpec]

    def __eq__(self, other):
        if type(other) is not ArgumentSpec:
            return NotImplemented
        return self.digest == other.digest and (
            (self.tree, self.leaves) == (other.tree, other.leaves)
        )

    def __hash__(self):
        return self.digest
