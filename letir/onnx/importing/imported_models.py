"""``load``: the program of an ONNX model.

The graph is run on traced values, like any recorded function. Values that depend on constants alone
are computed while the model is loaded.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import entry_point, with_progress_bar
from letir.ast.process_state import float_errors
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import DTypeError, ParseError
from letir.eval.arguments import names_and_tree
from letir.onnx.importing.graphs import MAX_NODES, Frame, Runner, readable_name, versions_of
from letir.onnx.importing.input_types import checked_examples, declared_arguments
from letir.onnx.importing.tensors import array_of_sparse, array_of_tensor
from letir.onnx.importing.values import WEIGHTS, NeedsConstant, as_array
from letir.onnx.package import onnx_package
from letir.passes.dead_code_elimination import dead_code
from letir.tracing.entry import finish_trace, trace_for
from letir.tracing.trace_state import ABSTRACT, EAGER

MAX_BYTES = 1 << 31  # a model file of ONNX cannot be larger


@entry_point
def load(
    model: str | os.PathLike | bytes | Any,
    params: str = "constants",
    *,
    args: Sequence | None = None,
    sizes: Mapping[str, int] | None = None,
    sequence_lengths: Mapping[str, int] | None = None,
) -> Lambda:
    """The program of an ONNX model: a path, an open file, the bytes of a file, or a ModelProto.

    The program takes the inputs of the model in order. ``params``: with ``"constants"`` the weights
    are constants of the program; with ``"inputs"`` floating weights are further parameters, and
    ``weights(model)`` returns their arrays. ``args``: example inputs; sizes and branches that
    depend on their numbers are then fixed by guards. ``sizes``: numbers for named sizes of the
    model; all others stay symbolic. ``sequence_lengths``: the number of elements of each input that
    is a sequence, for which the program takes a list of arrays. Nothing outside of the model's
    folder is read. Raises ParseError for a model that is damaged, MissingRule for an operator that
    is not supported.

    >>> import onnx.parser
    >>> text = '<ir_version: 9, opset_import: ["" : 21]> f (float[n, 2] x) => (float[n, 2] y) '
    >>> f = load(onnx.parser.parse_model(text + "{ h = Mul(x, x)  y = Tanh(h) }"))
    >>> print(f)
    lambda %0:x: float32[n, 2] {
      %1:h: float32[n, 2] = mul(%0, %0)  # f:1: Mul
      %2:y: float32[n, 2] = tanh(%1)  # f:2: Tanh
      return %2
    }
    """
    return _load_with_weights(model, params, args, sizes, sequence_lengths)[0]


@entry_point
def weights(model: str | os.PathLike | bytes | Any) -> dict[str, np.ndarray]:
    """The floating weights of an ONNX model by name.

    They are in the order of the parameters of ``load(model, params="inputs")``, after the inputs.

    >>> import onnx.parser
    >>> text = '<ir_version: 9, opset_import: ["" : 21]> f (float[2] x) => (float[2] y) '
    >>> model = onnx.parser.parse_model(text + "<float[2] w = {3, 4}> { y = Mul(x, w) }")
    >>> weights(model)
    {'w': array([3., 4.], dtype=float32)}
    >>> load(model, params="inputs")(np.ones(2, np.float32), *weights(model).values())
    array([3., 4.], dtype=float32)
    """
    return _load_with_weights(model, "inputs", None, None, None)[1]


@with_progress_bar("importing the model")
def _load_with_weights(
    model: Any, params: str, args: Any, sizes: Any, lengths: Any
) -> tuple[Lambda, dict[str, Any]]:
    """(the program of a model, the weights that are its last parameters)."""
    if params not in ("constants", "inputs"):
        raise DTypeError(
            f"letir.onnx.load: params is 'constants' or 'inputs', found {params!r}\n"
            "  'constants' keeps the weights in the program, 'inputs' makes them parameters"
        )
    proto, file, folder = _read_model(model)
    opened = _Opened.from_proto(proto, file, folder, params == "inputs")
    if args is None:
        examples = declared_arguments(opened.inputs, dict(sizes or {}), dict(lengths or {}))
    else:
        examples = checked_examples(opened.inputs, args)
    while True:
        try:
            return opened.record(examples, EAGER if args is not None else ABSTRACT), opened.weights
        except NeedsConstant as needed:
            opened = opened.with_constant(needed.local.name)


def _read_model(model: Any) -> tuple[Any, str, str | None]:
    """(ModelProto, name for source locations, folder of external data) of a model."""
    onnx = onnx_package()
    if isinstance(model, onnx.ModelProto):
        return model, model.graph.name or "model", None
    file, folder = "model.onnx", None
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(model)
    elif isinstance(model, str | os.PathLike):
        path = os.fspath(model)
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ParseError(
                f"{path} is not a file of an ONNX model: it is not a regular file, or too large"
            )
        with open(path, "rb") as opened:
            data = opened.read()
        file, folder = str(path), os.path.dirname(os.path.abspath(path))
    elif callable(getattr(model, "read", None)):
        data = model.read(MAX_BYTES + 1)
        if not isinstance(data, bytes):
            raise DTypeError("letir.onnx.load: the file is not open for bytes\n  open it with 'rb'")
    else:
        raise DTypeError(
            "letir.onnx.load: expected a path, bytes or an onnx.ModelProto, found "
            f"{type(model).__name__}\n  pass the path of the model's file"
        )
    try:
        return onnx.ModelProto.FromString(data), file, folder
    except Exception as error:
        subject = file if folder is not None else "the content"
        raise ParseError(f"{subject} is not an ONNX model: {error}") from None


@frozen
class _Opened:
    """A model that has been read: its inputs, its weights, and the runner of its graphs."""

    graph: Any
    versions: Mapping[str, int]
    functions: Mapping
    file: str
    folder: str | None
    inputs: tuple  # the ValueInfoProtos of the inputs that are not weights
    constants: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]

    @classmethod
    def from_proto(
        cls, proto: Any, file: str, folder: str | None, lifts_weights: bool
    ) -> "_Opened":
        """The inputs and weights of a model."""
        graph = proto.graph
        if not len(graph.output):
            raise ParseError(f"{file} is not an ONNX model: its graph has no outputs")
        arrays: dict[str, np.ndarray] = {}
        rows: list[Any] = [(tensor.name, array_of_tensor, tensor) for tensor in graph.initializer]
        rows += [(t.values.name, array_of_sparse, t) for t in graph.sparse_initializer]
        for name, read, tensor in rows:
            if name in arrays:
                raise ParseError(f"the weight {name!r} is stored twice\n  the file is damaged")
            arrays[name] = read(tensor, folder)
        weights = {n: x for n, x in arrays.items() if lifts_weights and x.dtype.kind in "fc"}
        functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
        return cls(
            graph,
            versions_of(proto.opset_import),
            functions,
            file,
            folder,
            tuple(declared for declared in graph.input if declared.name not in arrays),
            {name: x for name, x in arrays.items() if name not in weights},
            weights,
        )

    def with_constant(self, local_name: str) -> "_Opened":
        """The same model with a weight as a constant."""
        name = next(name for name in self.weights if readable_name(name) == local_name)
        others = {n: x for n, x in self.weights.items() if n != name}
        constants = {**self.constants, name: self.weights[name]}
        return _Opened(
            *(self.graph, self.versions, self.functions, self.file, self.folder, self.inputs),
            *(constants, others),
        )

    def record(self, examples: list, mode: str) -> Lambda:
        """The program of the graph."""
        names = [declared.name for declared in self.inputs] + list(self.weights)
        leaves, spec = flatten(((*examples, *self.weights.values()), {}))
        shown, tree = names_and_tree([readable_name(name) or "" for name in names], spec)
        is_flat = all(hasattr(example, "shape") for example in examples)
        size = len(self.graph.node) + sum(len(f.node) for f in self.functions.values())
        runner = Runner(self.functions, self.file, self.folder, MAX_NODES + 50 * size)
        frame = Frame(self.versions)
        # overflow and division by zero are allowed in ONNX
        with (
            float_errors(all="ignore"),
            trace_for(leaves, shown, mode) as (new, tracers),
        ):
            new.root = _Opened.record.__code__  # a try around the call catches no step of the model
            WEIGHTS.set(frozenset([x.arg for x in tracers[len(leaves) - len(self.weights) :]]))
            inputs = spec.unflatten(tracers)[0]
            for name, value in [*zip(names, inputs, strict=True), *self.constants.items()]:
                frame.enter(name, value)
            results = runner.run_graph(self.graph, frame, is_main=True)
            results = [
                list(map(as_array, x)) if isinstance(x, list) else as_array(x) for x in results
            ]
            for name, value in self.constants.items():
                if id(value) in new._frozen:  # it is a constant of the program
                    new.constant(value).name = readable_name(name)
            for declared, result in zip(self.graph.output, results, strict=True):
                if result is None:
                    raise ParseError(f"the output {declared.name!r} is an optional without value")
            outputs = results[0] if len(results) == 1 else tuple(results)
            return dead_code(finish_trace(new, outputs, None if is_flat else tree)[0])
