"""Eager mode against PyTorch's, on random programs with in-place changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letir import LetirError, Variable

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

LEAVES = np.array([0.5, -1.0, 2.0, 0.25]), np.array([1.5, 0.75, -0.5, 1.0])
MAKES = {
    "add": lambda xp, x, y, n, i: x[:n] + y[:n],
    "mul": lambda xp, x, y, n, i: x[:n] * y[:n],
    "sin": lambda xp, x, y, n, i: xp.sin(x),
    "exp": lambda xp, x, y, n, i: xp.exp(x * 0.1),
    "sqrt": lambda xp, x, y, n, i: xp.sqrt(x * x + 1.0),
    "view": lambda xp, x, y, n, i: x[: max(1, len(x) // 2)],
    "detach": lambda xp, x, y, n, i: x.detach() * 1.0,
}
CHANGES = {
    "scale": lambda x, y, n, i: x.__imul__(1.5),
    "shift": lambda x, y, n, i: x.__iadd__(y[:1] * 1.0),
    "item": lambda x, y, n, i: x.__setitem__(i, y[0] * 2.0),
    "slice": lambda x, y, n, i: x.__setitem__(slice(n), y[:n] * 0.5),
}
LINES = st.tuples(st.sampled_from([*MAKES, *CHANGES]), *[st.floats(0, 1, exclude_max=True)] * 3)


def run(xp, leaves, lines) -> list:
    """The gradients of the leaves, and the value, of the sum of all values of a program."""
    values = [leaf * 1.0 for leaf in leaves]
    for name, *places in lines:
        x, y = (values[int(place * len(values))] for place in places[:2])
        n, i = min(len(x), len(y)), int(places[2] * len(x))
        if name in MAKES:
            values.append(MAKES[name](xp, x, y, n, i))
        else:
            CHANGES[name](x, y, n, i)
    out = sum(value.sum() for value in values)
    out.backward()
    return [*[leaf.grad.detach().numpy() for leaf in leaves], out.item()]


@settings(max_examples=1000)
@given(st.lists(LINES, max_size=12))
def test_random_programs_have_the_gradients_and_errors_of_torch(lines):
    """[E1], [B6]"""
    tensors = [torch.tensor(leaf, requires_grad=True) for leaf in LEAVES]
    variables = [Variable(leaf.copy(), requires_grad=True) for leaf in LEAVES]
    try:
        expected = run(torch, tensors, lines)
    except RuntimeError:
        with pytest.raises(LetirError):
            run(np, variables, lines)
        return
    for one, other in zip(expected, run(np, variables, lines), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
