"""Support vector machines: sums of kernels of a row with the support vectors."""

from typing import Any

import numpy as np

from letir.errors import MissingRule, ParseError
from letir.onnx.importing.families.ml.linear import (
    apply_post_transform,
    as_floating,
    labels_of,
    table_of_labels,
)
from letir.onnx.importing.values import check_elements, number_like
from letir.ops.nn.activations import sigmoid
from letir.tracing.control_flow.scans import scan

_MAX_CLASSES = 64  # of estimated probabilities, which take a step for each pair of classes
_MAX_ROUNDS = 100  # of the estimation, as in libsvm
_MIN_SHARE = 1e-7  # the lowest probability of a class among two


def _kernel_of(x: Any, vectors: np.ndarray, kind: str, params: Any) -> Any:
    """The kernel of each row with each support vector."""
    gamma, shift, degree = [*(params or ()), 0.0, 0.0, 0.0][:3]
    if kind == "RBF":
        differences = x[:, None, :] - vectors[None]
        return np.exp(np.sum(np.square(differences), axis=2) * number_like(-gamma, x))
    product = x @ vectors.T
    if kind == "LINEAR":
        return product
    inner = product * number_like(gamma, x) + number_like(shift, x)
    return np.tanh(inner) if kind == "SIGMOID" else inner ** number_like(degree, x)


def _support_vector_regressor(
    x: Any,
    coefficients: Any,
    support_vectors: Any = None,
    rho: Any = (0.0,),
    kernel_params: Any = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
) -> Any:
    """SVMRegressor: a weighted sum of kernels with the support vectors."""
    x = as_floating(x)
    weights = np.array(coefficients, x.dtype)
    if n_supports:
        vectors = np.array(support_vectors, x.dtype).reshape(n_supports, -1)
        result = _kernel_of(x, vectors, kernel_type, kernel_params) @ weights.reshape(-1, 1)
    else:
        result = x @ weights.reshape(-1, 1)
    result = result + np.array(rho[:1], x.dtype)
    result = np.where(result > 0, number_like(1, x), number_like(-1, x)) if one_class else result
    return apply_post_transform(result, post_transform)


# ---- classifiers ----


def _pairs_of(attrs: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray, int]:
    """(the weight of each vector in each pair of classes, the pairs, the number of vectors)."""
    per_class = list(attrs["vectors_per_class"])
    if len(per_class) != count or min(per_class) < 0:
        raise ParseError(f"{len(per_class)} numbers of support vectors for {count} classes")
    ends = np.cumsum([0, *per_class])
    coefficients = np.array(attrs["coefficients"]).reshape(count - 1, int(ends[-1]))
    pairs = np.array([(i, j) for i in range(count) for j in range(i + 1, count)])
    check_elements([int(ends[-1]), len(pairs)], "the coefficients of a support vector machine")
    weights = np.zeros((int(ends[-1]), len(pairs)))
    for column, (i, j) in zip(weights.T, pairs, strict=True):
        column[ends[i] : ends[i + 1]] = coefficients[j - 1, ends[i] : ends[i + 1]]
        column[ends[j] : ends[j + 1]] = coefficients[i, ends[j] : ends[j + 1]]
    return weights, pairs, int(ends[-1])


def _votes(scores: Any, pairs: np.ndarray, count: int) -> Any:
    """For each class the number of pairs that it wins."""
    classes = np.arange(count)
    first, second = [(side[:, None] == classes).astype(scores.dtype) for side in pairs.T]
    wins = (scores > 0).astype(scores.dtype)
    return wins @ first + (number_like(1, scores) - wins) @ second


