"""Ensembles of decision trees: all rows go down all trees at once, one level at a time."""

from typing import Any

import numpy as np
from attrs import frozen

from letir.errors import MissingRule, ParseError
from letir.onnx.importing.families.ml.linear import (
    apply_post_transform,
    apply_post_transform_alone,
    labels_of,
)
from letir.onnx.importing.values import check_elements, number_like, take_elements, zeros_of

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_COMPARE = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


@frozen
class Forest:
    """The nodes of all trees by number; a leaf has itself as both children.

    ``weights``: for each node the scores that it gives, zero for a branch.
    """

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    mode: tuple[str, ...]
    yes: np.ndarray
    no: np.ndarray
    missing_is_yes: np.ndarray
    weights: np.ndarray
    members: tuple = ()  # for each node with BRANCH_MEMBER its set

    def depth(self) -> int:
        """The number of levels. Raises ParseError for trees with a cycle."""
        level, result = set(self.roots.tolist()), 0
        while True:
            inner = {n for n in level if self.yes[n] != n or self.no[n] != n}
            if not inner:
                return result
            level = {int(child[n]) for n in inner for child in (self.yes, self.no)}
            result += 1
            if result > len(self.feature):
                raise ParseError("the nodes of a tree are in a cycle\n  the file is damaged")

    def leaves(self, x: Any) -> Any:
        """The number of the leaf of each row in each tree: shape (rows, trees)."""
        tables = [self.feature, self.threshold.astype(x.dtype), self.yes, self.no]
        tables += [self.missing_is_yes]
        feature, threshold, yes, no, missing = tables
        node = zeros_of((x.shape[0], 1), np.int64, "a forest") + self.roots
        for _ in range(self.depth()):
            value = np.take_along_axis(x, take_elements(feature, node), axis=1)
            goes = self._node_conditions(value, take_elements(threshold, node), node)
            goes = goes | (np.isnan(value) & take_elements(missing, node))
            node = np.where(goes, take_elements(yes, node), take_elements(no, node))
        return node

    def _node_conditions(self, value: Any, threshold: Any, node: Any) -> Any:
        """Whether the condition of each node holds."""
        modes = sorted(set(self.mode) - {"LEAF"})
        goes = None
        for mode in modes:
            if mode == "BRANCH_MEMBER":
                here = self._is_member(value, node)
            elif mode in _COMPARE:
                here = _COMPARE[mode](value, threshold)
            else:
                raise MissingRule(f"there is no mode {mode!r} of tree nodes")
            if len(modes) > 1:
                has_mode = np.array([m == mode for m in self.mode])
                here = here & take_elements(has_mode, node)
            goes = here if goes is None else goes | here
        return goes

    def _is_member(self, value: Any, node: Any) -> Any:
        """Whether a value is in the set of its node."""
        most = max(map(len, self.members))
        table = np.full((len(self.members), max(most, 1)), np.nan)
        for row, numbers in zip(table, self.members, strict=True):
            row[: len(numbers)] = numbers
        table = table.astype(value.dtype)
        rows = take_elements(table, node, axis=0)
        return (np.expand_dims(value, -1) == rows).any(axis=-1)

    def scores(self, x: Any, aggregate: str, base: Any) -> Any:
        """The scores of each row, combined over the trees."""
        x = x if x.dtype.kind == "f" else x.astype(np.float32)
        table = self.weights.astype(x.dtype)
        node = self.leaves(x)
        each = take_elements(table, node, axis=0)
        combine: dict[str, Any] = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}
        result = combine[aggregate](each, axis=1)
        return result if base is None else result + np.array(base, x.dtype)


# ---- reading ----


def _forest_of_nodes(attrs: dict[str, Any], kind: str, count: int) -> Forest:
    """The forest of TreeEnsembleRegressor or TreeEnsembleClassifier; ``kind``: target or class."""
    keys = list(zip(attrs["nodes_treeids"], attrs["nodes_nodeids"], strict=True))
    number = {key: i for i, key in enumerate(keys)}
    if len(number) != len(keys):
        raise ParseError("a node of a tree occurs twice\n  the file is damaged")
    modes = tuple(attrs["nodes_modes"])
    yes, no = np.arange(len(keys)), np.arange(len(keys))
    for i, (tree, _) in enumerate(keys):
        if modes[i] != "LEAF":
            yes[i] = number[tree, attrs["nodes_truenodeids"][i]]
            no[i] = number[tree, attrs["nodes_falsenodeids"][i]]
    children = {
        int(child[i]) for i in range(len(keys)) if modes[i] != "LEAF" for child in (yes, no)
    }
    roots = np.array([i for i in range(len(keys)) if i not in children])
    if not len(roots):
        raise ParseError("the nodes of a tree are in a cycle\n  the file is damaged")
    missing = attrs.get("nodes_missing_value_tracks_true") or [0] * len(keys)
    return Forest(
        roots,
        np.array(attrs["nodes_featureids"]),
        np.array(_float_attribute(attrs, "nodes_values")),
        modes,
        yes,
        no,
        np.array(missing, bool),
        _weights_of_nodes(attrs, kind, number, count),
    )


