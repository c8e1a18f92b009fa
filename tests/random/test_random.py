"""Random numbers from keys: reproducible, with the right distribution and derivatives [B9]."""

import itertools

import numpy as np
import pytest
from scipy import stats

import letir as lt
from letir import random
from letir.ast.text.parser import parse
from letir.testing import assert_close, assert_same, check_grads

KEY = random.key(7)
MANY = 20_000
P = np.array([0.1, 0.6, 0.3])


def fits(numbers, cdf) -> bool:
    """Whether the numbers pass a Kolmogorov-Smirnov test for this distribution at level 0.001."""
    return stats.kstest(np.ravel(numbers), cdf).pvalue > 1e-3


# ---- the same numbers in every mode ----

DRAWS = {
    "normal": (random.normal, (None, np.zeros(3), 2.0)),
    "uniform": (random.uniform, (None, np.zeros(3), 2.0)),
    "exponential": (random.exponential, (None, np.ones(3))),
    "bernoulli": (random.bernoulli, (P,)),
    "categorical": (random.categorical, (np.log(P), -1, (4,))),
    "randint": (random.randint, ((4,), 0, np.array(9))),
    "permutation": (random.permutation, (P,)),
    "choice": (random.choice, (P, (2,), False, P)),
    "gamma": (random.gamma, (np.array([0.5, 2.0]), (3, 2))),
    "truncated_normal": (random.truncated_normal, (-1.0, np.array([0.5, 2.0]))),
    "numbers below": (random.choice, (5, (2,), True)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_replay_a_text_and_a_call_outside_of_a_trace_give_the_same_numbers(name):
    draw, args = DRAWS[name]
    f = lt.trace(lambda key: draw(key, *args), KEY)
    expected = draw(KEY, *args)

    for found in (f(KEY), parse(lt.dumps(f))(KEY), draw(KEY.astype(np.int64), *args)):
        assert_same(expected, found)
    namespace: dict = {}
    exec(lt.to_source(f), namespace)
    assert_same(expected, namespace["f"](KEY))


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_is_one_bind_with_its_key_as_an_operand(name):
    draw, args = DRAWS[name]

    f = lt.trace(lambda key: draw(key, *args), KEY)

    assert [True] == [b.op.random for b in f.binds if b.op.name != "constant"]
    assert f.params[0] in f.binds[-1].args


@pytest.mark.parametrize("name", DRAWS)
def test_mapped_keys_give_what_a_loop_gives(name):
    draw, args = DRAWS[name]
    keys = random.split(KEY, 3)

    found = lt.vmap(lambda key: draw(key, *args))(keys)

    assert_same(np.stack([draw(key, *args) for key in keys]), found)


def test_eager_variables_draw_the_same_numbers():
    x = lt.Variable(np.ones(3), requires_grad=True)

    y = random.normal(KEY, None, x, 2.0)
    y.backward(np.ones(3))

    assert_same(random.normal(KEY, None, np.ones(3), 2.0), y.data)
    assert_same(np.ones(3), x.grad.data)


def test_a_draw_of_symbolic_shape_runs_at_other_sizes():
    def noisy(key, x):
        return random.normal(key, None, x, 1.0) + random.bernoulli(key, 0 * x + 0.5)

    f = lt.trace(noisy, lt.ShapeDtype((2,), np.uint64), lt.ShapeDtype(("n", 3)))

    for n in (1, 4):
        assert_same(noisy(KEY, np.zeros((n, 3))), f(KEY, np.zeros((n, 3))))


def test_numbers_agree_with_numpys_philox():
    generator = np.random.Generator(np.random.Philox(key=KEY))

    assert_same(generator.standard_normal((2, 3)), random.normal(KEY, (2, 3)))


# ---- keys ----


def test_a_traced_seed_gives_the_key_of_the_same_python_int():
    f = lt.trace(random.key, 0)

    for seed in (0, 3, -1, -(2**40)):
        assert_same(random.key(seed), f(seed))
    assert_same(np.array([1, 5], np.uint64), random.key(1 + (5 << 64)))


def test_split_keys_do_not_depend_on_their_number_and_differ():
    keys = random.split(KEY, 1000)

    assert_same(keys[:2], random.split(KEY))
    assert 1000 == len({key.tobytes() for key in keys})
    assert (10, 100, 2) == random.split(KEY, (10, 100)).shape


def test_keys_split_from_one_key_draw_independently():
    keys = [KEY, *random.split(KEY, 3), random.fold_in(KEY, 0), random.fold_in(KEY, 1)]
    numbers = np.stack([random.normal(key, (MANY,)) for key in keys])

    off = np.corrcoef(numbers)[~np.eye(len(keys), dtype=bool)]

    assert np.abs(off).max() < 4 / np.sqrt(MANY)
    assert fits(numbers.sum(0) / np.sqrt(len(keys)), stats.norm.cdf)


def test_first_numbers_of_split_and_folded_keys_follow_the_distribution():
    keys = random.split(KEY, 4000)
    folded = random.fold_in(KEY, np.arange(4000))

    assert fits(random.uniform(keys, ()), stats.uniform.cdf)
    assert fits(random.uniform(folded, ()), stats.uniform.cdf)
    assert fits(random.normal(folded, ()), stats.norm.cdf)


def test_consecutive_seeds_draw_independently():
    first = np.array([random.uniform(random.key(seed), ()) for seed in range(4000)])

    assert fits(first, stats.uniform.cdf)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 4 / np.sqrt(4000)


def test_a_value_that_is_not_a_key_is_refused():
    with pytest.raises(lt.DTypeError, match=r"a random key is two integers.*\n.*letir.random.key"):
        random.normal(np.zeros(2), (3,))
    with pytest.raises(lt.DTypeError, match="a random key is two integers"):
        random.uniform(np.arange(3), (3,))


# ---- distributions ----


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_numbers_follow_their_distribution(dtype):
    shape = (MANY,)

    assert fits(random.normal(KEY, shape, 1.0, 2.0, dtype), stats.norm(1, 2).cdf)
    assert fits(random.uniform(KEY, shape, -1.0, 2.0, dtype), stats.uniform(-1, 3).cdf)
    assert fits(random.exponential(KEY, shape, 2.0, dtype), stats.expon(scale=2).cdf)
    assert dtype == random.normal(KEY, shape, dtype=dtype).dtype


def counted(numbers, p) -> bool:
    """Whether integers pass a chi-squared test for these probabilities at level 0.001."""
    found = np.bincount(np.ravel(numbers), minlength=len(p))
    return stats.chisquare(found, np.asarray(p) * np.size(numbers)).pvalue > 1e-3


def test_choices_have_their_probabilities():
    even = np.full(3, 1 / 3)

    assert counted(random.bernoulli(KEY, 0.3, (MANY,)), [0.7, 0.3])
    assert counted(random.categorical(KEY, np.log(P), shape=(MANY,)), P)
    assert counted(random.choice(KEY, 3, (MANY,), p=P), P)
    assert counted(random.choice(KEY, 3, (MANY,)), even)
    assert counted(random.randint(KEY, (MANY,), 0, 3), even)


def test_every_permutation_is_equally_likely():
    numbers = {order: i for i, order in enumerate(itertools.permutations(range(3)))}
    orders = [random.permutation(key, 3) for key in random.split(KEY, 6000)]

    assert counted([numbers[tuple(map(int, order))] for order in orders], np.full(6, 1 / 6))


def test_choices_without_replacement_have_the_probabilities_of_successive_draws():
    found = [random.choice(key, 3, (2,), False, P) for key in random.split(KEY, 6000)]
    pairs = {(i, j): P[i] * P[j] / (1 - P[i]) for i in range(3) for j in range(3) if i != j}
    numbers = {pair: i for i, pair in enumerate(pairs)}

    assert counted([numbers[tuple(map(int, pair))] for pair in found], list(pairs.values()))


def test_a_permutation_holds_every_element():
    x = np.arange(12.0).reshape(3, 4)

    assert_same(x, np.sort(random.permutation(KEY, x, axis=-1), axis=-1))
    assert_same(np.arange(5), np.sort(random.permutation(KEY, 5)))


def test_an_invalid_choice_is_refused():
    with pytest.raises(lt.ShapeError, match="cannot choose 4 of 3 without replacement"):
        random.choice(KEY, 3, (4,), replace=False)
    with pytest.raises(lt.ShapeError, match="p must have 3 probabilities"):
        random.choice(KEY, 3, (4,), p=P[:2])
    with pytest.raises(ValueError, match="low >= high"):
        random.randint(KEY, (2,), 3, 3)


# ---- derivatives ----


def test_random_numbers_are_differentiated_by_reparameterisation():
    loc, scale = np.array([0.5, -1.0]), np.array([0.5, 2.0])
    for draw in (random.normal, random.uniform):
        check_grads(lambda a, b, draw=draw: draw(KEY, None, a, b), (loc, scale), order=2)
    check_grads(lambda a: random.exponential(KEY, None, a), (scale,), order=2)
    check_grads(lambda x: random.permutation(KEY, x) ** 2, (loc,), order=2)
    check_grads(lambda x: random.choice(KEY, x, (5,)) ** 2, (loc,), order=2)


def test_the_gradient_of_an_expectation_is_estimated():
    """E[(m + s z)**2] = m**2 + s**2."""

    def loss(m, s):
        return (random.normal(KEY, (MANY,), m, s) ** 2).mean()

    found = lt.grad(loss, (0, 1))(1.5, 0.5)

    assert_close((3.0, 1.0), found, rtol=0.05)


def test_gamma_numbers_follow_their_distribution():
    for a in (0.3, 2.5, 40.0):
        assert fits(random.gamma(KEY, a, (MANY,)), stats.gamma(a).cdf)
        assert fits(random.gamma(KEY, a, (MANY,), np.float32), stats.gamma(a).cdf)


def test_the_implicit_derivative_of_a_gamma_number_agrees_with_its_quantile():
    a = np.array([0.2, 0.9, 1.0, 7.5, 300.0])
    x = random.gamma(KEY, a)
    quantile, h = stats.gamma.cdf(x, a), 1e-4 * a
    expected = (stats.gamma.ppf(quantile, a + h) - stats.gamma.ppf(quantile, a - h)) / (2 * h)

    found = lt.grad(lambda a: random.gamma(KEY, a).sum())(a)

    assert_close(expected, found, rtol=1e-5)


def test_the_gradient_of_the_expectation_of_a_gamma_number_is_estimated():
    """E[x**2] = a + a**2."""
    a = 2.5
    shape = (MANY,)

    found = lt.grad(lambda a: (random.gamma(KEY, a, shape) ** 2).mean())(a)
    second = lt.grad(lt.grad(lambda a: (random.gamma(KEY, a, shape) ** 2).mean()))(a)

    assert_close(1 + 2 * a, found, rtol=0.05)
    assert_close(2.0, second, rtol=0.1)


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 0.5), (2.0, 9.0), (-9.0, -7.0), (6.0, 40.0)])
def test_truncated_normal_numbers_follow_their_distribution(lower, upper):
    numbers = random.truncated_normal(KEY, lower, upper, (MANY,))

    assert fits(numbers, stats.truncnorm(lower, upper).cdf)
    assert ((lower <= numbers) & (numbers <= upper)).all()


