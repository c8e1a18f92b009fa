"""A numpy.random.Generator as an argument: a replay draws as NumPy does and advances it [B9]."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X = np.array([0.5, 1.5, 2.5])
P = np.array([0.2, 0.5, 0.3])
BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937]


def new(seed=3, bits=np.random.PCG64) -> np.random.Generator:
    return np.random.Generator(bits(seed))


DRAWS = {
    "random": lambda g, x: g.random(3),
    "a number": lambda g, x: g.random() * x.astype(np.float32),
    "float32": lambda g, x: g.standard_normal(3, np.float32),
    "normal": lambda g, x: g.normal(x, 2.0),
    "one normal": lambda g, x: g.normal(),
    "uniform": lambda g, x: g.uniform(-1, x, size=(2, 3)),
    "exponential": lambda g, x: g.exponential(x),
    "gamma": lambda g, x: g.gamma(x, 2.0),
    "standard_exponential": lambda g, x: g.standard_exponential(3, method="inv"),
    "integers": lambda g, x: g.integers(5, size=3),
    "one integer": lambda g, x: g.integers(2, 5),
    "integers of a dtype": lambda g, x: g.integers(0, [3, 4, 5], dtype=np.uint8, endpoint=True),
    "two halves of a word": lambda g, x: (
        g.integers(5, dtype=np.int32),
        g.random(dtype=np.float32),
    ),
    "beta": lambda g, x: g.beta(x, 2.0),
    "poisson": lambda g, x: g.poisson(x),
    "binomial": lambda g, x: g.binomial(5, x / 3),
    "lognormal": lambda g, x: g.lognormal(size=2),
    "permutation": lambda g, x: g.permutation(x),
    "permutation of a number": lambda g, x: g.permutation(4),
    "permutation along an axis": lambda g, x: g.permutation(np.outer(x, x), axis=-1),
    "choice": lambda g, x: g.choice(x, 2),
    "choice of a number": lambda g, x: g.choice(5),
    "choice with probabilities": lambda g, x: g.choice(3, (2, 2), p=P),
    "choice without replacement": lambda g, x: g.choice(np.outer(x, x), 2, replace=False, axis=1),
    "shuffle": lambda g, x: (y := x * 2, g.shuffle(y))[0],
    "in a loop": lambda g, x: [g.normal() for _ in range(3)],
}


@in_one_test
@pytest.mark.parametrize("name", DRAWS)
def test_a_replay_draws_what_numpy_draws_and_advances_the_generator(name):
    draw = DRAWS[name]
    f = lt.trace(draw, new(0), X)
    ours, numpys = new(), new()

    for _ in range(3):
        expected, found = draw(numpys, X), f(ours, X)
        assert_close(expected, found, rtol=0, atol=0)
        assert np.result_type(*np.atleast_1d(expected)) == np.result_type(*np.atleast_1d(found))

    assert numpys.bit_generator.state == ours.bit_generator.state


@pytest.mark.parametrize("bits", BITS)
def test_any_bit_generator_is_recorded(bits):
    f = lt.trace(lambda g: g.normal(size=5), new(0, bits))
    ours, numpys = new(3, bits), new(3, bits)
    (
        numpys.random(dtype=np.float32),
        ours.random(dtype=np.float32),
    )  # leaves half a word in the generator

    assert_same(numpys.normal(size=5), f(ours))
    assert_same(numpys.random(3, np.float32), ours.random(3, np.float32))


def test_a_trace_does_not_advance_the_generator():
    rng = new()
    lt.trace(lambda g: g.normal(size=5), rng)

    assert new().bit_generator.state == rng.bit_generator.state


def test_a_generator_in_a_dict_survives_printing_and_parsing():
    f = lt.trace(lambda d: d["rng"].normal(d["x"]), {"rng": new(0), "x": X})

    found = lt.parse(lt.dumps(f))({"rng": new(), "x": X})

    assert_same(new().normal(X), found)


def test_parameters_of_distributions_have_derivatives():
    def f(rng, x, y):
        return (rng.normal(x, y) * rng.uniform(x, y) + rng.exponential(y)).sum()

    h = 1e-6
    steps = h * np.eye(3)
    by_x = [(f(new(), X + d, X + 1) - f(new(), X - d, X + 1)) / (2 * h) for d in steps]
    by_y = [(f(new(), X, X + 1 + d) - f(new(), X, X + 1 - d)) / (2 * h) for d in steps]

    found = lt.grad(f, argnums=(1, 2))(new(), X, X + 1)

    assert_close((np.array(by_x), np.array(by_y)), found, rtol=1e-5)
    with pytest.raises(lt.MissingRule, match="not a differentiable function"):
        lt.grad(lambda g, x: g.beta(x, 2.0).sum(), argnums=1)(new(), X)


def test_unrecorded_methods_are_errors_with_a_remedy():
    with pytest.raises(lt.MissingRule, match=r"Generator\.bytes is not recorded\n.*letir.random"):
        lt.trace(lambda g: g.bytes(2), new())
    with pytest.raises(lt.MissingRule, match=r"RandomState\.bytes is not recorded"):
        lt.trace(lambda g: g.bytes(2), np.random.RandomState(0))
    with pytest.raises(lt.DTypeError, match="a random generator changes with each draw"):
        lt.trace(lambda g, x: g.normal() * x, new(), X, static_argnums=0)
    with pytest.raises(lt.MissingRule, match=r"map over keys of letir\.random"):
        lt.vmap(lambda g, x: g.normal(x), in_axes=(None, 0))(new(), X)


def test_a_program_that_would_advance_a_constant_generator_is_refused():
    f = lt.trace(lambda g, x: g.normal(x), new(), X)

    with pytest.raises(
        lt.TraceError, match="make that array or generator an argument of the traced function"
    ):
        lt.trace(lambda x: f(new(), x), X)


def test_a_program_called_in_a_trace_advances_the_generator_of_the_trace():
    f = lt.trace(lambda g, x: g.normal(x), new(), X)
    g = lt.trace(lambda g, x: f(g, x) + g.random(), new(), X)
    numpys = new()

    assert_same(numpys.normal(X) + numpys.random(), g(new(), X))


def test_a_traced_generator_is_an_instance_of_numpys_class():
    seen = []

    lt.trace(lambda g: seen.append(isinstance(g, np.random.Generator)) or g.random(), new())

    assert [True] == seen


LEGACY = {
    "rand": lambda r: r.rand(2, 3),
    "randn": lambda r: (r.randn(), r.randn(3)),
    "random_sample": lambda r: (r.random_sample(), r.random(2)),
    "randint": lambda r: (r.randint(5), r.randint(2, 9, size=3), r.randint(3, dtype=np.int8)),
    "normal": lambda r: (r.normal(), r.normal(2.0, np.ones(3)), r.standard_normal((2, 1))),
    "uniform": lambda r: (r.uniform(), r.uniform(1.0, 2.0, 3)),
    "exponential": lambda r: (r.exponential(2.0), r.standard_exponential(2)),
    "gamma": lambda r: (r.gamma(2.0, size=2), r.standard_gamma(np.ones(2)), r.beta(1.0, 2.0)),
    "poisson": lambda r: (r.poisson(3.0), r.binomial(5, 0.5, 3)),
    "choice": lambda r: (r.choice(5), r.choice(5, 3, False), r.choice(np.arange(4.0), 2)),
    "permutation": lambda r: (r.permutation(5), r.permutation(np.arange(6.0).reshape(3, 2))),
    "seed": lambda r: (r.seed(4), r.rand())[1],
}


@pytest.mark.parametrize("draw", LEGACY.values(), ids=LEGACY)
def test_a_random_state_is_an_argument_that_draws_and_advances_as_numpys(draw):
    program = lt.trace(draw, np.random.RandomState(0))
    ours, numpys = np.random.RandomState(7), np.random.RandomState(7)
    ours.randn()
    numpys.randn()  # which keeps the second number of the pair

    assert_same(draw(numpys), program(ours))
    assert_same(numpys.randn(3), ours.randn(3))
    assert_same(draw(numpys), lt.jit(draw)(ours))
    assert_same(numpys.randn(3), ours.randn(3))


def test_a_traced_array_is_shuffled_in_place_by_a_random_state():
    def f(r, x):
        y = x.copy()
        r.shuffle(y)
        return y

    ours, numpys, rows = np.random.RandomState(7), np.random.RandomState(7), np.arange(8.0)

    assert_same(f(numpys, rows), lt.trace(f, np.random.RandomState(1), rows)(ours, rows))
    assert isinstance(lt.trace(lambda r: r.rand(), numpys), lt.Lambda)


WRONG_PARAMETERS = {
    "nan": (lambda r, a: r.uniform(0.0, a), 1.0, np.nan, OverflowError),
    "infinite": (lambda r, a: r.uniform(0.0, a), 1.0, np.inf, OverflowError),
    "a range of arrays": (
        lambda r, a: r.uniform(a),
        np.zeros(2),
        np.array([0, np.inf]),
        OverflowError,
    ),
    "a negative range": (lambda r, a: r.uniform(a, 1.0), 0.0, 2.0, ValueError),
    "normal": (lambda r, a: r.normal(0.0, a), 1.0, -1.0, ValueError),
    "exponential": (lambda r, a: r.exponential(a), np.ones(2), -np.ones(2), ValueError),
    "gamma": (lambda r, a: r.gamma(1.0, a), 1.0, -1.0, ValueError),
}


@pytest.mark.parametrize(
    "draw, right, wrong, error", WRONG_PARAMETERS.values(), ids=WRONG_PARAMETERS
)
def test_parameters_that_numpy_refuses_are_refused(draw, right, wrong, error):
    program, jitted = lt.trace(draw, new(), right), lt.jit(draw)

    assert_same(draw(new(), right), program(new(), right))
    assert_same(draw(new(), right), jitted(new(), right))
    with pytest.raises(error):
        lt.trace(draw, new(), wrong)
    with pytest.raises(error):
        jitted(new(), wrong)
    with pytest.raises(lt.GuardError):
        program(new(), wrong)
