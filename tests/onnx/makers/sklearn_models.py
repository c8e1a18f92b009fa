"""Models of scikit-learn as ONNX models, with scikit-learn's values.

python -m tests.onnx.makers.sklearn_models writes tests/data/onnx_models/sklearn.npz. Needs
scikit-learn and skl2onnx.
"""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from onnx.checker import ValidationError, check_model
from onnx.shape_inference import InferenceError
from skl2onnx import to_onnx
from sklearn import (
    base,
    cluster,
    compose,
    decomposition,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

from tests.onnx.makers.archives import Made, write

_STEP = 1e-5


def estimators() -> Iterator[Any]:
    """Models and preparations, not yet fitted."""
    for kind in (tree.DecisionTreeClassifier, tree.DecisionTreeRegressor, tree.ExtraTreeRegressor):
        yield kind(max_depth=4, random_state=0)
    for kind in (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier):
        yield kind(5, max_depth=3, random_state=0)
    for kind in (ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor):
        yield kind(5, max_depth=3, random_state=0)
    for kind in (ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor):
        yield kind(n_estimators=5, random_state=0)
    yield ensemble.AdaBoostRegressor(n_estimators=3, random_state=0)
    yield ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=2), 3, random_state=0)
    yield from (linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(0.01))
    yield from (
        linear_model.LogisticRegression(),
        linear_model.Perceptron(),
        linear_model.SGDClassifier(),
    )
    yield from (linear_model.PoissonRegressor(), linear_model.BayesianRidge())
    yield from (svm.LinearSVC(), svm.LinearSVR(), svm.SVR(), svm.SVR(kernel="poly"))
    yield from (svm.SVC(), svm.SVC(kernel="linear"), svm.SVC(kernel="sigmoid"), svm.NuSVC(nu=0.2))
    yield from (svm.SVC(probability=True), svm.OneClassSVM())
    yield neural_network.MLPClassifier((6,), max_iter=50, random_state=0)
    yield neural_network.MLPRegressor(
        hidden_layer_sizes=(6, 4), activation="tanh", max_iter=50, random_state=0
    )
    yield from (naive_bayes.GaussianNB(), naive_bayes.BernoulliNB())
    yield from (neighbors.KNeighborsClassifier(3), neighbors.KNeighborsRegressor(3))
    yield from (cluster.KMeans(3, n_init=1, random_state=0), decomposition.PCA(2))
    yield gaussian_process.GaussianProcessRegressor()
    yield from (preprocessing.StandardScaler(), preprocessing.MinMaxScaler())
    yield from (preprocessing.MaxAbsScaler(), preprocessing.RobustScaler())
    yield from (preprocessing.Normalizer("l1"), preprocessing.Normalizer("l2"))
    yield from (preprocessing.Binarizer(), preprocessing.PolynomialFeatures(2))
    yield preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    yield feature_selection.SelectKBest(k=2)
    yield pipeline.make_pipeline(impute.SimpleImputer(), linear_model.LogisticRegression())
    parts = [("scaled", preprocessing.StandardScaler(), [0, 1]), ("kept", "passthrough", [2, 3])]
    yield pipeline.make_pipeline(compose.ColumnTransformer(parts), linear_model.SGDClassifier())


def encoders() -> Iterator[Any]:
    """Encoders of whole numbers."""
    yield preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    yield preprocessing.OrdinalEncoder()


def _name(estimator: Any, taken: dict) -> str:
    stem = "_".join(
        type(part).__name__ for _, part in getattr(estimator, "steps", [(0, estimator)])
    )
    return stem if stem not in taken else f"{stem}_{len(taken)}"


def _values(estimator: Any, x: np.ndarray) -> list[np.ndarray]:
    """What the model has to give: labels and probabilities or scores, numbers, or columns."""
    if hasattr(estimator, "predict_proba"):
        return [estimator.predict(x), estimator.predict_proba(x)]
    if hasattr(estimator, "decision_function"):
        return [estimator.predict(x), estimator.decision_function(x)]
    if isinstance(estimator, cluster.KMeans):
        return [estimator.predict(x), estimator.transform(x)]
    return [estimator.predict(x) if hasattr(estimator, "predict") else estimator.transform(x)]


def _differences(estimator: Any, x: np.ndarray) -> list[np.ndarray]:
    """Central differences of the weighted sum of the last result."""

    def total(x: np.ndarray) -> float:
        y = _values(estimator, x)[-1]
        return float((y * np.cos(0.3 + np.arange(y.size)).reshape(y.shape)).sum())

    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = _STEP
        found[place] = (total(x + step) - total(x - step)) / (2 * _STEP)
    return [found]


def _exported(estimator: Any, row: np.ndarray) -> ModelProto:
    """The model, in double precision where skl2onnx has a form for it."""
    plain = base.is_classifier(estimator) and not isinstance(estimator, svm.LinearSVC)
    options = {id(estimator): {"zipmap": False}} if plain else {}
    settings = {"options": options, "target_opset": {"": 21, "ai.onnx.ml": 3}}
    try:
        model = to_onnx(estimator, row, **settings)
        check_model(model, full_check=True)  # some models mix both precisions
        return model
    except (NotImplementedError, InferenceError, ValidationError):
        return to_onnx(estimator, row.astype(np.float32), **settings)


def made(seed: int) -> Iterator[Made]:
    """The models with scikit-learn's results and central differences."""
    draw = np.random.default_rng(seed)
    taken: dict[str, None] = {}
    for estimator in [*estimators(), *encoders()]:
        x = draw.normal(size=(40, 4))
        labels = np.digitize(x[:, 0] + x[:, 1] * x[:, 2], [-0.4, 0.6])
        target = labels
        if base.is_regressor(estimator):
            target = np.exp(np.sin(x[:, 0])) + 0.1 * x[:, 3]
        is_encoder = "Encoder" in type(estimator).__name__
        if is_encoder:
            x = draw.integers(0, 3, (40, 2))
        if "Imputer" in str(estimator):
            x[3, 1] = x[5, 2] = np.nan
        name = _name(estimator, taken)
        taken[name] = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(x, target)
            model = _exported(estimator, x[:1])
            is_single = model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
            rows = x[:7].astype(np.float32) if is_single else x[:7]
            values = _values(estimator, rows)
            slopes = (
                [] if is_encoder else _differences(estimator, np.nan_to_num(rows.astype(float)))
            )
        yield Made(name, model.SerializeToString(), [rows], values, slopes, {})


if __name__ == "__main__":
    write("sklearn", made(int(sys.argv[1]) if sys.argv[1:] else 0))
