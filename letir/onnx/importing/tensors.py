"""The tensors of a model file as arrays.

Their sizes are checked first, and external data are read from the model's folder only.
"""

import math
import os
import stat
from typing import Any

import numpy as np

from letir.errors import DTypeError, ParseError
from letir.onnx.importing.values import MAX_ELEMENTS
from letir.onnx.package import onnx_package

_MAX_ZEROS = 1 << 24  # elements of a sparse array of few values,
_MAX_ZEROS_EACH = 1_000  # and for each of its values


def dtype_of(number: int) -> np.dtype:
    """The dtype of an element type of ONNX. Raises DTypeError for one without arrays."""
    onnx = onnx_package()
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    except Exception:
        raise DTypeError(
            f"element type {number} is not one of ONNX's\n  the model is damaged, or newer"
        ) from None


def array_of_tensor(tensor: Any, folder: str | None) -> np.ndarray:
    """The array of a TensorProto. Raises ParseError if its data do not fit its shape."""
    onnx = onnx_package()
    name = tensor.name or "a tensor"
    dims = list(tensor.dims)
    if any(n < 0 for n in dims):
        raise ParseError(f"{name} has the shape {tuple(dims)}: a size cannot be negative")
    dtype = dtype_of(tensor.data_type)
    count = math.prod(dims)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        data = _external_data(tensor, folder, count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise ParseError(
                f"{name} has the shape {tuple(dims)} and {len(data)} bytes of external data, not "
                f"{count * dtype.itemsize}"
            )
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(dims)
    # before anything is allocated: the shape of a hostile tensor may be anything
    stored = max(len(tensor.raw_data), tensor.ByteSize())
    if count > 8 * stored:
        raise ParseError(
            f"{name} has the shape {tuple(dims)}, and its data only {stored} bytes\n"
            "  the file is damaged"
        )
    try:
        result = onnx.numpy_helper.to_array(tensor)
    except Exception as error:
        raise ParseError(
            f"the data of {name} do not fit its shape {tuple(dims)}: {error}"
        ) from None
    return result.astype(np.str_) if result.dtype == object else result


def array_of_sparse(sparse: Any, folder: str | None) -> np.ndarray:
    """The dense array of a SparseTensorProto."""
    dims, name = list(sparse.dims), sparse.values.name or "a sparse tensor"
    values = array_of_tensor(sparse.values, folder)
    most = max(_MAX_ZEROS, _MAX_ZEROS_EACH * values.size)
    if any(n < 0 for n in dims) or math.prod(dims) > min(most, MAX_ELEMENTS):
        raise ParseError(
            f"{name} has the shape {tuple(dims)} and {values.size} values, which is too large to "
            "be stored densely"
        )
    indices = array_of_tensor(sparse.indices, folder)
    result = np.zeros(dims, values.dtype)
    try:
        flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), dims)
        result.reshape(-1)[flat] = values
    except (IndexError, ValueError, TypeError) as error:
        raise ParseError(
            f"the indices of {name} do not fit its shape {tuple(dims)}: {error}"
        ) from None
    return result


def _external_data(tensor: Any, folder: str | None, most: int) -> bytes:
    """The bytes of a tensor in a file beside the model. Raises ParseError for any other file."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ParseError(
            f"the data of {tensor.name!r} are in the file {location!r}, but the model was not read "
            "from a file\n  pass the path of the model, or load it with onnx.load first"
        )
    path = _checked_path(folder, location, tensor.name)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", most))
    except ValueError:
        raise ParseError(f"the offset or length of {tensor.name!r} is not a number") from None
    size = os.path.getsize(path)
    if offset < 0 or length < 0 or offset + length > size:
        raise ParseError(
            f"the data of {tensor.name!r} are bytes {offset} to {offset + length} of {location!r}, "
            f"which has {size}\n  the file is damaged or another one"
        )
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(min(length, most + 1))
    except MemoryError:
        raise ParseError(
            f"the data of {tensor.name!r} do not fit into memory: {min(length, most)} bytes of "
            f"{location!r}"
        ) from None


def _checked_path(folder: str, location: str, name: str) -> str:
    """The path of a regular file in the model's folder, no part of which is a link."""
    parts = location.replace("\\", "/").split("/")
    is_inside = location and not os.path.isabs(location) and ":" not in parts[0]
    if not is_inside or ".." in parts or "\0" in location or location.startswith(("/", "\\")):
        raise ParseError(
            f"the data of {name!r} are in {location!r}, which is not inside of the model's folder\n"
            "  put the file beside the model"
        )
    path = folder
    for part in parts:
        path = os.path.join(path, part)
        try:
            kind = os.lstat(path).st_mode
        except OSError as error:
            raise ParseError(f"the data of {name!r}: {location!r}: {error.strerror}") from None
        if stat.S_ISLNK(kind):
            raise ParseError(
                f"the data of {name!r} are in {location!r}, which is a link\n"
                "  put the file itself beside the model"
            )
    if not stat.S_ISREG(kind):
        raise ParseError(f"the data of {name!r} are in {location!r}, which is not a regular file")
    return path
