"""Linear models, and operators that prepare and encode features."""

from typing import Any

import numpy as np

from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.values import number_like, take_elements
from letir.ops.nn.activations import sigmoid
from letir.ops.nn.softmax import softmax
from letir.ops.special.special_functions import ndtri

# ---- features ----


def as_floating(x: Any) -> Any:
    """Numbers as float32, unless they are floating already."""
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def _scaler(x: Any, offset: Any = (0.0,), scale: Any = (1.0,)) -> Any:
    """Scaler: x minus an offset, times a scale, for each column."""
    x = as_floating(x)
    return (x - np.array(offset, x.dtype)) * np.array(scale, x.dtype)


def _binarizer(x: Any, threshold: float = 0.0) -> Any:
    """Binarizer: 1 above the threshold, else 0."""
    return (x > number_like(threshold, x)).astype(x.dtype)


def _normalizer(x: Any, norm: str = "MAX") -> Any:
    """Normalizer: each row divided by its norm."""
    x = as_floating(x)
    absolute = np.abs(x)
    if norm == "MAX":
        size = np.max(absolute, axis=-1, keepdims=True)
    elif norm == "L1":
        size = np.sum(absolute, axis=-1, keepdims=True)
    else:
        size = np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True))
    return np.where(size == 0, x, x / np.where(size == 0, number_like(1, x), size))


