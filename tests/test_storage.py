"""save and load of programs and Gradients."""

import numpy as np
import pytest

import letir as lt

X = np.array([1.0, 2.0])


def test_a_gradient_survives_a_file(tmp_path):
    g = lt.differentiate(lt.trace(lambda p: {"y": np.tanh(p["w"]) * p["w"]}, {"w": X}))

    lt.save(g, tmp_path / "g.letir")
    again = lt.load(tmp_path / "g.letir")

    assert (g.f, g.df, str(g.out_tree)) == (again.f, again.df, str(again.out_tree))
    out, residuals = again.forward({"w": X})
    np.testing.assert_array_equal(np.tanh(X) * X, out["y"])
    np.testing.assert_allclose(
        np.tanh(X) + X * (1 - np.tanh(X) ** 2), again.backward(residuals, np.ones(2))[0], rtol=1e-14
    )


def test_a_program_survives_a_file(tmp_path):
    f = lt.trace(lambda x: x * np.arange(2.0), X)

    lt.save(f, tmp_path / "f.letir")

    assert f == lt.load(tmp_path / "f.letir")


def test_other_things_are_refused(tmp_path):
    with pytest.raises(lt.DTypeError, match="a Lambda or a Gradient is expected, found int"):
        lt.save(3, tmp_path / "x.letir")
