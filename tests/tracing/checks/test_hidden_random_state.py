"""Draws from hidden random state while a function is traced are errors [B2, B9]."""

import copy
import functools
import os
import random
import secrets
import subprocess
import sys
import threading

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from letir.tracing.checks import hidden_random_state
from tests.each_sample import in_one_test

X = np.ones(3)
RNG = np.random.default_rng(0)


def noise():
    return np.random.normal(size=3)


def global_rng(x):
    return x + RNG.normal(size=3)


def seeded_by_the_system(generator):
    generator.seed()
    return generator.rand()


HAZARDS = {
    "normal": lambda x: x + np.random.normal(size=3),
    "one normal number": lambda x: x + np.random.normal(),
    "rand": lambda x: x * np.random.rand(3),
    "in a condition": lambda x: x if np.random.rand() < 2 else -x,
    "in a function of the module": lambda x: x + noise(),
    "many": lambda x: x + np.random.random(624).sum(),
    "binomial": lambda x: x + np.random.binomial(3, 0.5),
    "shuffle": lambda x: x[np.random.permutation(3)],
    "seeded too late": lambda x: (x + np.random.rand(), np.random.seed(3))[0],
    "seeded by the system": lambda x: (np.random.seed(), x + np.random.rand())[1],
    "seeded again by the system": lambda x: (
        np.random.seed(3) or np.random.seed() or x + np.random.rand()
    ),
    "Python's seeded by the system": lambda x: random.seed(3) or random.seed() or x,
    "its own, seeded by the system": lambda x: seeded_by_the_system(np.random.RandomState(3)) * x,
    "of Python": lambda x: x + random.random(),
    "gauss of Python": lambda x: x + random.gauss(0, 1),
    "a global generator": global_rng,
    "a default": lambda x, rng=RNG: x + rng.random(),
    "a RandomState": lambda x, r=np.random.RandomState(0): x + r.normal(),  # noqa: B008
}


@in_one_test
@pytest.mark.parametrize("name", HAZARDS)
@pytest.mark.parametrize("odd", [False, True])
def test_a_draw_from_hidden_state_is_an_error_that_shows_the_replacement(name, odd):
    """Whether or not the generator holds a second normal number from an earlier draw."""
    np.random.seed(0)
    random.seed(0)
    if odd:
        np.random.normal()
        random.gauss(0, 1)

    with pytest.raises(lt.TraceError, match=r"numbers were drawn from") as raised:
        lt.trace(HAZARDS[name], X)

    assert "letir.random" in str(raised.value)


KEPT = np.random.RandomState(5)


def drops_out(x, seed):
    np.random.seed(seed)
    scale = np.random.normal(size=3)
    scale[0] = x[0]
    order = np.random.permutation(3)
    return x[order] * scale + np.random.choice(3, p=x / x.sum())


SEEDED = {
    "NumPy's": drops_out,
    "Python's": lambda x, seed: random.seed(seed) or x * random.random() + random.gauss(0, 1),
    "a captured one": lambda x, seed: KEPT.seed(seed) or x * KEPT.rand(3),
    "a default": lambda x, seed, r=np.random.RandomState(0): r.seed(seed) or x * r.rand(),  # noqa: B008
    "twice": lambda x, seed: drops_out(x, seed) + drops_out(x, seed + 1),
}


@pytest.mark.parametrize("function", SEEDED.values(), ids=SEEDED)
def test_a_generator_that_the_function_gives_a_seed_draws_constants(function):
    program = lt.trace(function, X, 7)
    expected = function(X, 7)
    after = np.random.rand()

    assert_same(expected, program(X, 7))
    assert_same(function(X * 2, 7), program(X * 2, 7))
    with pytest.raises(lt.GuardError):
        program(X, 8)
    lt.trace(function, X, 7)
    assert function is not SEEDED["NumPy's"] or np.random.rand() == after
    for seed in (7, 8, 7):
        assert_same(function(X, seed), lt.jit(function)(X, seed))


def test_the_error_says_the_line_and_the_function():
    with pytest.raises(lt.TraceError, match=r"letir.random.normal\(key, shape\)") as raised:
        lt.trace(lambda x: x + noise(), X)

    line = noise.__code__.co_firstlineno + 1
    assert f"test_hidden_random_state.py:{line}: normal" in str(raised.value)