def _imputer(
    x: Any,
    imputed_value_floats: Any = None,
    imputed_value_int64s: Any = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Any:
    """Imputer: one number, which may be nan, replaced by others in each column."""
    is_float = imputed_value_floats is not None
    replacements = imputed_value_floats if is_float else imputed_value_int64s
    missing = replaced_value_float if is_float else replaced_value_int64
    is_missing = np.isnan(x) if missing != missing else x == number_like(missing, x)
    return np.where(is_missing, np.array(replacements, x.dtype), x)


def _feature_vectorizer(*arrays: Any, inputdimensions: Any = None) -> Any:
    """FeatureVectorizer: columns side by side."""
    rows = [as_floating(x) if x.ndim > 1 else as_floating(x).reshape((1, -1)) for x in arrays]
    return np.concatenate(rows, axis=1)


def _label_encoder(x: Any, **attrs: Any) -> Any:
    """LabelEncoder: a number in place of each number of a table."""
    keys, values, default = _table_of(attrs)
    labels = np.full((), default).astype(values.dtype)
    for key, value in zip(keys[::-1], values[::-1], strict=True):
        same = np.isnan(x) if key != key else x == number_like(key, x)
        labels = np.where(same, value, labels)
    return labels + np.zeros_like(x, dtype=values.dtype)


def _table_of(attrs: dict[str, Any]) -> tuple[Any, np.ndarray, Any]:
    """(keys, values, default) of a LabelEncoder."""
    kinds = {"int64s": np.int64, "floats": np.float32, "tensor": None}
    table: dict[str, Any] = {}
    for part in ("keys", "values"):
        names = [aval for aval in kinds if f"{part}_{aval}" in attrs]
        if len(names) != 1:
            raise MissingRule("LabelEncoder: strings are not supported\n  encode them as integers")
        table[part] = np.asarray(attrs[f"{part}_{names[0]}"], kinds[names[0]])
        if table[part].dtype.kind not in "biuf":
            raise MissingRule("LabelEncoder: strings are not supported\n  encode them as integers")
    default = attrs.get("default_tensor")
    if default is None:
        is_float = table["values"].dtype.kind == "f"
        default = attrs.get("default_float", -0.0) if is_float else attrs.get("default_int64", -1)
    return table["keys"], table["values"], np.asarray(default).reshape(-1)[0]


def _one_hot_encoder(
    x: Any, cats_int64s: Any = None, cats_strings: Any = None, zeros: int = 1
) -> Any:
    """OneHotEncoder: 1 at the category of each number."""
    if cats_int64s is None:
        raise MissingRule("OneHotEncoder: strings are not supported\n  encode them as integers")
    result = np.expand_dims(x, -1) == np.array(cats_int64s).astype(x.dtype)
    return result.astype(np.float32)


# ---- results ----


def apply_post_transform(scores: Any, post_transform: str) -> Any:
    """Scores after the function that a model names."""
    if post_transform == "NONE":
        return scores
    if post_transform == "LOGISTIC":
        return sigmoid(scores)
    if post_transform == "SOFTMAX":
        return softmax(scores, axis=-1)
    if post_transform == "SOFTMAX_ZERO":
        is_nonzero = scores != 0
        powers = np.where(is_nonzero, np.exp(scores - np.max(scores, axis=-1, keepdims=True)), 0)
        return (powers / np.sum(powers, axis=-1, keepdims=True)).astype(scores.dtype)
    if post_transform == "PROBIT":
        return ndtri(scores)
    raise MissingRule(f"there is no post_transform {post_transform!r}")


def apply_post_transform_alone(score: Any, post_transform: str) -> Any:
    """The single score of a model of two classes after the function that the model names.

    Softmax and the like, which combine several scores, do not change it, as in onnxruntime.
    """
    is_elementwise = post_transform in ("LOGISTIC", "PROBIT")
    return apply_post_transform(score, post_transform) if is_elementwise else score


def table_of_labels(attrs: dict[str, Any]) -> list[int]:
    """The labels of the classes; for strings their positions."""
    labels = attrs.get("classlabels_ints") or attrs.get("classlabels_int64s")
    if not labels:
        texts = attrs.get("classlabels_strings") or ()
        labels = list(range(len(texts)))  # strings are not arrays: their positions
    if not labels:
        raise ShapeError("a classifier has no class labels")
    return labels


def labels_of(scores: Any, attrs: dict[str, Any]) -> Any:
    """The class of the highest score; of one column, whether the score is positive."""
    table = np.array(table_of_labels(attrs), np.int64)
    return take_elements(table, np.argmax(scores, axis=1))


def _affine_map(x: Any, coefficients: Any, shape: tuple, intercepts: Any) -> Any:
    """The products with coefficients, which have the shape (targets, features), plus intercepts."""
    result = x @ np.array(coefficients, x.dtype).reshape(shape).T
    return result if intercepts is None else result + np.array(intercepts, x.dtype)


def _linear_regressor(
    x: Any,
    coefficients: Any,
    intercepts: Any = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Any:
    """LinearRegressor: products with the coefficients of each target."""
    result = _affine_map(as_floating(x), coefficients, (targets, -1), intercepts)
    return apply_post_transform(result, post_transform)


def _linear_classifier(
    x: Any,
    coefficients: Any,
    intercepts: Any = None,
    post_transform: str = "NONE",
    multi_class: int = 0,
    **labels: Any,
) -> tuple:
    """LinearClassifier: (the class with the highest score, the scores)."""
    scores = _affine_map(as_floating(x), coefficients, (-1, x.shape[1]), intercepts)
    if scores.shape[1] == 1:  # two classes; the score belongs to the second
        sign = np.concatenate([-scores, scores], axis=1)
        second = apply_post_transform_alone(scores, post_transform)
        both = np.concatenate([number_like(1, second) - second, second], axis=1)
        return labels_of(sign, labels), both
    return labels_of(scores, labels), apply_post_transform(scores, post_transform)


def _zip_map(x: Any, **labels: Any) -> Any:
    """ZipMap: the scores themselves; columns are in the order of the labels."""
    return x


OPERATORS: dict[str, Any] = {
    **{"Scaler": _scaler, "Binarizer": _binarizer, "Normalizer": _normalizer},
    **{"Imputer": _imputer, "FeatureVectorizer": _feature_vectorizer, "ZipMap": _zip_map},
    **{"LabelEncoder": _label_encoder, "OneHotEncoder": _one_hot_encoder},
    **{"LinearRegressor": _linear_regressor, "LinearClassifier": _linear_classifier},
}
