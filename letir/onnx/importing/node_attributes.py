"""Checks of the attributes of nodes, by the operators' schemas and by tables of their values."""

from typing import Any

import numpy as np

from letir.errors import ParseError
from letir.onnx.package import onnx_package

# integers that stand for booleans
_FLAGS = frozenset(
    [
        *("keepdims", "noop_with_empty_axes", "select_last_index", "exclusive", "reverse"),
        *("transA", "transB", "ceil_mode", "count_include_pad", "inverse", "onesided", "sorted"),
        *("training_mode", "layout", "align_corners", "exclude_outside", "antialias", "largest"),
        *("fmod", "allowzero", "detect_negative", "detect_positive", "linear_before_reset"),
        *("input_forget", "upper", "center_point_box", "storage_order", "one_class", "periodic"),
    ]
)
_PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_LOSS, _SCATTER = ("none", "mean", "sum"), ("none", "add", "mul", "max", "min")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_CHOICES: dict[tuple[str, str], tuple[str, ...]] = {  # of (operator, attribute); ``*``: of any
    ("*", "auto_pad"): _PADDING,
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("GridSample", "mode"): ("linear", "nearest", "cubic", "bilinear", "bicubic"),
    ("NegativeLogLikelihoodLoss", "reduction"): _LOSS,
    ("SoftmaxCrossEntropyLoss", "reduction"): _LOSS,
    ("ScatterElements", "reduction"): _SCATTER,
    ("ScatterND", "reduction"): _SCATTER,
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    **{(name, "direction"): _DIRECTIONS for name in ("RNN", "GRU", "LSTM")},
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("SpaceToDepth", "mode"): ("DCR", "CRD"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("TfIdfVectorizer", "mode"): ("TF", "IDF", "TFIDF"),
    ("Normalizer", "norm"): ("MAX", "L1", "L2"),
    **{
        (name, "kernel_type"): ("LINEAR", "POLY", "RBF", "SIGMOID")
        for name in ("SVMRegressor", "SVMClassifier")
    },
    ("TreeEnsembleRegressor", "aggregate_function"): ("AVERAGE", "SUM", "MIN", "MAX"),
}


def check_attributes(schema: Any, attrs: dict) -> None:
    """Raise ParseError for an attribute that is missing, not known, or of another type or value."""
    onnx = onnx_package()
    kinds = onnx.defs.OpSchema.AttrType
    expected = {kinds.FLOAT: float, kinds.INT: int, kinds.STRING: str, kinds.TENSOR: np.ndarray}
    for name, declared in schema.attributes.items():
        if declared.required and name not in attrs:
            raise ParseError(
                f"{schema.name}: the required attribute {name!r} is missing\n  add it to the node"
            )
    for name, value in attrs.items():
        entry = schema.attributes.get(name)
        if entry is None:
            raise ParseError(
                f"{schema.name} has no attribute {name!r} in this version of the operator\n"
                "  remove it, or import a newer version in opset_import"
            )
        kind = expected.get(entry.type)
        if kind is None and entry.type in (kinds.FLOATS, kinds.INTS, kinds.STRINGS):
            kind = list
        if kind is not None and not isinstance(value, kind):
            raise ParseError(
                f"{schema.name}: the attribute {name!r} must have the type {entry.type}, "
                f"found {value!r:.60}"
            )
        choices: Any = _CHOICES.get((schema.name, name)) or _CHOICES.get(("*", name))
        choices = (0, 1) if name in _FLAGS and entry.type == kinds.INT else choices
        if choices is not None and value not in choices:
            listed = ", ".join(map(repr, choices))
            raise ParseError(
                f"{schema.name}: the attribute {name!r} must be one of {listed}, "
                f"found {value!r:.60}"
            )