def _weights_of_nodes(attrs: dict[str, Any], kind: str, number: dict, count: int) -> np.ndarray:
    """The weights that each node adds to ``count`` scores, zeros for most nodes."""
    check_elements([len(number), count], "the scores of a forest")
    weights = np.zeros((len(number), count))
    rows = zip(
        attrs[f"{kind}_treeids"],
        attrs[f"{kind}_nodeids"],
        attrs[f"{kind}_ids"],
        _float_attribute(attrs, f"{kind}_weights"),
        strict=True,
    )
    for tree, node, target, weight in rows:
        weights[number[tree, node], target] += weight
    return weights


def _float_attribute(attrs: dict[str, Any], name: str) -> Any:
    """An attribute of floats, or of doubles as a tensor."""
    return attrs[f"{name}_as_tensor"] if f"{name}_as_tensor" in attrs else attrs[name]


def _tree_regressor(x: Any, **attrs: Any) -> Any:
    """TreeEnsembleRegressor: the combined weights of the leaves of each row."""
    forest = _forest_of_nodes(attrs, "target", attrs.get("n_targets", 1))
    base = attrs.get("base_values_as_tensor", attrs.get("base_values"))
    result = forest.scores(x, attrs.get("aggregate_function", "SUM"), base)
    return apply_post_transform(result, attrs.get("post_transform", "NONE")).astype(np.float32)


def _tree_classifier(x: Any, **attrs: Any) -> tuple:
    """TreeEnsembleClassifier: (the class of the highest score, the scores)."""
    labels = attrs.get("classlabels_int64s") or attrs.get("classlabels_strings") or []
    forest = _forest_of_nodes(attrs, "class", len(labels))
    base = attrs.get("base_values_as_tensor", attrs.get("base_values"))
    post = attrs.get("post_transform", "NONE")
    if len(labels) == 2 and set(attrs["class_ids"]) == {0}:  # the score belongs to the second
        score = forest.scores(x, "SUM", None)[:, :1]
        score = score if base is None else score + np.array(base, score.dtype)[-1:]
        second = apply_post_transform_alone(score, post)
        is_probability = post in ("LOGISTIC", "PROBIT") or bool((forest.weights >= 0).all())
        first = number_like(1, second) - second if is_probability else -second
        scores = np.concatenate([first, second], axis=1)
        return labels_of(scores, attrs), scores.astype(np.float32)
    scores = forest.scores(x, "SUM", base)
    transformed = apply_post_transform(scores, post)
    return labels_of(scores, attrs), transformed.astype(np.float32)


def _tree_ensemble(x: Any, **attrs: Any) -> Any:
    """TreeEnsemble: nodes and leaves have numbers of their own."""
    features, codes = attrs["nodes_featureids"], attrs["nodes_modes"].tolist()
    modes = [(*_MODES, "BRANCH_MEMBER")[code] for code in codes]
    inner, outer = len(features), len(attrs["leaf_targetids"])
    total, yes, no = inner + outer, np.arange(inner + outer), np.arange(inner + outer)
    for child, name in ((yes, "true"), (no, "false")):
        ids, is_leaf = attrs[f"nodes_{name}nodeids"], attrs[f"nodes_{name}leafs"]
        child[:inner] = [i + inner if leaf else i for i, leaf in zip(ids, is_leaf, strict=True)]
    check_elements([total, attrs["n_targets"]], "the scores of a forest")
    weights = np.zeros((total, attrs["n_targets"]))
    weights[np.arange(inner, total), attrs["leaf_targetids"]] = attrs["leaf_weights"]
    missing = list(attrs.get("nodes_missing_value_tracks_true") or [0] * inner)
    sets = iter(_split_at_nan(attrs.get("membership_values", np.zeros(0))))
    members = [next(sets) if mode == "BRANCH_MEMBER" else [] for mode in modes]
    forest = Forest(
        np.array(attrs["tree_roots"]),
        np.array([*features, *[0] * outer]),
        np.concatenate([attrs["nodes_splits"], np.zeros(outer)]),
        (*modes, *["LEAF"] * outer),
        yes,
        no,
        np.array([*missing, *[0] * outer], bool),
        weights,
        (*members, *[[]] * outer),
    )
    combine = ("AVERAGE", "SUM", "MIN", "MAX")[attrs.get("aggregate_function", 1)]
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[attrs.get("post_transform", 0)]
    return apply_post_transform(forest.scores(x, combine, None), post)


def _split_at_nan(numbers: Any) -> list[list[float]]:
    """The sets of numbers that nan separates."""
    result: list[list[float]] = [[]]
    for number in numbers:
        if number != number:
            result.append([])
        else:
            result[-1].append(float(number))
    return result


OPERATORS: dict[str, Any] = {
    "TreeEnsembleRegressor": _tree_regressor,
    "TreeEnsembleClassifier": _tree_classifier,
    "TreeEnsemble": _tree_ensemble,
}
