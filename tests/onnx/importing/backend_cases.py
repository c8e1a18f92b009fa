"""The test cases that come with the package onnx, and those that letir does not run."""

import pickle
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from letir.kernels.llvm.object_cache import cached_code

DTYPES = frozenset(
    [
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    ]
)
_REFUSED = {  # why letir refuses a case -> names of cases on dense arrays
    "decodes an image file": [
        f"test_image_decoder_decode_{kind}"
        for kind in ("jpeg_bgr", "jpeg_grayscale", *(f"{k}_rgb" for k in ("jpeg", "jpeg2k")))
    ]
    + [f"test_image_decoder_decode_{k}_rgb" for k in ("bmp", "png", "pnm", "tiff", "webp")],
    "draws random numbers": [
        *(f"test_bernoulli{kind}" for kind in ("", "_double", "_seed")),
        *(f"test_bernoulli{kind}_expanded" for kind in ("", "_double", "_seed")),
        *("test_training_dropout", "test_training_dropout_default"),
        *("test_training_dropout_mask", "test_training_dropout_default_mask"),
    ],
}
UNSUPPORTED = {name: reason for reason, names in _REFUSED.items() for name in names}


class Case:
    """A model, its inputs and expected outputs."""

    def __init__(self, name, model, rows, rtol, atol):
        self.name, self.model, self.rows = name, model, rows
        self.rtol, self.atol = rtol, atol

    def is_dense(self) -> bool:
        """Whether all inputs and outputs are arrays of the dtypes that letir computes with."""
        values = self._values()
        return bool(values) and not self._is_training() and all(map(_is_supported, values))

    def has_sequences(self) -> bool:
        """Whether some inputs or outputs are sequences of such arrays, or empty optionals."""
        parts = [x if isinstance(x, list) else [x] for x in self._values()]
        arrays = [array for part in parts for array in part if array is not None]
        is_other = any(isinstance(x, list) or x is None for x in self._values())
        return is_other and not self._is_training() and all(map(_is_supported, arrays))

    def _values(self) -> list:
        return [value for row in self.rows for part in row for value in part]

    def _is_training(self) -> bool:
        return any("training" in x.domain for x in self.model.opset_import)


def _is_supported(value) -> bool:
    """Whether a value is an array of a supported dtype."""
    return isinstance(value, np.ndarray | np.generic) and value.dtype.name in DTYPES


def node_cases() -> Iterator[Case]:
    """The cases of single operators.

    The package computes them, which takes ten seconds: they are kept beside compiled kernels.
    """
    key = ("cases of operators", onnx.__version__, np.__version__, sys.version)
    for case in pickle.loads(cached_code(key, _made_node_cases)):
        yield Case(*case)


def _made_node_cases() -> bytes:
    """The arguments of the cases, pickled."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return pickle.dumps([(x.name, x.model, x.data_sets or [], x.rtol, x.atol) for x in found])


def stored_cases() -> Iterator[Case]:
    """The cases of small models, which the package holds as files."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for path in sorted((folder / kind).glob("*/model.onnx")):
            model = onnx.load(path)
            rows = [_stored_row(data, model) for data in sorted(path.parent.glob("test_data*"))]
            yield Case(path.parent.name, model, rows, 1e-3, 1e-7)


def _stored_row(folder: Path, model) -> tuple[list, list]:
    """(inputs, outputs) in a folder; None in place of a sequence."""
    found = []
    for part, declared in (("input", model.graph.input), ("output", model.graph.output)):
        files = [folder / f"{part}_{i}.pb" for i in range(len(list(folder.glob(f"{part}_*.pb"))))]
        pairs = zip(files, declared, strict=False)
        found.append([_stored_array(file, value.type) for file, value in pairs])
    return found[0], found[1]


def _stored_array(file: Path, kind):
    """The array in a file; None for a sequence."""
    if kind.WhichOneof("value") != "tensor_type":
        return None
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
