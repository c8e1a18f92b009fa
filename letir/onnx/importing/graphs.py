"""Runs a graph node by node on known and traced values, which records it as a program.

A ``Runner`` holds what all graphs of a model share; a ``Frame`` the values of one graph, of a body
in it, or of a function.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import Factory, define, frozen

from letir.ast import LATE_BOUND, WATCHED
from letir.ast.bodies import bodies_of
from letir.ast.terms import Source
from letir.ast.types import Size
from letir.errors import LetirError, MissingRule, ParseError, ShapeError, TraceError
from letir.onnx.importing.declared_types import check_call, schema_of, type_proto
from letir.onnx.importing.operator_table import ON_SIZES, OPERATORS, SHAPE_OPERATORS
from letir.onnx.importing.tensors import array_of_tensor
from letir.onnx.importing.values import (
    NeedsConstant,
    as_array,
    as_traced,
    is_known,
    is_shape,
    model_trace,
    vector_of_sizes,
)
from letir.onnx.package import onnx_package
from letir.tracing.tracer import Tracer

MAX_NODES = 10_000  # runs of nodes in repeated bodies and in functions
_MAX_WORK = 1 << 26  # the product of the sizes of arrays that are combined while loading
_MAX_ELEMENTS, _MAX_ALONG_AN_AXIS = 1 << 40, 1 << 26
_MAX_DEPTH = 40  # levels of functions that call functions
_MAX_CHARACTERS = 60  # of the name of a node in a comment


@frozen(eq=False)
class Frame:
    """The values of a graph by name; ``outer``: the frame of the graph around a body.

    ``attrs``: the attributes of the function's call; ``versions``: the version of each domain.
    """

    versions: Mapping[str, int]
    outer: "Frame | None" = None
    attrs: Mapping[str, Any] = Factory(dict)
    values: dict[str, Any] = Factory(dict)
    depth: int = 0

    def look_up(self, name: str) -> Any:
        """The value of a name. Raises ParseError if no earlier node has computed it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.outer
        raise ParseError(
            f"{name!r} is neither an input of the graph nor computed before its use: the "
            "nodes are in a cycle or out of order, or the name is wrong\n  run onnx.checker"
        )

    def enter(self, name: str, value: Any) -> None:
        """Give a value its name. Raises ParseError if the name has one."""
        if name in self.values:
            raise ParseError(f"{name!r} is computed twice\n  each name is the result of one node")
        self.values[name] = value


@frozen(eq=False)
class BodyGraph:
    """A graph in an attribute, as a function of its inputs that sees the names around it."""

    runner: "Runner"
    graph: Any
    frame: Frame

    @property
    def output_count(self) -> int:
        """The number of outputs."""
        return len(self.graph.output)

    @property
    def has_bodies(self) -> bool:
        """Whether a node has a body itself, or is a function of the model."""
        return any(
            (node.domain, node.op_type, node.overload) in self.runner.functions
            or any(attribute.HasField("g") for attribute in node.attribute)
            for node in self.graph.node
        )

    def __call__(self, *inputs: Any) -> list:
        """The outputs."""
        if len(inputs) != len(self.graph.input):
            raise ParseError(
                f"the body {self.graph.name!r} takes {len(self.graph.input)} inputs, but its node "
                f"passes {len(inputs)}\n  declare an input for each of them"
            )
        frame = Frame(self.frame.versions, self.frame, self.frame.attrs, depth=self.frame.depth)
        for declared, value in zip(self.graph.input, inputs, strict=True):
            frame.enter(declared.name, value)
        return self.runner.run_graph(self.graph, frame)