def test_a_captured_generator_is_found_in_a_closure_and_a_method():
    rng = np.random.default_rng(0)

    class Model:
        def loss(self, x):
            return (x + rng.normal()).sum()

    for f in (Model().loss, functools.partial(Model.loss, Model())):
        with pytest.raises(lt.TraceError, match="a generator that is not an argument"):
            lt.trace(f, X)


def test_seeds_spawned_from_a_captured_sequence_are_an_error():
    seeds = np.random.SeedSequence(5)

    def f(x):
        return x + np.random.default_rng(seeds.spawn(1)[0]).normal()

    def g(x):
        return x + np.random.default_rng(np.random.SeedSequence(5).spawn(1)[0]).normal()

    with pytest.raises(lt.TraceError, match="not an argument of the function"):
        lt.trace(f, 1.0)
    seeds, jitted = np.random.SeedSequence(5), lt.jit(f)
    assert [jitted(1.0) for _ in range(3)] == [
        1.0 + np.random.default_rng(seed).normal() for seed in np.random.SeedSequence(5).spawn(3)
    ]
    assert lt.trace(g, 1.0)(2.0) == g(2.0)


def test_draws_before_and_after_a_trace_are_allowed():
    np.random.normal()
    f = lt.trace(lambda x: x + 1, X)
    random.gauss(0, 1)
    np.random.normal()
    f = lt.trace(lambda x: f(x) + np.sqrt(x), X)

    assert_same(X + 2, f(X))


def test_checking_does_not_change_the_random_state():
    np.random.seed(5)
    expected = np.random.normal(size=3)
    np.random.seed(5)

    first = np.random.normal()
    lt.trace(np.sin, X)

    assert_same(expected, np.array([first, *np.random.normal(size=2)]))


def test_importing_a_module_during_a_trace_is_not_a_draw():
    code = """
import sys, numpy as np, letir
assert not {"numpy.random", "random"} & sys.modules.keys()
def f(x):
    import random
    import numpy.random
    return letir.nn.dropout(x, 3, rate=0.5)
def g(x):
    return x + np.random.rand()
letir.trace(f, np.ones(3))
print("traced")
"""
    drawn = code.replace("letir.trace(f", "letir.trace(g")
    for source, expected in ((code, "traced"), (drawn, "numbers were drawn from numpy.random")):
        command = [sys.executable, "-c", source]
        found = subprocess.run(command, check=False, capture_output=True, text=True)
        assert expected in found.stdout + found.stderr


def test_an_opaque_operation_may_draw():
    noisy = lt.opaque(
        lambda x: x + np.random.normal(size=3), lambda x: x, name="test_global_draws.noisy"
    )

    f = lt.trace(lambda x: noisy(x) * 2, X)

    assert not np.array_equal(f(X), f(X))


# ---- generators that are not arguments ----


class Holder:
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.items = [np.random.RandomState(1), {"rng": np.random.default_rng(2)}]

    def of_attribute(self, x):
        return x + self.rng.normal(x, 2.0)

    def of_list(self, x):
        return x * self.items[0].rand(3)

    def of_dict(self, x):
        return x[self.items[1]["rng"].permutation(3)]

    def __call__(self, x):
        return x if self.rng.random() < 0.5 else -x


def in_closure():
    rng = np.random.default_rng(3)
    return lambda x: x + rng.poisson(3.0, 3)


def in_gradient():
    rng = np.random.default_rng(4)
    return lt.grad(lambda x: (x**2 * rng.normal(x)).sum())


REACHED = {
    "an attribute": lambda: Holder().of_attribute,
    "a list": lambda: Holder().of_list,
    "a dict": lambda: Holder().of_dict,
    "a callable object": Holder,
    "a closure": in_closure,
    "a gradient": in_gradient,
    "a partial": lambda: functools.partial(
        lambda rng, x: x + rng.normal(), np.random.default_rng(5)
    ),
    "a keyword": lambda: functools.partial(
        lambda x, rng: x + rng.integers(0, 9, 3), rng=np.random.default_rng(6)
    ),
    "numpy.random": lambda: lambda x: x + np.random.normal(size=3) + np.random.rand(),
    "its own seed": lambda: lambda x: (np.random.seed(8), x + np.random.randn(3))[1],
    "its own": lambda: lambda x: x + np.random.default_rng(7).normal(size=3),
    "its own RandomState": lambda: lambda x: x + np.random.RandomState(7).normal(x),
}