def _probabilities(scores: Any, attrs: dict[str, Any], pairs: np.ndarray, count: int) -> Any:
    """Class probabilities from pairwise probabilities (Wu, Lin and Weng, 2004), as in libsvm."""
    if count > _MAX_CLASSES:
        raise MissingRule(f"SVMClassifier: probabilities of {count} classes, over {_MAX_CLASSES}")
    a, b = [np.array(attrs[name], scores.dtype)[: len(pairs)] for name in ("prob_a", "prob_b")]
    least = number_like(_MIN_SHARE, scores)
    wins = np.clip(
        number_like(1, scores) - sigmoid(scores * a + b), least, number_like(1, scores) - least
    )
    share: dict = {}  # of each class in its pair with another one
    for place, (i, j) in enumerate(pairs.tolist()):
        share[i, j] = wins[:, place]
        share[j, i] = number_like(1, scores) - wins[:, place]
    rows = []
    for t in range(count):
        others = [j for j in range(count) if j != t]
        own = sum(share[j, t] * share[j, t] for j in others)
        rows.append(
            np.stack([own if j == t else -share[j, t] * share[t, j] for j in range(count)], axis=1)
        )
    return _balance_probabilities(np.stack(rows, axis=1), count)


def _balance_probabilities(q: Any, count: int) -> Any:
    """The probabilities p with ``q p`` the same for all classes; q: (rows, classes, classes)."""
    limit = number_like(0.005 / count, q)
    first = np.zeros_like(q[:, 0]) + number_like(1 / count, q)

    def one_round(p: Any, _: Any) -> tuple:
        qp = (q @ p[:, :, None])[:, :, 0]
        total = (p * qp).sum(axis=1, keepdims=True)
        runs = np.abs(qp - total).max(axis=1, keepdims=True) >= limit
        new = p
        for t in range(count):
            own = q[:, t, t][:, None]
            step = (total - qp[:, t : t + 1]) / own
            unit = (np.arange(count) == t).astype(q.dtype)
            scale = number_like(1, q) + step
            total = (
                (total + step * (step * own + number_like(2, q) * qp[:, t : t + 1])) / scale / scale
            )
            qp = (qp + step * q[:, t]) / scale
            new = (new + step * unit) / scale
        return np.where(runs, new, p), None

    return scan(one_round, first, np.zeros(max(_MAX_ROUNDS, count), q.dtype))[0]


def _support_vector_classifier(x: Any, **attrs: Any) -> tuple:
    """SVMClassifier: (the class that wins most pairs, scores or probabilities)."""
    x = as_floating(x)
    labels = table_of_labels(attrs)
    post = attrs.get("post_transform", "NONE")
    rho = np.array(attrs["rho"], x.dtype)
    if not sum(attrs.get("vectors_per_class") or ()):
        weights = np.array(attrs["coefficients"], x.dtype).reshape(len(labels), -1)
        return _labels_and_scores(x @ weights.T + rho[0], None, labels, post, False)
    weights, pairs, vectors = _pairs_of(attrs, len(labels))
    table = np.array(attrs["support_vectors"], x.dtype).reshape(vectors, -1)
    kernel = _kernel_of(x, table, attrs.get("kernel_type", "LINEAR"), attrs.get("kernel_params"))
    scores = kernel @ weights.astype(x.dtype) + rho[: len(pairs)]
    votes = _votes(scores, pairs, len(labels))
    if not attrs.get("prob_a"):
        return _labels_and_scores(scores, votes, labels, post, False)
    result = _probabilities(scores, attrs, pairs, len(labels))
    return _labels_and_scores(result, votes, labels, post, True)


def _labels_and_scores(scores: Any, votes: Any, labels: list, post: str, is_share: bool) -> tuple:
    """(labels, scores); of two classes with one score, the first class has its negative."""
    chosen = labels_of(scores if votes is None else votes, {"classlabels_ints": labels})
    if scores.shape[1] > 1 or is_share:
        return chosen, apply_post_transform(scores, post).astype(np.float32)
    if post == "PROBIT":
        raise MissingRule("SVMClassifier: PROBIT of two classes without probabilities")
    both = np.concatenate([-scores, scores], axis=1)
    return chosen, apply_post_transform(both, post).astype(np.float32)


OPERATORS: dict[str, Any] = {
    "SVMRegressor": _support_vector_regressor,
    "SVMClassifier": _support_vector_classifier,
}
