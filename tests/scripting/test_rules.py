"""Gradient scripts for common operations, compared with letir's own rules.

Each script is checked against differences, in both modes to the second order; its gradients are
compared with those of the built-in operation.
"""

import numpy as np
import pytest

import letir as lt
from letir.scripting.units import CompilationUnit
from letir.testing import check_grads
from tests.each_sample import in_one_test

RULES = CompilationUnit("""
def add(self, other: Tensor):
    self_size = self.size()
    other_size = other.size()
    def backward(grad_output):
        return grad_output._grad_sum_to_size(self_size), grad_output._grad_sum_to_size(other_size)
    return self + other, backward

def add(self, other: number):
    def backward(grad_output):
        return grad_output, None
    return self + other, backward

def sub(self, other: Tensor):
    def backward(grad_output):
        return grad_output.sum_to_size(self.size()), (-grad_output).sum_to_size(other.size())
    return self - other, backward

def sub(self, other: number):
    def backward(grad_output):
        return grad_output
    return self - other, backward

def mul(self, other: Tensor):
    def backward(grad_output):
        grad_self = (grad_output * other).sum_to_size(self.size())
        grad_other = (grad_output * self).sum_to_size(other.size())
        return grad_self, grad_other
    return self * other, backward

def mul(self, other: number):
    def backward(grad_output):
        return grad_output * other, None
    return self * other, backward

def div(self, other: Tensor):
    def backward(grad_output):
        grad_self = (grad_output / other).sum_to_size(self.size())
        grad_other = (-grad_output * self / (other * other)).sum_to_size(other.size())
        return grad_self, grad_other
    return self / other, backward

def div(self, other: number):
    def backward(grad_output):
        return grad_output / other, None
    return self / other, backward

def power(self, exponent: number):
    def backward(grad_output):
        return grad_output * (exponent * np.power(self, exponent - 1)), None
    return np.power(self, exponent), backward

def matmul(self, other):
    def backward(grad_output):
        return grad_output.matmul(other.t()), self.t().matmul(grad_output)
    return np.matmul(self, other), backward

def tanh(self):
    output = np.tanh(self)
    def backward(grad_output):
        return grad_output * (1 - output * output)
    return output, backward

def exp(self):
    result = np.exp(self)
    def backward(grad_output):
        return grad_output * result
    return result, backward

def log(self):
    def backward(grad_output):
        return grad_output.div(self)
    return np.log(self), backward

def sqrt(self):
    result = np.sqrt(self)
    def backward(grad_output):
        return grad_output / (2 * result)
    return result, backward

def sigmoid(self):
    result = 1 / (1 + np.exp(-self))
    def backward(grad_output):
        return (1 - result) * result * grad_output
    return result, backward

def relu(self):
    def backward(grad_output):
        return where(self > 0, grad_output, 0)
    return maximum(self, 0), backward

def sum(self):
    def backward(grad_output):
        return grad_output.expand(self.size())
    return np.sum(self), backward

def sum(self, dim: int, keepdim: bool = False):
    def backward(grad_output):
        return unsqueezed(grad_output, dim, keepdim).expand_as(self), None, None
    return self.sum(dim, keepdim=keepdim), backward

def unsqueezed(grad, dim: int, keepdim: bool):
    return grad.unsqueeze(dim)

def mean(self):
    def backward(grad_output):
        return grad_output.expand(self.size()) / self.numel()
    return np.mean(self), backward

def transpose(self):
    def backward(grad_output):
        return grad_output.t()
    return self.t(), backward

def permute(self):
    def backward(grad_output):
        return grad_output.permute(1, 2, 0)
    return self.permute(2, 0, 1), backward

def expand(self, size: List[int]):
    def backward(grad_output):
        return grad_output.sum_to_size(self.size()), None
    return self.expand(size), backward

def reshape(self, shape: List[int]):
    def backward(grad_output):
        return grad_output.view(self.size())
    return self.view(shape), backward

def where(condition, self, other):
    def backward(grad_output):
        zero = zeros_like(grad_output)
        grad_self = np.where(condition, grad_output, zero).sum_to_size(self.size())
        grad_other = np.where(condition, zero, grad_output).sum_to_size(other.size())
        return None, grad_self, grad_other
    return np.where(condition, self, other), backward

def linear(x, weight, bias):
    def backward(grad_output):
        grad_bias = grad_output.sum_to_size(bias.size())
        return grad_output @ weight, grad_output.t() @ x, grad_bias
    return x @ weight.t() + bias, backward

def layer_norm(x, weight, bias):
    mu = x.mean(-1, keepdims=True)
    centered = x - mu
    rstd = 1.0 / np.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    normed = centered * rstd
    def backward(g):
        gw = g * weight
        offset = gw.mean(-1, keepdims=True)
        slope = (gw * normed).mean(-1, keepdims=True)
        grad_x = rstd * (gw - offset - normed * slope)
        return grad_x, (g * normed).sum_to_size(weight.size()), g.sum_to_size(bias.size())
    return normed * weight + bias, backward

def batch_norm_stats(x):
    mu = x.mean(0)
    centered = x - mu
    var = (centered * centered).mean(0)
    def backward(grad_mu, grad_var):
        n = x.size(0)
        return ((grad_mu + 2 * grad_var * centered) / n).expand_as(x)
    return mu, var, backward

def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True)
    def backward(grad_output):
        product = grad_output * result
        return product - result * product.sum(-1, keepdims=True)
    return result, backward
""")

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = np.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
ROW = np.array([0.3, -0.4, 0.9])
POSITIVE = np.abs(X) + 0.5
CUBE = np.linspace(-1.0, 1.2, 24).reshape(2, 3, 4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    return centered / np.sqrt(variance + 1e-5) * weight + bias


def moments(x):
    return x.mean(0), ((x - x.mean(0)) ** 2).mean(0)


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


CASES = {
    "add": (lambda x, y: x + y, (X, ROW)),
    "add number": (lambda x: x + 2.5, (X,), (2.5,)),
    "sub": (lambda x, y: x - y, (ROW, Y)),
    "sub number": (lambda x: x - 2.5, (X,), (2.5,)),
    "mul": (lambda x, y: x * y, (X, ROW)),
    "mul number": (lambda x: x * 2.5, (X,), (2.5,)),
    "div": (lambda x, y: x / y, (ROW, Y)),
    "div number": (lambda x: x / 2.5, (X,), (2.5,)),
    "power": (lambda x: x**3.0, (X,), (3.0,)),
    "matmul": (lambda x, y: x @ y, (X, Y.T)),
    "tanh": (np.tanh, (X,)),
    "exp": (np.exp, (X,)),
    "log": (np.log, (POSITIVE,)),
    "sqrt": (np.sqrt, (POSITIVE,)),
    "sigmoid": (sigmoid, (X,)),
    "relu": (lambda x: np.maximum(x, 0), (X,)),
    "sum": (np.sum, (X,)),
    "sum axis": (lambda x: x.sum(-1), (X,), (-1,)),
    "mean": (np.mean, (X,)),
    "transpose": (np.transpose, (X,)),
    "permute": (lambda x: x.transpose(2, 0, 1), (CUBE,)),
    "expand": (lambda x: np.broadcast_to(x, (2, 3)), (ROW,), ((2, 3),)),
    "reshape": (lambda x: x.reshape(3, 2), (X,), ([3, 2],)),
    "linear": (lambda x, w, b: x @ w.T + b, (X, CUBE[0].T[:, :3], np.ones(4))),
    "layer_norm": (layer_norm, (X, ROW, ROW + 1)),
    "batch_norm_stats": (moments, (X,)),
    "softmax": (softmax, (X,)),
}


@in_one_test
@pytest.mark.parametrize("name", CASES)
def test_a_script_gives_the_derivatives_of_the_operation(name):
    """[G1, G2]"""
    reference, args, *static = CASES[name]
    script = RULES[name.split()[0]]

    def scripted(*arrays):
        return script(*arrays, *(static[0] if static else ()))

    expected, pull = lt.vjp(reference, *args)
    found, scripted_pull = lt.vjp(scripted, *args)
    ct = tuple(np.cos(out) for out in expected) if type(expected) is tuple else np.cos(expected)

    np.testing.assert_allclose(found, expected)
    for one, other in zip(scripted_pull(ct), pull(ct), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    check_grads(scripted, args, order=2)


def test_a_condition_gets_no_gradient():
    condition = X > 0

    def scripted(x, y):
        return RULES.where(condition, x, y)

    check_grads(scripted, (X, ROW), order=2)


@pytest.mark.parametrize("name", ["mul", "linear", "layer_norm", "sigmoid"])
def test_single_precision_is_kept(name):
    _, args, *_ = CASES[name]
    single = tuple(arg.astype("float32") for arg in args)

    out, pull = lt.vjp(RULES[name], *single)

    assert out.dtype == "float32"
    assert {ct.dtype for ct in pull(out)} == {np.dtype("float32")}


@pytest.mark.parametrize("name", ["tanh", "mul", "layer_norm", "batch_norm_stats"])
def test_vmap_of_a_script_maps_its_body(name):
    reference, args, *_ = CASES[name]
    many = tuple(np.stack([arg, arg + 0.5, 2 * arg]) for arg in args)

    found, expected = lt.vmap(RULES[name])(*many), lt.vmap(reference)(*many)

    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_gradient_of_a_batch_is_the_batch_of_gradients():
    def loss(x, w):
        return (RULES.layer_norm(x, w, ROW) ** 2).sum()

    many = np.stack([X, X + 0.5, 2 * X])
    by_x, by_w = lt.vmap(lt.grad(loss, (0, 1)), in_axes=(0, None))(many, ROW)
    whole = lt.grad(lambda w: lt.vmap(lambda x: loss(x, w))(many).sum())(ROW)

    for i, x in enumerate(many):
        np.testing.assert_allclose(by_x[i], lt.grad(loss)(x, ROW))
    np.testing.assert_allclose(by_w.sum(0), whole)


@pytest.mark.parametrize(
    "name", ["add", "mul", "layer_norm", "mean", "softmax", "batch_norm_stats"]
)
def test_one_gradient_program_works_for_all_sizes(name):
    """[D14]"""
    script = RULES[name]
    _, args, *_ = CASES[name]

    def loss(*arrays):
        out = script(*arrays)
        return sum(np.sin(part).sum() for part in (out if isinstance(out, tuple) else (out,)))

    abstract = [lt.ShapeDtype(("n", 3)), *(lt.ShapeDtype(arg.shape) for arg in args[1:])]
    gradient = lt.grad(lt.trace(loss, *abstract), tuple(range(len(args))))
    for rows in (1, 2, 5):
        arrays = (np.linspace(-1.0, 2.0, 3 * rows).reshape(rows, 3), *args[1:])
        expected = lt.grad(loss, tuple(range(len(args))))(*arrays)
        for one, other in zip(gradient(*arrays), expected, strict=True):
            np.testing.assert_allclose(one, other)
