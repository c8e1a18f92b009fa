"""Names of other libraries: the error says what to write with letir, and that exists."""

import re
from importlib import import_module

import pytest

import letir
from letir import nn, random
from letir.foreign_names import REMEDIES


@pytest.mark.parametrize(
    ("package", "name", "remedy"),
    [
        (letir, "make_jaxpr", "use letir.trace"),
        (letir, "tree_map", "use letir.tree.map"),
        (letir, "elementwise_grad", "use letir.grad(lambda x: f(x).sum())"),
        (letir, "tensor", "use letir.Variable, or numpy.array"),
        (letir, "sin", "use numpy.sin: letir records NumPy's own functions"),
        (random, "PRNGKey", "use letir.random.key"),
        (nn, "Linear", "letir.nn has functions, which take the parameters: letir.nn.linear"),
        (
            nn,
            "BatchNorm2d",
            "letir.nn has functions, which take the parameters: letir.nn.batch_norm",
        ),
        (nn, "ReLU", "letir.nn has functions, which take the parameters: letir.nn.relu"),
        (nn, "MSELoss", "letir.nn has functions, which take the parameters: letir.nn.mse_loss"),
        (nn, "scaled_dot_product_attention", "use letir.nn.attention"),
    ],
)
def test_the_error_says_what_to_write_for_a_name_of_another_library(package, name, remedy):
    with pytest.raises(AttributeError) as info:
        getattr(package, name)
    assert str(info.value) == f"module {package.__name__!r} has no attribute {name!r}\n  {remedy}"


@pytest.mark.parametrize("package", [letir, random, nn])
@pytest.mark.parametrize("name", ["no_such_name", "NoSuchName", "_private", "__wrapped__"])
def test_an_unknown_name_has_no_remedy(package, name):
    with pytest.raises(AttributeError) as info:
        getattr(package, name)
    assert str(info.value) == f"module {package.__name__!r} has no attribute {name!r}"
    assert (info.value.name, info.value.obj) == (name, package)


@pytest.mark.parametrize("package", REMEDIES)
def test_remedies_name_what_exists_for_names_that_do_not(package):
    owner = letir.Variable if package == "Variable" else import_module(package)
    for name, remedy in REMEDIES[package].items():
        assert not hasattr(owner, name)
        for path in re.findall(r"letir(?:\.\w+)+", remedy):
            module, attribute = path.rsplit(".", 1)
            assert hasattr(import_module(module), attribute), remedy
