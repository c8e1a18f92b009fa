"""``PythonProtocols``: what Python asks of the numbers for which traced values stand.

Numbers that are computed are recorded: ``item``, ``tolist``, ``round``. What has to be an ordinary
number, such as a hash, is asked of integers, at the price of a guard.
"""

from collections import OrderedDict
from copy import copy
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES
from letir.errors import TraceError
from letir.tracing.numpy_protocols.array_value import ArrayValue
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user

_OF_INTEGERS = ("bit_length", "bit_count", "to_bytes", "as_integer_ratio")


class PythonProtocols(ArrayValue):
    """The protocols of Python's numbers, for traced values."""

    __slots__ = ()
    paused: Any
    refused: Any

    def is_integer_scalar(self) -> bool:
        """Whether Python or NumPy would have an integer or a boolean here."""
        return self.dtype.kind in "iub" and not self.shape and self.is_scalar()

    def __hash__(self):
        if self.is_integer_scalar():
            found = hash(int(self))
            vars(self.emitter)["has_keys"] = True  # among the results a dict may have it as a key
            return found
        error = TypeError(
            f"unhashable type: a traced value cannot be in a set or the key of a dict{at_user()}\n"
            "  use its name or place as the key; cache by letir.concrete(x)"
        )
        # TypeError, as for arrays, so that `except TypeError` fallbacks behave as with NumPy
        raise note_refusal(error) if self.is_scalar() else error

    def __format__(self, spec):
        if spec or self.is_integer_scalar():
            return LATE_BOUND["formatted"](self, spec)
        return repr(self)

    def __str__(self):
        return LATE_BOUND["text_of_integer"](self) if self.is_integer_scalar() else repr(self)

    def __getattr__(self, name):
        if name in _OF_INTEGERS and self.is_integer_scalar():
            return getattr(int(self), name)
        if name in ("numerator", "denominator") and self.is_integer_scalar():
            return self if name == "numerator" else 1
        if name == "is_integer" and not self.shape and self.is_scalar():
            return self._is_whole
        return super().__getattr__(name)

    def _is_whole(self) -> bool:
        """``is_integer()``, at the price of a guard."""
        return self.dtype.kind != "f" or bool(np.isfinite(self) & (np.floor(self) == self))

    def as_integer_ratio(self) -> Any:
        """The ratio of an integer, with a guard; refused for floats, like ``float()``."""
        if self.is_integer_scalar():
            return int(self), 1
        if (value := self.paused()) is not None:
            return value.as_integer_ratio()
        raise self.refused("as_integer_ratio()", "compute with numpy's functions")

    def __pow__(self, other, modulus=None):
        if modulus is None:
            return ArrayValue.__pow__(self, other)
        if not self.type.weak:
            return NotImplemented  # as NumPy's numbers have it
        return pow(int(self), int(other), int(modulus))

    def __round__(self, ndigits=None):
        kind = self.dtype.kind
        if not self.is_scalar() or kind not in "iuf":
            raise TypeError(f"{self.type} has no __round__; see numpy.rint")
        if ndigits is None:
            return int(np.rint(self)) if kind == "f" else int(self)
        if not self.type.weak:
            return np.round(self, ndigits)
        result = "float" if kind == "f" else "int"
        return PRIMITIVES["python_operator"](self, int(ndigits), operator="round", kind=result)

    # ---- elements as Python numbers ----

    def item(self, *args: Any) -> Any:
        """NumPy's ``item``: an element as a traced Python number; a guard for a single integer."""
        if (value := self.paused()) is not None:
            return value.item(*args)
        if self.dtype.kind in "iub" and not args and self.size == 1:
            return bool(self) if self.dtype.kind == "b" else int(self)
        if self.type.weak:
            return self
        if args:
            place = args[0] if len(args) == 1 else args
            element = self[place] if isinstance(place, tuple) else self.reshape(-1)[place]
        elif self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        else:
            element = self.reshape(()) if self.shape else self
        return weaken_result(element)

    def tolist(self) -> Any:
        """NumPy's ``tolist``: nested lists of traced Python numbers."""
        if (value := self.paused()) is not None:
            return value.tolist()
        if not self.shape:
            return self if self.type.weak else weaken_result(self)
        if not all(type(n) is int for n in self.shape):
            raise note_refusal(
                TraceError(
                    f"tolist() of {self.type}: the size of a list cannot be symbolic{at_user()}\n"
                    "  compute with the array"
                )
            )
        return [self[i].tolist() for i in range(self.shape[0])]


def with_known_keys(tree: Any) -> Any:
    """Nested results in which keys of dicts are numbers: traced ones were guarded when hashed."""
    kind: Any = type(tree)
    if kind in (list, tuple):
        return kind([with_known_keys(item) for item in tree])
    if issubclass(kind, dict):
        items = [(_known_key(key), with_known_keys(item)) for key, item in tree.items()]
        if kind in (dict, OrderedDict):
            return kind(items)
        known = copy(tree)  # a defaultdict keeps its factory
        known.clear()
        known.update(items)
        return known
    return tree


def _known_key(key: Any) -> Any:
    if not isinstance(key, ArrayValue) or not key.is_integer_scalar():
        return key
    number = bool(key) if key.dtype.kind == "b" else int(key)
    return number if key.type.weak else key.dtype.type(number)


LATE_BOUND["with_known_keys"] = with_known_keys