@define(eq=False)
class Runner:
    """Runs the graphs of one model.

    ``functions``: {(domain, name, overload): function}; ``file``: the name of the model in source
    locations; ``folder``: where external data may be read.
    """

    functions: Mapping[tuple[str, str, str], Any]
    file: str
    folder: str | None
    nodes_left: int
    place: int = 0  # the position of the current node in the main graph, from 1

    def run_graph(self, graph: Any, frame: Frame, is_main: bool = False) -> list:
        """The outputs of a graph whose inputs have values in ``frame``."""
        for tensor in graph.initializer:
            if tensor.name not in frame.values:
                frame.enter(tensor.name, array_of_tensor(tensor, self.folder))
        nodes = LATE_BOUND["count_items"](graph.node) if WATCHED and is_main else graph.node
        for place, node in enumerate(nodes, 1):
            self.place = place if is_main else self.place
            self.run_node(node, frame)
        return [frame.look_up(result.name) for result in graph.output]

    def run_node(self, node: Any, frame: Frame) -> None:
        """Run a node and give its results their names."""
        self.count_node()
        start = len(model_trace().binds)
        try:
            inputs = [frame.look_up(name) if name else None for name in node.input]
            results = self._results(node, inputs, frame)
            names = list(node.output)
            if len(results) < len(names):
                raise ParseError(
                    f"the operator has {len(results)} results, but the node names {len(names)}\n"
                    "  name no more outputs than the operator has"
                )
            for name, value in zip(names, results, strict=False):
                if name:
                    refuse_huge(name, getattr(value, "shape", ()))
                    frame.enter(name, value)
            self._place_binds(node, start, results)
        except (NeedsConstant, RecursionError):
            raise
        except LetirError as error:
            _note_node(error, node)
            raise
        except MemoryError:
            raise ParseError(
                f"{_describe_node(node)}: its result does not fit into memory"
            ) from None
        except Exception as error:
            raise ParseError(
                f"{_describe_node(node)}: {type(error).__name__}: {error}\n"
                "  its inputs or attributes do not fit the operator"
            ) from error

    def count_node(self) -> None:
        """Count a node or an iteration that is run. Raises ParseError after too many."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise ParseError(
                "the model runs too many nodes of functions and bodies\n"
                "  its functions repeat each other, or a loop that cannot be recorded is too long"
            )

    def _results(self, node: Any, inputs: list, frame: Frame) -> list:
        """The results of a node."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        attrs = {a.name: self._attribute(a, frame) for a in node.attribute}
        attrs = {name: value for name, value in attrs.items() if value is not None}
        function = self.functions.get((domain, node.op_type, node.overload))
        if function is not None:
            return self.run_function(function, inputs, attrs, frame, node)
        if domain not in frame.versions:
            raise ParseError(
                f"the model does not declare the operators of domain {domain!r}\n"
                "  add it to opset_import"
            )
        version = frame.versions[domain]
        schema = schema_of(domain, node.op_type, version)
        if schema is None:
            raise MissingRule(
                f"{node.op_type!r} is not an operator of ONNX's domain {domain or 'ai.onnx'!r} in "
                f"version {version}, and no function of the model\n"
                "  add a function of this name to the model, or replace the node"
            )
        check_call(schema, inputs, attrs)
        entry = _operator(domain, node.op_type, version)
        if entry is None:
            function = _schema_function(schema, node, inputs, version)
            return self.run_function(function, inputs, _with_defaults(schema, attrs), frame, node)
        run, extras = entry
        has_sizes = any(map(is_shape, inputs)) and all(type(x) is np.ndarray for x in inputs)
        if has_sizes and node.op_type in ON_SIZES and not domain:
            # NumPy gives a bare element in place of an array without axes
            computed = ON_SIZES[node.op_type](*inputs, **attrs)
            is_bare = type(computed) in (Size, int)
            return [vector_of_sizes([computed]).reshape(()) if is_bare else computed]
        if node.op_type not in SHAPE_OPERATORS or domain:
            inputs = [as_array(value) for value in inputs]
        if _is_large(inputs):
            inputs = [as_traced(x) if type(x) is np.ndarray else x for x in inputs]
        options = {"opset": version, "outputs": len(node.output)}
        results = run(*inputs, **attrs, **{name: options[name] for name in extras})
        results = list(results) if type(results) is tuple else [results]
        return [np.asarray(x) if issubclass(type(x), np.generic) else x for x in results]

    def run_function(
        self, function: Any, inputs: list, attrs: dict, caller: Frame, node: Any
    ) -> list:
        """The outputs of a function that a node names."""
        depth = caller.depth
        if depth >= _MAX_DEPTH:
            raise ParseError(
                f"functions call each other more than {_MAX_DEPTH} deep, at {function.name!r}\n"
                "  a function cannot call itself"
            )
        defaults = {a.name: self._attribute(a, None) for a in function.attribute_proto}
        versions = {**caller.versions, **versions_of(function.opset_import)}
        frame = Frame(versions, None, {**defaults, **attrs}, depth=depth + 1)
        if len(inputs) > len(function.input):
            raise ParseError(
                f"the function {function.name!r} takes {len(function.input)} inputs, but its node "
                f"passes {len(inputs)}\n  pass no more inputs than the function declares"
            )
        for place, name in enumerate(function.input):
            frame.enter(name, inputs[place] if place < len(inputs) else None)
        for inner in function.node:
            self.run_node(inner, frame)
        pairs = zip(function.output, node.output, strict=False)  # other outputs are not needed
        return [frame.look_up(name) if is_needed else None for name, is_needed in pairs]

    def _attribute(self, attribute: Any, frame: Frame | None) -> Any:
        """The value of an attribute; None for one that the function's call leaves out."""
        onnx = onnx_package()
        if attribute.ref_attr_name:
            return None if frame is None else frame.attrs.get(attribute.ref_attr_name)
        kinds, kind = onnx.AttributeProto, attribute.type
        if kind == kinds.TENSOR:
            return array_of_tensor(attribute.t, self.folder)
        if kind == kinds.GRAPH:
            return BodyGraph(self, attribute.g, frame)
        if kind in (kinds.FLOAT, kinds.INT, kinds.FLOATS, kinds.INTS, kinds.STRING, kinds.STRINGS):
            value = onnx.helper.get_attribute_value(attribute)
            if kind == kinds.STRING:
                return value.decode()
            if kind == kinds.STRINGS:
                return [text.decode() for text in value]
            return list(value) if kind in (kinds.FLOATS, kinds.INTS) else value
        if kind == kinds.TYPE_PROTO:
            return attribute.tp
        if kind == kinds.TENSORS:
            return [array_of_tensor(tensor, self.folder) for tensor in attribute.tensors]
        raise MissingRule(
            f"the attribute {attribute.name!r} has type {kinds.AttributeType.Name(kind)}, which "
            "letir does not read"
        )

    def _place_binds(self, node: Any, start: int, results: list) -> None:
        """Give the binds that a node has recorded its location, and the names of its results."""
        shown = re.sub(r"[^\w./:+-]", "_", node.name or node.op_type)[:_MAX_CHARACTERS]
        source = Source(self.file, self.place, None, shown)
        binds = model_trace().binds[start:]
        binders = {local for bind in binds for local in bind.binders}
        while binds:
            bind = binds.pop()
            # not recorded by an inner node
            if bind.source is None or bind.source.file != self.file:
                bind.source = source
                for local in bind.binders:
                    local.name = None
                binds += [inner for body in bodies_of(bind) for inner in body.binds]
        for name, value in zip(node.output, results, strict=False):
            if name and type(value) is Tracer and value.arg in binders:
                value.arg.name = readable_name(name)


