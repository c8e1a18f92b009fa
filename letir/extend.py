"""``letir.extend``: the names for new operations, manual tracing, and programs built by hand.

    primitive, opaque        a new operation, with rules or taken as it is
    never, todo              a rule that cannot exist, or does not exist yet, with the reason
    Primitive, PRIMITIVES    the record of an operation, and the table of all records by name
    LetBuilder, Value        a program built bind by bind
    Node, Input              a graph of operations, see ``letir.to_dag`` and ``letir.from_dag``
    local_of, set_local      the local that a traced value stands for
    Sample, SAMPLES          inputs on which the laws test an operation

See docs/extending.md.
"""

from typing import TYPE_CHECKING

from letir.ast import load_module
from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import Absent, never, todo
from letir.ops.define.user_operations import opaque, primitive
from letir.tracing.manual import local_of, set_local
from letir.visitors.substitution import Input, Node

if TYPE_CHECKING:
    from letir.testing.samples import SAMPLES
    from letir.testing.samples.sample import Sample

__all__ = [
    "PRIMITIVES",
    "SAMPLES",
    "Absent",
    "Input",
    "LetBuilder",
    "Node",
    "Primitive",
    "Sample",
    "Value",
    "local_of",
    "never",
    "opaque",
    "primitive",
    "set_local",
    "todo",
]
_SAMPLES = {"SAMPLES": "letir.testing.samples", "Sample": "letir.testing.samples.sample"}


def __getattr__(name: str):
    # on first use: the samples load every operation there is
    if name in _SAMPLES:
        return getattr(load_module(_SAMPLES[name]), name)
    raise AttributeError(f"module 'letir.extend' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
