"""The transforms that record a function in each call, for tests that hold for all of them."""

import numpy as np
import optree

import letir as lt
from letir.transforms import repeated_programs


def known_of(f) -> list:
    """What is known of the calls of ``f``, for each transform that has been called."""
    held = [id(f), id(getattr(f, "__code__", f))]
    return [known for known in repeated_programs._functions.values() if id(known.of()) in held]


def _unit(leaves: list, place: int, index: tuple) -> list:
    """The tangents of these leaves that are 0 but for one element."""
    tangents = [np.zeros(np.shape(leaf), np.result_type(leaf)) for leaf in leaves]
    tangents[place][index] = 1.0
    return [tangent[()] for tangent in tangents]


def _ones(tree):
    """Tangents of ones for these arguments."""
    return optree.tree_map(lambda leaf: np.ones(np.shape(leaf), np.result_type(leaf))[()], tree)


def by_vjp(f):
    """The gradient of ``f`` by ``vjp``."""
    return lambda *args: lt.vjp(f, *args)[1](1.0)[0]


def by_linearize(f):
    """The gradient of ``f`` by ``linearize``, element by element."""

    def gradient(first, *others):
        _, lin = lt.linearize(f, first, *others)
        leaves, spec = optree.tree_flatten(first)
        zeros = [None for _ in others]
        results = []
        for k, leaf in enumerate(leaves):
            rows = [
                lin(spec.unflatten(_unit(leaves, k, index)), *zeros)
                for index in np.ndindex(np.shape(leaf))
            ]
            results.append(np.array(rows).reshape(np.shape(leaf)))
        return spec.unflatten(results)

    return gradient


def by_jvp(f):
    """The result and its tangent."""
    return lambda x: lt.jvp(f, (x,), (_ones(x),))


def by_hvp(f):
    """A product with the Hessian."""
    return lambda x: lt.hvp(f, (x,), (_ones(x),))


def by_function_of_hvp(f):
    """The same by ``hvp(f)``, with a number of Python as the tangent of one."""
    product = lt.hvp(f)
    return lambda x: product(x, 1.0 if type(x) is float else _ones(x))


def halved_square(y):
    return 0.5 * np.sum(y * y)


def by_ggnvp(f):
    """A product with the Gauss-Newton matrix."""
    return lambda x: lt.ggnvp(f, halved_square, (x,), (_ones(x),))


def by_vjp_with_results(f):
    """The result, the cotangent and the captured values of ``vjp`` without copies."""

    def run(x):
        out, pull = lt.vjp(f, x, copy=False)
        return out, *pull(1.0), *pull.captured

    return run


def by_vmap(f):
    """The results for two examples."""
    mapped = lt.vmap(f)
    return lambda x: mapped(np.stack([x, x]))


GRADIENTS = {"grad": lt.grad, "vjp": by_vjp, "linearize": by_linearize}
TRANSFORMS = {
    **GRADIENTS,
    "value_and_grad": lt.value_and_grad,
    "jacobian": lt.jacobian,
    "hessian": lt.hessian,
    "jvp": by_jvp,
    "hvp": by_hvp,
    "a function by hvp": by_function_of_hvp,
    "ggnvp": by_ggnvp,
    "vjp without copies": by_vjp_with_results,
    "vmap": by_vmap,
}
