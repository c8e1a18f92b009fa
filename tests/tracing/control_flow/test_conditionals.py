"""cond and switch: all branches are recorded; only the chosen one is run and differentiated."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, LetirError, ShapeError
from letir.eval.evaluator import run_flat
from letir.testing import assert_close, assert_same, check_grads

X, Y = np.linspace(0.2, 1.1, 3), np.array([1.5, -0.5, 2.0])
THREE = [np.sin, np.cos, lambda x: x * x * x]


def choice(p, x, y):
    return lt.cond(
        p > 0, lambda x, y: np.sin(x) * y * np.exp(x), lambda x, y: np.exp(y) * x**2, x, y
    )


def plain(p, x, y):
    return np.sin(x) * y * np.exp(x) if p > 0 else np.exp(y) * x**2


def root(x):
    return lt.cond(x > 0, lambda x: np.sqrt(x) * np.log(x), lambda x: 0.0 * x, x)


def plain_root(x):
    return np.sqrt(x) * np.log(x) if x > 0 else 0.0 * x


@pytest.mark.parametrize("p", [1.0, -1.0])
def test_values_and_derivatives_agree_with_the_branch_taken(p):
    assert_same(plain(p, X, Y), choice(p, X, Y))
    check_grads(lambda x, y: choice(p, x, y), (X, Y), order=2)
    assert_close(
        lt.hessian(lambda x: plain(p, x, Y).sum())(X),
        lt.hessian(lambda x: choice(p, x, Y).sum())(X),
    )


@pytest.mark.parametrize("p", [1.0, -1.0])
def test_a_program_recorded_on_one_branch_replays_on_the_other(p):
    gradient = lt.trace(lt.grad(lambda p, x, y: choice(p, x, y).sum(), argnums=1), 1.0, X, Y)

    assert_close(lt.grad(lambda x: plain(p, x, Y).sum())(X), gradient(p, X, Y))


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_a_switch_clamps_its_index(index):
    expected = THREE[min(max(index, 0), 2)]

    assert_same(expected(X), lt.switch(index, THREE, X))
    assert_close(
        lt.grad(lambda x: expected(x).sum())(X),
        lt.grad(lambda x: lt.switch(np.int64(index), THREE, x).sum())(X),
    )
    check_grads(lambda x: lt.switch(np.int64(index), THREE, x), (X,), order=2)


def test_the_program_has_both_branches_and_what_they_capture_once():
    w = np.float64(2.0)

    f = lt.trace(lambda x, w: lt.cond(x.sum() > 0, lambda x: x * w, lambda x: x - w * w, x), X, w)

    (bind,) = [bind for bind in f.binds if bind.op.name == "cond"]
    assert bind.args[1:] == (f.params[0], f.params[1])
    assert lt.parse(lt.dumps(f)) == lt.check(f)


@pytest.mark.parametrize("pred", [True, 1, -0.5, np.bool_(True), np.array(2), float("nan")])
def test_a_choice_is_made_by_the_truth_of_a_number(pred):
    assert lt.cond(pred, lambda: 1.0, lambda: 2.0) == 1.0
    assert lt.cond(pred * 0 if pred == pred else 0, lambda: 1.0, lambda: 2.0) == 2.0


def test_a_choice_by_a_python_number_is_recorded_too():
    f = lt.trace(lambda x: lt.cond(True, np.sin, np.cos, x), X)

    assert [bind.op.name for bind in f.binds] == ["cond"]
    assert_same(np.sin(X), f(X))


def test_results_nest_and_python_numbers_take_the_dtype_of_the_other_branch():
    x = X.astype("float32")
    out = lt.cond(
        np.bool_(False),
        lambda x: {"a": (x, x.sum()), "b": [True]},
        lambda x: {"a": (x * 2, 0), "b": [x[0] > 0]},
        x,
    )

    assert_same(x * 2, out["a"][0])
    assert_same(np.float32(0), out["a"][1])
    assert_same(np.bool_(True), out["b"][0])
    assert lt.cond(True, lambda: None, lambda: None) is None


# ---- F: the branch not taken has no effect ----


@pytest.mark.parametrize("x", [-4.0, 0.0])
def test_no_nan_comes_from_the_branch_not_taken(x):
    with warnings.catch_warnings(action="error"):
        assert lt.grad(root)(x) == 0
        assert lt.grad(lt.grad(root))(x) == 0
        assert lt.jvp(root, (x,), (1.0,))[1] == 0


def test_no_nan_comes_from_a_branch_that_other_examples_take():
    xs = np.array([1.0, -2.0, 3.0, 0.0])
    of_each = np.array([lt.grad(root)(x) if x > 0 else 0.0 for x in xs])

    with warnings.catch_warnings(action="error"):
        assert_close(np.array([plain_root(x) if x > 0 else 0.0 for x in xs]), lt.vmap(root)(xs))
        assert_close(of_each, lt.vmap(lt.grad(root))(xs))
        assert_close(of_each, lt.grad(lambda xs: lt.vmap(root)(xs).sum())(xs))
        assert_same(np.zeros(4), lt.vmap(lt.grad(root))(-abs(xs)))


def test_only_the_branch_taken_is_computed():
    seen = []

    def noted(x):
        seen.append(float(x))
        return x

    f = lt.trace(
        lambda x: lt.cond(x > 0, lt.opaque(noted, aval=lambda x: x), lambda x: x * 2, x), -1.0
    )
    f(-3.0)
    f(5.0)

    assert seen == [5.0]


def test_the_branch_not_taken_frees_its_operands_c1():
    seen, x = [], np.ones(3)
    alive = weakref.ref(x)

    def noted(y):
        seen.append(alive() is not None)
        return y * 1.0

    look = lt.opaque(noted, aval=lambda y: y)
    f = lt.trace(lambda y, x: lt.cond(y[0] > 0, lambda y, x: look(y), lambda y, x: x, y, x), X, X)
    leaves = [X + 1, x]
    seen.clear()
    del x
    gc.disable()
    try:
        run_flat(f, leaves)
    finally:
        gc.enable()

    assert seen == [False]


def test_residuals_of_the_branch_taken_are_kept_and_not_recomputed():
    gradient = lt.differentiate(lt.trace(choice, 1.0, X, Y), [False, True, True], defined=[True])
    (back,) = [bind for bind in gradient.df.binds if bind.op.name == "cond"]

    names = [bind.op.name for bind in back.attrs["on_true"].binds]
    assert "exp" not in names
    assert "sin" not in names


@pytest.mark.parametrize("axes", [(0, 0, None), (0, None, None), (None, 0, None), (None, None, 0)])
def test_a_batched_conditional_agrees_with_a_loop_over_examples(axes):
    given = (np.array([-1, 0, 1, 2, 3]), np.arange(15.0).reshape(5, 3) / 7, X + np.ones((5, 1)))
    args = tuple([x if axis == 0 else x[1] for x, axis in zip(given, axes, strict=True)])

    def f(i, x, y):
        branches = [lambda: np.sin(x) * y, lambda: np.cos(x) + y, lambda: x * x * y.sum()]
        return lt.switch(i, branches)

    def each(g):
        picked = [
            [x[k] if a == 0 else x for x, a in zip(args, axes, strict=True)] for k in range(5)
        ]
        return np.stack([g(*one) for one in picked])

    assert_close(each(f), lt.vmap(f, axes)(*args))
    gradient = lt.grad(lambda *args: (f(*args) ** 2).sum(), argnums=1)
    assert_close(each(gradient), lt.vmap(gradient, axes)(*args))
    check_grads(lambda x, y: lt.vmap(f, axes)(args[0], x, y), args[1:], order=2)


# ---- eager mode, effects ----


def test_variables_that_branches_use_are_differentiated():
    w, x = lt.Variable(np.full(3, 0.5), requires_grad=True), lt.Variable(X, requires_grad=True)

    lt.cond(x.sum() > 0, lambda x: x * w, lambda x: x, x).sum().backward()

    assert_same(X, w.grad.array)
    assert_same(np.full(3, 0.5), x.grad.array)


def test_effects_happen_once_in_their_order_c5(capsys):
    def f(x):
        lt.debug.print("before")
        out = lt.cond(x > 0, lambda x: (lt.debug.print("inside"), x * x)[1], lambda x: x, x)
        lt.debug.print("after")
        return out

    lt.trace(lt.grad(f), 2.0)(3.0)

    assert capsys.readouterr().out == "before\ninside\nafter\n"


# ---- errors ----


@pytest.mark.parametrize(
    ("call", "error", "lines"),
    [
        (
            lambda: lt.cond(True, lambda x: {"q": x}, lambda x: {"q": x + 1j}, X),
            DTypeError,
            ["result['q']: float64[3] in true_fun, complex128[3] in false_fun", "x.astype"],
        ),
        (
            lambda: lt.cond(True, lambda x: (x, x), lambda x: (x, x[0]), X),
            ShapeError,
            ["result[1]: float64[3] in true_fun, float64[] in false_fun"],
        ),
        (lambda: lt.cond(True, lambda: 1.0, lambda: (1.0,)), DTypeError, ["true_fun: *", "(*,)"]),
        (lambda: lt.cond(X > 0, np.sin, np.cos, X), ShapeError, ["bool[3]", "numpy.where"]),
        (lambda: lt.cond("yes", np.sin, np.cos, X), DTypeError, ["cond", "'yes' of type str"]),
        (lambda: lt.switch(1.5, THREE, X), DTypeError, ["an integer", "float64*[]"]),
        (lambda: lt.switch(0, [], X), ShapeError, ["at least one branch"]),
        (lambda: lt.cond(True, np.sin, np.cos, "x"), DTypeError, ["'x' of type str"]),
    ],
)
def test_an_error_says_what_differs_and_where(call, error, lines):
    with pytest.raises(error) as caught:
        call()

    for line in [*lines, "test_conditionals.py"]:
        assert line in str(caught.value)


def test_an_error_in_a_branch_has_the_let_lines_and_the_users_line():
    f = lt.trace(lambda x, i: lt.cond(i > 0, lambda: x[i], lambda: x[0]), X, np.int64(1))

    with pytest.raises(IndexError) as caught:
        f(X, np.int64(7))

    inner, outer = caught.value.__notes__
    assert "= index(" in inner
    assert "test_conditionals.py" in inner
    assert "= cond(" in outer
    assert len(outer.splitlines()) == 2


def test_a_branch_cannot_ask_for_values():
    with pytest.raises(LetirError, match=r"letir\.cond"):
        lt.cond(True, lambda x: x if x > 0 else -x, lambda x: x, 1.0)