def versions_of(imports: Any) -> dict[str, int]:
    """The version of each domain of operators. Raises ParseError for one that is not known."""
    onnx = onnx_package()
    newest = onnx.defs.onnx_opset_version()
    result = {}
    for declared in imports:
        domain = "" if declared.domain == "ai.onnx" else declared.domain
        if declared.version < 1 or (not domain and declared.version > newest):
            raise ParseError(
                f"the model uses version {declared.version} of the operators of "
                f"{domain or 'ai.onnx'!r}, but the installed onnx knows 1 to {newest}\n"
                "  upgrade the package onnx, or convert the model with onnx.version_converter"
            )
        result[domain] = declared.version
    return result


@lru_cache(maxsize=1024)
def _operator(domain: str, name: str, version: int) -> tuple[Callable, tuple[str, ...]] | None:
    """(the function of an operator, which of the options ``opset`` and ``outputs`` it takes)."""
    run = OPERATORS.get((domain, name))
    if run is None:
        return None
    takes: Any = () if isinstance(run, np.ufunc) else inspect.signature(run).parameters
    return run, tuple(name for name in ("opset", "outputs") if name in takes)


def _schema_function(schema: Any, node: Any, inputs: list, version: int) -> Any:
    """The function that ONNX defines for an operator. Raises MissingRule if there is none."""
    onnx = onnx_package()
    if schema.has_function:
        return schema.function_body
    if schema.has_context_dependent_function:
        kinds = [type_proto(value).SerializeToString() for value in inputs]
        usable = [n for n in schema.context_dependent_function_opset_versions if n <= version]
        chosen = max(usable, default=version)
        text = schema.get_context_dependent_function_with_opset_version(
            chosen, node.SerializeToString(), kinds
        )
        function = onnx.FunctionProto.FromString(text)
        if function.node:
            return function
    raise MissingRule(
        f"letir.onnx.load does not support the operator {node.op_type!r}\n"
        "  add a function of this name to the model, or replace the node"
    )