@pytest.mark.parametrize("make", REACHED.values(), ids=REACHED)
def test_jit_draws_the_numbers_that_numpy_draws(make):
    np.random.seed(1)
    numpys = make()
    expected = [numpys(X) for _ in range(4)]
    after = np.random.rand()
    np.random.seed(1)
    ours = lt.jit(make())

    assert_same(expected, [ours(X) for _ in range(4)])
    assert after == np.random.rand()


@pytest.mark.parametrize("make", REACHED.values(), ids=REACHED)
def test_derivatives_draw_while_they_record(make):
    np.random.seed(1)
    numpys = make()
    expected = [numpys(X) for _ in range(3)]
    np.random.seed(1)
    ours = make()

    assert_same(expected, [lt.vjp(ours, X)[0] for _ in range(3)])


@in_one_test
@pytest.mark.parametrize("name", [name for name in REACHED if not name.startswith("its own")])
@pytest.mark.parametrize("record", [lt.trace, lambda f, x: lt.vmap(f)(np.stack([x, x]))])
def test_draws_that_a_program_would_repeat_are_errors(record, name):
    for _ in range(2):  # also when the state before is that after
        np.random.seed(1)
        with pytest.raises(lt.TraceError, match=r"numbers were drawn from.*\n.*at .*test_hidden"):
            record(REACHED[name](), X)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.default_rng().normal(),
        lambda: np.random.RandomState().rand(),
        lambda: random.Random().random(),
    ],
)
def test_jit_calls_functions_whose_generators_have_no_seed_as_python(draw):
    f = lt.jit(lambda x: x + draw())

    assert len({float(f(X)[0]) for _ in range(3)}) == 3
    assert f.counters["compiles"] == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: random.random,
        lambda rng: lambda: random.randint(0, 9),
        lambda rng: lambda: random.seed(3) or random.random(),
        lambda rng: lambda: copy.deepcopy(rng).normal() + rng.normal(),
        lambda rng: lambda: rng.spawn(1)[0].normal() + rng.normal(),
        lambda rng: lambda: np.random.set_state(np.random.get_state()) or np.random.rand(),
        lambda rng: rng.normal,
        lambda rng: functools.partial(rng.normal, size=3),
        lambda rng: lambda normal=rng.normal: normal() * random.Random(2).random(),
    ],
)
def test_jit_calls_functions_whose_draws_have_no_state_to_hand_over_as_python(make):
    """The state goes on from where it was before the recording."""

    def results(transform):
        random.seed(5)
        np.random.seed(5)
        draw = make(np.random.default_rng(4))
        f = transform(lambda x: x + draw())
        return [(f(X), random.random(), np.random.rand()) for _ in range(4)]

    assert_same(results(lambda f: f), results(lt.jit))


def test_a_seeded_random_of_the_functions_own_is_a_constant():
    def f(x):
        return x + random.Random(3).gauss(0, 1)

    assert_same(f(X), lt.jit(f)(X))
    assert_same(f(X), lt.trace(f, X)(X))


def test_nothing_is_left_in_place_after_an_error_and_other_threads_draw():
    kinds = (np.random.Generator, np.random.RandomState, random.Random.__base__)
    before = [dict(kind.__dict__) for kind in kinds]
    found = []

    def failing(x):
        thread = threading.Thread(target=lambda: found.append(RNG.normal()))
        thread.start()
        thread.join()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lt.trace(failing, X)

    assert 1 == len(found)
    assert before == [dict(kind.__dict__) for kind in kinds]


class OneRead:
    """A bit generator whose state can be read once."""

    def __init__(self):
        self.bits = np.random.MT19937(0)
        self.capsule, self.lock, self.reads = self.bits.capsule, self.bits.lock, 0

    @property
    def state(self):
        self.reads += 1
        if self.reads > 1:
            raise MemoryError
        return self.bits.state


def test_nothing_is_left_in_place_if_states_cannot_be_compared():
    before, rng = dict(vars(np.random.Generator)), np.random.Generator(OneRead())

    with pytest.raises(MemoryError):
        lt.trace(lambda x: x if rng else -x, 1.0)

    assert before == dict(vars(np.random.Generator))
    assert not hidden_random_state._started


def test_a_program_for_variables_refuses_generators_that_are_not_arguments():
    with pytest.raises(lt.TraceError, match="a generator that is not an argument"):
        lt.jit(lambda x: x * RNG.normal())(lt.Variable(X, requires_grad=True))


