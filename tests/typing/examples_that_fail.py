"""Mistakes that type checkers must report, each on a line that says its kind.

Not run: read by ``test_typed_examples``.
"""

import numpy as np

import letir as lt


def loss(x: np.ndarray, rate: float) -> float:
    return float((x * rate).sum())


x = np.ones(3)
program = lt.trace(loss, x, 0.5)

lt.grad(loss)(x)  # E: call-arg
lt.grad(loss)(x, "fast")  # E: arg-type
lt.grad(loss, argnums="x")  # E: arg-type
lt.grad(loss, order=2)  # E: call-overload
lt.grad(3.0)  # E: call-overload
lt.value_and_grad(loss)(x, rates=0.5)  # E: call-arg
lt.jit(loss)(x)  # E: call-arg
lt.jit(loss, static=True)  # E: call-overload
lt.jit(loss)(x, 0.5).shape  # E: attr-defined
lt.vmap(loss)(x, 0.5, 1)  # E: call-arg
lt.dumps(loss)  # E: arg-type
lt.parse(3)  # E: arg-type
lt.compile(loss)  # E: arg-type
lt.checkpoint(loss)("x", 0.5)  # E: arg-type
lt.grad(program).nothing  # E: attr-defined
lt.fori_loop(0, 3, lambda i: 1.0, 0.0)  # E: arg-type,misc
lt.gradient(loss)  # E: attr-defined
lt.nn.linear(x)  # E: call-arg
lt.nn.softmax(x, axes=0)  # E: call-arg
