"""Models of PyTorch and scikit-learn give these packages' numbers and gradients.

The models are in tests/data/onnx_models; tests/onnx/makers has the programs that make them.
"""

import importlib

import numpy as np
import pytest

import letir as lt
from tests.onnx.makers.archives import Made, read

PACKAGES = {"torch": ["torch", "onnxscript"], "sklearn": ["sklearn", "skl2onnx"]}
# torch: scales and slopes are attributes, which are in single precision in ONNX; sklearn: its trees
# and support vectors are in single precision, and its slopes are differences
TOLERANCES = {"torch": {"attention": 1e-7, "activated": 1e-7, "": 2e-11}, "sklearn": {"": 5e-6}}
MODELS = [(package, made) for package in PACKAGES for made in read(package)]
of_all_models = pytest.mark.parametrize(
    ("package", "made"), [pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}") for pair in MODELS]
)


def results_of(program, inputs) -> list:
    """The results of a program as a list."""
    found = program(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def weighted(results) -> float:
    """The sum of floating results with the weights of the makers."""
    return sum(
        (y * np.cos(0.3 + np.arange(y.size)).reshape(y.shape).astype(y.dtype)).sum()
        for y in results
        if y.dtype.kind == "f"
    )


def assert_near(found, expected, tolerance: float) -> None:
    """Assert that arrays differ by less than ``tolerance`` of the largest number."""
    scale = max(np.abs(expected).max(initial=0), 1e-3)
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, 0, tolerance * scale)


def check(package: str, made: Made) -> None:
    """Check results, gradients with respect to inputs and weights, and a plan."""
    tolerance = TOLERANCES[package].get(made.name, TOLERANCES[package][""])
    program = lt.onnx.load(made.model)
    for run in (program, lt.compile(program)):
        for y, expected in zip(results_of(run, made.inputs), made.results, strict=True):
            assert_near(y, expected, tolerance)
    if made.gradients:
        places = tuple(i for i, x in enumerate(made.inputs) if x.dtype.kind == "f")
        inputs = [np.nan_to_num(x) for x in made.inputs]
        slopes = lt.grad(lambda *xs: weighted(results_of(program, xs)), argnums=places)(*inputs)
        for slope, expected in zip(slopes, made.gradients, strict=True):
            assert_near(slope, expected, tolerance)
    check_weights(made, tolerance)


def check_weights(made: Made, tolerance: float) -> None:
    """Check gradients with respect to the weights."""
    weights = lt.onnx.weights(made.model)
    names = list(made.weight_gradients)
    if not names:
        return
    program = lt.onnx.load(made.model, params="inputs")

    def total(chosen):
        return weighted(results_of(program, [*made.inputs, *(weights | chosen).values()]))

    slopes = lt.grad(total)({name: weights[name] for name in names})
    for name in names:
        assert_near(slopes[name], made.weight_gradients[name], tolerance)


@of_all_models
def test_a_model_has_the_numbers_and_gradients_of_its_maker(package, made):
    check(package, made)


def test_most_families_have_gradients_with_respect_to_weights():
    having = {made.name for made in read("torch") if made.weight_gradients}

    assert having >= {"perceptron", "convolutional", "lstm", "attention", "normalized"}


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore")  # of the makers
def test_models_that_are_made_again(package):
    for name in PACKAGES[package]:
        pytest.importorskip(name)
    maker = importlib.import_module(f"tests.onnx.makers.{package}_models")

    for made in maker.made(seed=7):
        check(package, made)
