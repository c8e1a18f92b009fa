"""What to write instead of a name that JAX, PyTorch, autograd or NumPy has and letir has not.

``letir``, ``letir.nn``, ``letir.random`` and Variables load this module when they are asked for a
name that they do not have: the AttributeError then says which name or function does the same here.
"""

import re
from types import ModuleType

import numpy as np

from letir.ast import LATE_BOUND

_CONTROL_FLOW = "letir.cond, letir.switch, letir.while_loop, letir.fori_loop and letir.scan"

# {package: {name in another library: what to write with letir}}
REMEDIES = {
    "letir": {
        "Array": "arrays are numpy.ndarray",
        "ShapeDtypeStruct": "use letir.ShapeDtype",
        "Tensor": "use letir.Variable, or numpy.ndarray",
        "autograd": "use letir.grad, or letir.Variable and letir.eager",
        "block_until_ready": "results are NumPy arrays, which are ready",
        "bool_": "use numpy.bool_",
        "config": "letir has no global settings; see the parameters of letir.jit and letir.trace",
        "deriv": "use letir.jvp(f, (x,), (1.0,))[1]",
        "device_get": "results are NumPy arrays already",
        "device_put": "pass CuPy arrays to run on a GPU",
        "elementwise_grad": "use letir.grad(lambda x: f(x).sum())",
        "enable_grad": "use letir.eager.enable_grad",
        "export": "use letir.save and letir.load",
        "from_numpy": "arrays are NumPy's; letir.Variable(array) records what is computed with it",
        "func": "letir has these transforms itself, such as letir.grad and letir.vmap",
        "functional_call": "parameters are arguments of the function: letir.grad(loss)(params, x)",
        "grad_and_aux": "use letir.grad(f, has_aux=True)",
        "grad_and_value": "use letir.value_and_grad, which returns (value, gradient)",
        "holomorphic_grad": "use letir.grad(f, holomorphic=True)",
        "jnp": "import numpy as np: letir records NumPy's own functions",
        "lax": f"use {_CONTROL_FLOW}, and NumPy's functions for the others",
        "make_ggnvp": "use letir.ggnvp",
        "make_hvp": "use letir.hvp",
        "make_jaxpr": "use letir.trace",
        "make_jvp": "use letir.jvp",
        "make_vjp": "use letir.vjp",
        "manual_seed": "use letir.random.key(seed), or numpy.random.default_rng(seed)",
        "named_scope": "programs keep the source lines of their binds by themselves",
        "nest": "use letir.tree",
        "optim": "use letir.nn.optim",
        "pmap": "letir runs on one device; letir.vmap makes batches",
        "pure_callback": "use letir.opaque",
        "remat": "use letir.checkpoint",
        "set_grad_enabled": "use letir.eager.set_grad_enabled",
        "shard_map": "letir runs on one device; letir.vmap makes batches",
        "tensor": "use letir.Variable, or numpy.array",
        "tree_flatten": "use letir.tree.flatten",
        "tree_leaves": "use letir.tree.leaves",
        "tree_map": "use letir.tree.map",
        "tree_unflatten": "use letir.tree.unflatten",
        "tree_util": "use letir.tree",
    },
    "letir.nn": {
        "Dense": "use letir.nn.linear, a function, which takes the parameters",
        "Embed": "use letir.nn.embedding, a function, which takes the parameters",
        "Module": "letir.nn has functions: parameters are a dict of arrays, see docs/training.md",
        "Parameter": "parameters are arrays, for example in a dict",
        "Sequential": "call one function on the result of the other",
        "dot_product_attention": "use letir.nn.attention",
        "functional": "letir.nn has these functions itself",
        "init": "use letir.nn.initializers",
        "scaled_dot_product_attention": "use letir.nn.attention",
        "swish": "use letir.nn.silu",
    },
    "letir.random": {
        "PRNGKey": "use letir.random.key",
        "default_rng": "use numpy.random.default_rng, whose draws letir records",
        "manual_seed": "there is no global state: make a key, letir.random.key(seed)",
        "seed": "there is no global state: make a key, letir.random.key(seed)",
        "shuffle": "use letir.random.permutation",
    },
    "Variable": {
        "cpu": "a Variable is on the device of its array",
        "cuda": "make it of a CuPy array: it is on the device of its array",
        "dim": "use x.ndim",
        "double": "use x.astype('float64')",
        "float": "use x.astype('float32')",
        "masked_fill": "use numpy.where(mask, value, x)",
        "numel": "use x.size",
        "permute": "use x.transpose(axes)",
        "t": "use x.T",
        "to": "it is on the device of its array; x.astype(dtype) converts it",
        "unsqueeze": "use numpy.expand_dims(x, axis), or x[None]",
    },
}


def missing_name(package: ModuleType, name: str) -> AttributeError:
    """The error of ``package.name``, where the package has no such name."""
    remedy = None if name.startswith("_") else _find_remedy(package, name)
    message = f"module {package.__name__!r} has no attribute {name!r}"
    return AttributeError(f"{message}\n  {remedy}" if remedy else message, name=name, obj=package)


def attribute_remedy(name: str) -> str:
    """What to write instead of ``x.name`` of a Variable, as a further line; empty if unknown."""
    remedy = REMEDIES["Variable"].get(name)
    if remedy is None and name.endswith("_"):
        remedy = "write in place by x += y, x *= y or x[...] = y, of a leaf under letir.no_grad()"
    if remedy is None and callable(getattr(np, name, None)) and not name.startswith("_"):
        remedy = f"use numpy.{name}(x)"
    return f"\n  {remedy}" if remedy else ""


def _find_remedy(package: ModuleType, name: str) -> str | None:
    """What to write instead of ``package.name``; None if nothing here resembles it."""
    if remedy := REMEDIES[package.__name__].get(name):
        return remedy
    if package.__name__ == "letir" and hasattr(np, name):
        return f"use numpy.{name}: letir records NumPy's own functions"
    if package.__name__ == "letir" and name in package.nn.__all__:
        return f"use letir.nn.{name}"
    if package.__name__ == "letir.nn" and name[0].isupper():  # a class of PyTorch or Flax
        functions = {f.replace("_", ""): f for f in vars(package)["__all__"]}
        squashed = name.lower()
        function = functions.get(squashed) or functions.get(re.sub(r"\dd$", "", squashed))
        if function:
            return f"letir.nn has functions, which take the parameters: letir.nn.{function}"
    return None


LATE_BOUND["attribute_remedy"] = attribute_remedy
