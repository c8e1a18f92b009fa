"""Generators that draw themselves in plans: NumPy's numbers, states and errors."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([0.5, 1.5, 2.5])
OUTSIDE = np.random.default_rng(5)


def walk(x, g):
    """A walk whose steps depend on what was drawn before."""
    for _ in range(4):
        step = g.normal(size=3) * 0.5
        x = np.where(np.log(g.uniform()) < (x * step).sum(), x + step, x)
    return x, g.binomial(20, 0.25) / 20


FUNCTIONS = {
    "walk": walk,
    "integers": lambda x, g: x[g.integers(0, 3, size=5)] + g.integers(2),
    "floats": lambda x, g: x * g.random((2, 3)) + g.standard_exponential() * g.poisson(x),
    "small": lambda x, g: g.random(3, np.float32) + g.integers(0, 9, 3, dtype=np.uint8),
    "choice": lambda x, g: (g.choice(x, 2), g.permutation(x), g.choice(4, p=[0.1, 0.2, 0.3, 0.4])),
    "numbers": lambda x, g: [g.beta(0.5, 2) * 1.5, g.geometric(0.3) + 1, g.uniform(-1, 1)],
    "shuffle": lambda x, g: (y := x * 2, g.shuffle(y))[0],
    "outside": lambda x, g: x + OUTSIDE.normal(size=3) + g.normal() + OUTSIDE.random(),
    "global": lambda x, g: x + np.random.rand(3) * np.random.normal() + np.random.randint(5),
}


@in_one_test
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
def test_warm_calls_draw_and_advance_as_numpy(name, bits):
    f = FUNCTIONS[name]
    fast, found, numpys = lt.jit(f), [], np.random.Generator(bits(3))
    for call, g in ((f, numpys), (fast, np.random.Generator(bits(3)))):
        OUTSIDE.bit_generator.state = np.random.PCG64(7).state
        np.random.seed(8)
        found.append([[call(X, g) for _ in range(12)], g.random(), OUTSIDE.random()])
        found[-1].append(np.random.normal())

    assert_same(found[0], found[1])
    assert fast.__letir_executor__.quick or name == "global"
    assert ["own_draw"] == sorted({b.op.name for b in plan_of(fast).binds if b.op.random})


def plan_of(fast):
    """The plan that ran last."""
    return fast.debug_state().plans[0].plan


def test_a_random_state_draws_itself():
    def f(x, g):
        return x * g.randn(3) + g.normal() + g.randint(5)

    fast, ours, numpys = lt.jit(f), np.random.RandomState(3), np.random.RandomState(3)
    for _ in range(12):
        assert_same(f(X, numpys), fast(X, ours))

    assert fast.__letir_executor__.quick
    assert numpys.normal() == ours.normal()


def reseeded(x, r):
    r.seed(5)
    first = x * r.randn(3)
    r.seed(6)
    return first + r.normal() if first[0] > 0 else r.rand(3)


@pytest.mark.parametrize("is_global", [False, True])
def test_a_seed_in_a_function_is_set_in_plans(is_global):
    """Also for a generator that holds a second normal number, and where a branch differs."""
    module = np.random.mtrand._rand
    ours, numpys = np.random.RandomState(3), np.random.RandomState(3)
    fast = lt.jit(reseeded) if not is_global else lt.jit(lambda x: reseeded(x, np.random))

    for k in range(14):
        x = X if k < 10 or k % 2 else -X
        numpys.normal()
        expected = reseeded(x, numpys)
        if is_global:
            np.random.normal()
            assert_same(expected, fast(x))
            assert_same(numpys.get_state(legacy=False), module.get_state(legacy=False))
        else:
            ours.normal()
            assert_same(expected, fast(x, ours))
            assert_same(numpys.get_state(legacy=False), ours.get_state(legacy=False))
    names = [bind.op.name for bind in plan_of(fast).binds if "own" in bind.op.name]
    assert names[:2] == ["own_seed", "own_draw"]


def test_a_function_that_starts_with_a_seed_needs_no_snapshot():
    fast = lt.jit(lambda x: reseeded(x, np.random))
    for _ in range(12):
        fast(X)

    (quick,) = fast.__letir_executor__.quick
    assert quick.in_parts is not None
    assert "restore" not in quick.own_call.__globals__


def test_another_bit_generator_is_another_call():
    fast = lt.jit(walk)
    for bits in (np.random.PCG64, np.random.MT19937, np.random.PCG64, np.random.SFC64):
        for _ in range(10):
            g = np.random.Generator(bits(3))
            assert_same(walk(X, np.random.Generator(bits(3))), fast(X, g))


def test_one_generator_given_twice_draws_in_the_order_of_the_function():
    def f(g, h):
        return g.normal(), h.normal(), g.random(2)

    fast, ours, numpys = lt.jit(f), np.random.default_rng(3), np.random.default_rng(3)
    apart = np.random.default_rng(1), np.random.default_rng(2)
    for _ in range(12):
        fast(*apart)

    assert f(numpys, numpys)[:2] == fast(ours, ours)[:2]


def test_an_error_leaves_numpys_state():
    def f(p, g):
        first = g.normal()
        return first + g.binomial(3, p)

    fast, ours, numpys = lt.jit(f), np.random.default_rng(3), np.random.default_rng(3)
    for p in [0.5] * 12 + [-1.0, 0.25, np.nan]:
        found = []
        for call, g in ((f, numpys), (fast, ours)):
            try:
                found.append(call(p, g))
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1]
        assert numpys.bit_generator.state == ours.bit_generator.state


def test_a_branch_not_taken_before_draws_from_the_same_state():
    def f(x, g):
        y = x + g.normal(size=3)
        return y * g.random() if y.sum() > 0 else y - g.poisson(3.0)

    fast, ours, numpys = lt.jit(f), np.random.default_rng(3), np.random.default_rng(3)
    for n in range(40):
        shift = X - 2 * (n % 3)
        assert_same(f(shift, numpys), fast(shift, ours))


def test_a_warning_in_the_middle_repeats_no_draw():
    def f(x, g):
        return g.random() + np.log(x) * g.random()

    fast, ours, numpys = lt.jit(f), np.random.default_rng(3), np.random.default_rng(3)
    for n in range(14):
        x = X - (3.0 if n > 11 else 0.0)
        with np.errstate(invalid="ignore" if n < 12 else "warn"):
            if n < 12:
                assert_same(f(x, numpys), fast(x, ours))
                continue
            with pytest.warns(RuntimeWarning, match="invalid value"):
                expected = f(x, numpys)
            with pytest.warns(RuntimeWarning, match="invalid value"):
                assert_same(expected, fast(x, ours))


def test_a_state_of_words_is_drawn_from_and_advanced():
    fast = lt.compile(lt.trace(walk, X, np.random.default_rng(3)))
    expected = fast(X, np.random.default_rng(3))
    words = lt.ast.pytrees.flatten(np.random.default_rng(3))[0][0]
    plain = np.array(words)

    assert_same(expected[0], fast.run([X, plain])[0])
    assert plain.tolist() != words.tolist()