def test_truncated_normal_numbers_have_derivatives_with_respect_to_the_bounds():
    lower, upper = np.array([-1.0, 0.5, -3.0]), np.array([0.5, 2.0, -1.0])

    check_grads(lambda a, b: random.truncated_normal(KEY, a, b), (lower, upper))


# ---- keys that are used twice ----


def reuses(f, *args) -> list:
    return [[b.op.name for b in r.binds] for r in random.reused_keys(lt.trace(f, *args))]


def test_a_key_that_draws_twice_is_found():
    def f(key, x):
        a, b = random.split(key)
        x = lt.nn.dropout(x + random.normal(a, (3,)), a, rate=0.5)
        return x + random.normal(b, (3,))

    assert [["random_normal", "dropout"]] == reuses(f, KEY, np.ones(3))


def test_reading_one_row_of_keys_twice_is_reuse():
    def f(key):
        keys = random.split(key, 2)
        return random.normal(keys[1]) + random.uniform(keys[-1])

    assert [["random_normal", "random_uniform"]] == reuses(f, KEY)


def test_drawing_from_a_key_that_was_split_is_reuse():
    assert [["random_split", "random_normal"]] == reuses(
        lambda key: (random.split(key), random.normal(key)), KEY
    )


def test_folding_in_different_numbers_is_not_reuse():
    def f(key, i):
        return [random.normal(random.fold_in(key, n)) for n in (0, 1, i)]

    assert [] == reuses(f, KEY, 5)
    assert [["random_normal"] * 2] == reuses(lambda key: (f(key, 2), f(key, 3)[0]), KEY)[:1]