def _with_defaults(schema: Any, attrs: dict) -> dict:
    """The attributes with the schema's defaults."""
    onnx = onnx_package()
    defaults = {
        name: onnx.helper.get_attribute_value(declared.default_value)
        for name, declared in schema.attributes.items()
        if declared.default_value.name
    }
    texts = {k: v.decode() if isinstance(v, bytes) else v for k, v in defaults.items()}
    return {**texts, **attrs}


def _is_large(inputs: list) -> bool:
    """Whether known arrays are too large to be combined while the model is loaded."""
    sizes = [x.size for x in inputs if type(x) is np.ndarray]
    if len(sizes) < 2 or not is_known(list(inputs)):
        return bool(sizes) and is_known(list(inputs)) and sizes[0] > _MAX_WORK
    work = 1
    for n in sizes:
        work *= max(n, 1)
    return work > _MAX_WORK


def refuse_huge(name: str, shape: Sequence) -> None:
    """Raise ShapeError for an array that does not fit into any memory, or an axis that is too long.

    Operators on indices make vectors of the positions along an axis while they are recorded.
    """
    numbers = [n for n in shape if type(n) is int]
    if math.prod(numbers) > _MAX_ELEMENTS or max(numbers, default=0) > _MAX_ALONG_AN_AXIS:
        raise ShapeError(
            f"{name!r} has the shape {tuple(shape)}: over {_MAX_ALONG_AN_AXIS} elements along "
            f"an axis, or {_MAX_ELEMENTS} in all\n  check the sizes that the model computes"
        )


def readable_name(name: str) -> str | None:
    """A name of the model in the characters that names of locals have."""
    word = re.sub(r"\W+", "_", name).strip("_")
    return f"v{word}" if word[:1].isdigit() else word or None


def _describe_node(node: Any) -> str:
    """The node in an error message."""
    return f"node {node.name!r} ({node.op_type})" if node.name else f"a node {node.op_type}"


def _note_node(error: LetirError, node: Any) -> None:
    """Add the node to an error, once."""
    if not any(note.startswith("letir.onnx: ") for note in getattr(error, "__notes__", ())):
        outputs = ", ".join(list(node.output)[:3])
        error.add_note(f"letir.onnx: in {_describe_node(node)} that makes {outputs}")
        if isinstance(error, TraceError) and "letir.onnx.load" not in str(error):
            error.add_note("letir.onnx: example inputs give the values: load(model, args=(...))")
