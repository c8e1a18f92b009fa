"""Negative log likelihood and softmax cross entropy."""

from typing import Any

import numpy as np

from letir.onnx.importing.values import number_like, take_elements, traced_with
from letir.ops.nn.softmax import log_softmax


def _negative_log_likelihood(
    scores: Any,
    labels: Any,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """NegativeLogLikelihoodLoss: minus the score of each label, by the weights of the classes."""
    ignored = None if ignore_index is None else labels == ignore_index
    safe_labels = (
        labels if ignored is None else np.where(ignored, np.zeros((), labels.dtype), labels)
    )
    table = traced_with(scores, safe_labels)
    result = -np.take_along_axis(table, np.expand_dims(safe_labels, 1), 1)[:, 0]
    by = None if weight is None else take_elements(weight, safe_labels)
    if ignored is not None:
        by = np.ones_like(result) if by is None else by
        by = np.where(ignored, number_like(0, result), by)
    result = result if by is None else result * by
    if reduction == "none":
        return result
    if reduction == "sum" or by is None:
        return np.mean(result) if reduction == "mean" else np.sum(result)
    return np.sum(result) / np.sum(by)


def _softmax_cross_entropy(
    scores: Any,
    labels: Any,
    weight: Any = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple:
    """SoftmaxCrossEntropyLoss: (the loss, the logarithms of the probabilities)."""
    logs = log_softmax(scores, axis=1)
    return _negative_log_likelihood(logs, labels, weight, ignore_index, reduction), logs


OPERATORS: dict[str, Any] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _softmax_cross_entropy,
}
