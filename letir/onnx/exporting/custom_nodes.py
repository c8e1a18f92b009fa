"""Nodes of a user's own domain, for operations that only Python can compute."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.terms import Bind
from letir.onnx.exporting.node_graph import Graph, Unexportable, tensor_dtype
from letir.onnx.package import onnx_package


def custom_node(g: Graph, bind: Bind, domain: str) -> str | Sequence[str]:
    """A node with the name and the attributes of an operation, without those that are empty."""
    attrs = {name: _node_attribute(name, value) for name, value in bind.attrs.items()}
    name, count = bind.op.name.rpartition(".")[2], len(bind.binders)
    return g(name, *g.operands(bind), results=count, domain=domain, **attrs)


def _node_attribute(name: str, value: Any) -> Any:
    """An attribute of an operation as one of a node; None without elements, or for None.

    Booleans become integers, dtypes ONNX's numbers for them, and arrays tensors. Raises
    Unexportable for a value that no attribute can hold.
    """
    value = value.item() if isinstance(value, np.generic) else value
    row = list(value) if isinstance(value, tuple | list) else [value]
    kinds = set(map(type, row))
    if value is None or not row or (type(value) is str and not value):
        return None
    if kinds <= {int, bool}:
        row = list(map(int, row))
    elif kinds <= {int, bool, float}:
        row = list(map(float, row))
    elif isinstance(value, np.dtype):
        row = [tensor_dtype(value)]
    elif type(value) is np.ndarray:
        row = [onnx_package().numpy_helper.from_array(value)]
    elif kinds != {str}:
        raise Unexportable(f"a node cannot have the attribute {name}={value!r:.60}")
    return row if isinstance(value, tuple | list) else row[0]
