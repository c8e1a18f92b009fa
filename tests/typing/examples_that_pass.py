"""Uses of the public API as type checkers see them. Not run: read by ``test_typed_examples``."""

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import letir as lt

Array = np.ndarray[Any, Any]
X: Array = np.ones(3)


def loss(x: Array, rate: float) -> float:
    return float((np.tanh(x) * rate).sum())


def network(params: tuple[Array, Array], x: Array) -> Array:
    w, b = params
    return np.tanh(x @ w + b)


# a function keeps its parameters, a Lambda gives a Lambda
program = lt.trace(loss, X, 0.5)
assert_type(program, lt.Lambda)
assert_type(lt.grad(program), lt.Lambda)
assert_type(lt.grad(lt.differentiate(program)), lt.Lambda)
slope = lt.grad(loss, argnums=(0, 1), policy="min_bytes")
assert_type(slope(X, rate=0.5), Any)
assert_type(lt.value_and_grad(loss)(X, 0.5), tuple[float, Any])
assert_type(lt.vmap(network)((X, X), X), Array)
assert_type(lt.vmap(program), lt.Lambda)
assert_type(lt.checkpoint(network)((X, X), X), Array)
assert_type(lt.hessian(program), lt.Lambda)
assert_type(lt.jacfwd(loss)(X, 0.5), Any)
out, pull = lt.vjp(network, (X, X), X)
assert_type(out, Array)
assert_type(pull.program, lt.Lambda)
assert_type(lt.jvp(loss, (X, 0.5), (X, 0.0)), tuple[float, float])
assert_type(lt.jvp(lambda x: (x, "aux"), (X,), (X,), has_aux=True)[1:], tuple[Any, str])
assert_type(lt.linearize(loss, X, 0.5)[0], float)
assert_type(lt.hvp(program), lt.Lambda)

# jit
fast = lt.jit(loss)
assert_type(fast(X, 0.5), float)
assert_type(fast.counters["compiles"], int)
assert_type(lt.grad(fast)(X, 0.5), Any)


@lt.jit(static_argnames="steps", exact=True)
def simulate(x: Array, steps: int) -> Array:
    return x * steps


assert_type(simulate(X, steps=3), Array)
assert_type(lt.jit(lt.vmap(network))((X, X), X), Array)


class Model:
    @lt.jit
    def forward(self, x: Array) -> Array:
        return x


assert_type(Model().forward(X), Array)

# control flow
assert_type(lt.cond(X.sum() > 0, lambda: 1.0, lambda: 2.0), float)
assert_type(lt.fori_loop(0, 3, lambda i, total: total + 1.0, 0.0), float)
assert_type(lt.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, 0.0), float)
last, rows = lt.scan(lambda carry, x: (carry + 1.0, x), 0.0, X)
assert_type(last, float)


# custom rules
@lt.custom_vjp
def clipped(x: Array, bound: float) -> Array:
    return np.clip(x, -bound, bound)


assert_type(clipped(X, 1.0), Array)


@lt.custom_jvp
def square(x: float) -> float:
    return x * x


@square.defjvp
def square_rule(primals: tuple[float], tangents: tuple[float]) -> tuple[float, float]:
    return square(primals[0]), 2.0 * primals[0] * tangents[0]


# programs, text and files
assert_type(lt.parse("lambda %0 { return %0 }"), lt.Lambda)
assert_type(lt.dumps(program), str)
assert_type(lt.load("program.letir"), lt.Lambda | lt.Gradient)
assert_type(lt.check(program), lt.Lambda)
assert_type(lt.differentiate(program).df, lt.Lambda)
lt.save(program, "program.letir")
plan = lt.compile(program, donate=(0,))
assert_type(plan(X, 0.5), Any)
assert_type(lt.script("def f(x):\n    return x").lifted, str)
rule: Callable[..., Any] | lt.extend.Absent = lt.extend.never("it has no derivative")
double = lt.script_op("package.double")
assert_type(lt.ravel({"a": X})[1](X), Any)
with lt.no_grad():
    lt.Variable(X, requires_grad=True)

# types and trees
assert_type(lt.eval_shape(loss, X, 0.5), Any)
assert_type(lt.tree.leaves({"a": X}), list[Any])
assert_type(lt.tree.all((True, False)), bool)
leaves, structure = lt.tree.flatten((X, X))
assert_type(lt.tree.unflatten(structure, leaves), Any)