def test_draws_are_seen_if_the_function_is_the_first_to_read_numpy_random():
    """NumPy imports the module when it is first read."""
    code = """
import sys, numpy as np, letir as lt
assert "numpy.random" not in sys.modules
try:
    lt.trace(lambda x: x + np.random.default_rng().normal(), 1.0)
except lt.TraceError as error:
    print(str(error)[:40])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "while the function was traced, numbers w" == found.stdout.strip()


class Keeper:
    """An object that keeps methods of generators."""

    def __init__(self):
        self.draw = np.random.default_rng(0).normal
        self.of_python = [random.Random(0).random]
        self.system = random.SystemRandom()


KEEPER = Keeper()
UNSEEN = {
    "a method in an attribute": lambda x: x + KEEPER.draw(),
    "a method of Python's in a list": lambda x: x + KEEPER.of_python[0](),
    "SystemRandom": lambda x: x + KEEPER.system.random(),
    "secrets": lambda x: x + secrets.randbelow(9),
    "urandom": lambda x: x + os.urandom(1)[0],
}


@pytest.mark.parametrize("f", UNSEEN.values(), ids=UNSEEN)
def test_draws_by_kept_methods_and_from_the_system_are_errors(f):
    with pytest.raises(lt.TraceError, match="numbers were drawn from"):
        lt.trace(f, X)

    assert lt.grad(lambda x: f(x).sum())(X).tolist() == [1, 1, 1]


def noisy(x, rng):
    return (x * rng.normal(size=3)).sum()


def test_a_seed_is_set_inside_a_derivative():
    def loss(x):
        np.random.seed(3)
        return (x * np.random.randn(3)).sum() * np.random.rand()

    def results(gradient):
        return [gradient(n * X) for n in (1.0, 2.0)], np.random.rand()

    assert_same(results(lt.grad(loss)), results(lt.jit(lt.grad(loss))))
    assert_same(results(lt.grad(loss)), results(lt.jit(lambda x: 1.0 * lt.grad(loss)(x))))


GRADIENTS = {
    "grad": lt.grad(noisy),
    "jit of grad": lt.jit(lt.grad(noisy)),
    "jit of a closure": lt.jit(lambda x, rng: lt.grad(lambda y: noisy(y, rng))(x)),
    "value_and_grad": lambda x, rng: lt.value_and_grad(noisy)(x, rng)[1],
    "by keyword": lambda x, rng: lt.grad(noisy)(x, rng=rng),
    "jacobian": lt.jacobian(noisy),
}


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)
def test_derivatives_move_the_generators_that_they_get(gradient, kind):
    ours, numpys = kind(3), kind(3)

    for _ in range(3):
        assert_same(numpys.normal(size=3), gradient(X, ours))


@pytest.mark.parametrize("imports", ["numpy.random, numpy as np", "numpy as np"])
def test_draws_are_seen_where_the_first_derivative_ran_inside_another_recording(imports):
    """In a process of its own, as the stand-ins are made once for each way to take draws."""
    code = f"""
import {imports}, letir as lt

def roll(x):
    np.random.seed(3)
    return np.random.choice(3, p=x / x.sum())

def slope(a):
    try:
        return lt.grad(lambda b: np.linalg.cholesky(b).sum())(a)
    except np.linalg.LinAlgError:
        return a

lt.jit(slope)(np.eye(2))
lt.jit(slope)(-np.eye(2))
print(lt.trace(roll, np.array([0.0, 1.0, 0.0]))(np.array([0.0, 1.0, 0.0])))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "1\n"


def seeded_object(x, seed):
    generator = random.Random(seed)
    return x * generator.random() + generator.randint(0, 5)


def seeded_module(x, seed):
    random.seed(a=seed)
    return x * random.random()


def seeded_object_later(x, seed):
    generator = random.Random(1)
    generator.seed(seed)
    return x * generator.random()


@pytest.mark.parametrize("f", [seeded_object, seeded_object_later, seeded_module])
@pytest.mark.parametrize("seed", [-2, 7, -2.5, 0.5])
def test_seeds_that_are_arguments_give_pythons_numbers(f, seed):
    """C would take the hash of a traced seed, whose sign it does not drop."""
    state = random.getstate()
    fn, jitted = lt.trace(f, 2.0, seed), lt.jit(f)

    assert f(2.0, seed) == fn(2.0, seed) == jitted(2.0, seed)
    with pytest.raises(lt.GuardError):
        fn(2.0, seed + 1)
    assert f(2.0, seed + 1) == jitted(2.0, seed + 1)
    random.setstate(state)