def test_a_gradient_that_repeats_a_draw_is_not_reuse():
    f = lt.trace(lambda key, s: (random.normal(key, (3,), 0.0, s) ** 2).sum(), KEY, 2.0)

    assert () == random.reused_keys(lt.value_and_grad(f, argnums=1))


def test_a_report_of_key_reuse_has_the_lines_and_the_remedy():
    f = lt.trace(lambda key: random.normal(key) + random.normal(key), KEY)

    (found,) = random.reused_keys(f)

    assert "test_random.py" in str(found)
    assert "letir.random.split(key)" in str(found)


def test_results_together_with_several_draws_are_numpys_scalars():
    def f(z, rng):
        points, weights, found = np.zeros(5), np.ones(5) / 5, []
        for measured in z:
            points = points + rng.normal(size=5)
            weights = weights * np.exp(-0.5 * (measured - points) ** 2)
            weights /= weights.sum()
            found.append(np.average(points, weights=weights))
        return found

    z = np.linspace(-1.0, 1.0, 4)
    jitted = lt.jit(f)

    for _ in range(2):
        expected = f(z, np.random.default_rng(3))
        actual = jitted(z, np.random.default_rng(3))
        assert [np.float64] * 4 == list(map(type, actual))
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", ["none", "(0,)", "2"])
def test_a_permutation_in_a_text_has_an_axis_of_its_array(axis):
    text = f"""
    lambda %0: uint64[2], %1: float64[3] {{
      %2: float64[3] = random_permutation(%0, %1, axis={axis})
      return %2
    }}"""

    with pytest.raises(lt.LetirError, match="axis"):
        lt.check(lt.parse(text))
