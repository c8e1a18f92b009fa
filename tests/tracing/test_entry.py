"""``trace``: recording and replay [B1, B7, A1]."""

import functools
import inspect

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])


def line_of(text: str) -> str:
    """The place of the first line of the calling test that holds ``text``."""
    code = inspect.currentframe().f_back.f_code
    lines, start = inspect.getsourcelines(code)
    return f"test_entry.py:{start + next(i for i, line in enumerate(lines) if text in line)}"


# ---- recording ----


def test_parameters_come_first_then_each_result_where_it_is_made():
    """[B1]"""
    f = lt.trace(lambda x, y: np.sin(x) * y + x, X, 2.0)

    assert """\
%2 = sin %0
%3 = mul %2, %1
%4 = add %3, %0
return %4
""" == f.listing()


def test_a_program_is_closed_and_checked():
    f = lt.trace(lambda x: (x - x.mean()) / np.sqrt((x * x).sum()), X)

    assert f is lt.check(f)


def test_an_argument_passed_twice_is_two_parameters():
    """[B1]"""
    f = lt.trace(lambda x, y: x * y, X, X)

    assert 2 == len(f.params)
    assert_same(X * 2.0, f(X, np.full(3, 2.0)))


def test_a_result_may_be_an_argument():
    assert "return %0\n" == lt.trace(lambda x: x, X).listing()


def test_a_result_that_does_not_depend_on_the_arguments_is_recorded():
    """[B1]"""
    f = lt.trace(lambda x: (np.ones(2), 3.0, x), X)

    assert_same((np.ones(2), 3.0, X), f(X))


def test_a_function_without_arguments_is_a_program():
    assert_same(np.float64(1.0), lt.trace(lambda: np.exp(np.float64(0.0)))())


def test_operations_on_ordinary_arrays_are_not_recorded():
    f = lt.trace(lambda x: x + np.ones(3).cumsum(), X)

    assert ["constant", "add"] == [bind.op.name for bind in f.binds]


def test_unused_operations_are_recorded_too():
    f = lt.trace(lambda x: (np.sin(x), x)[1], X)

    assert ["sin"] == [bind.op.name for bind in f.binds]


def test_a_traced_value_prints_its_name_its_type_and_its_value(capsys):
    def program(x):
        print(x, f"{x}")
        return x

    lt.trace(program, 2.5)
    lt.trace(program, lt.ShapeDtype(3))

    assert (
        """\
Traced(%x: float64*[] = 2.5) Traced(%x: float64*[] = 2.5)
Traced(%x: float64[3]) Traced(%x: float64[3])
"""
        == capsys.readouterr().out
    )


# ---- constants ----


def test_a_constant_is_listed_with_its_line_and_its_size():
    """[B1]"""

    table = np.arange(3.0)

    def program(x):
        return x * table  # the constant

    (constant,) = lt.trace(program, X).constants

    assert line_of("# the constant") == constant.source.short
    assert 24 == constant.attrs["value"].nbytes


def test_a_constant_is_copied_and_frozen():
    """[B1]"""
    table = np.arange(3.0)
    f = lt.trace(lambda x: x + table, X)

    table[:] = 100.0

    assert_same(X + np.arange(3.0), f(X))
    assert not f.constants[0].attrs["value"].flags.writeable


def test_an_array_that_is_used_twice_is_one_constant():
    table = np.arange(3.0)

    assert 1 == len(lt.trace(lambda x: x * table + table, X).constants)


def test_an_array_that_changes_between_two_uses_is_two_constants():
    def program(x):
        table = np.array([1.0, 0.0, 0.0])
        x = x + table
        table[0] = 10.0
        return x * table

    f = lt.trace(program, X)

    assert 2 == len(f.constants)
    assert_same(program(X), f(X))


def test_two_arrays_at_the_address_of_one_are_two_constants():
    def program(x):
        for n in range(20):
            x = x + np.full(3, float(n))
        return x

    assert_same(program(X), lt.trace(program, X)(X))


def test_a_program_never_returns_the_memory_of_a_constant():
    """[C4]"""
    f = lt.trace(lambda x: (np.ones(2), x), X)

    f(X)[0][:] = 5.0

    assert_same(np.ones(2), f(X)[0])


@pytest.mark.parametrize("number", [True, 2, 2.5, 1j, -0.0, np.float32(2), np.int8(2)])
def test_a_number_of_the_program_takes_part_in_promotion_as_it_did(number):
    x = np.ones(2, np.float16)

    assert_same(x * number, lt.trace(lambda x: x * number, x)(x))


# ---- Python numbers are weak ----


def test_a_learning_rate_leaves_float32_unchanged():
    """[A1]"""
    w, g = np.ones(3, np.float32), np.full(3, 0.5, np.float32)
    f = lt.trace(lambda w, g, rate: w - rate * g, w, g, 0.1)

    assert "float64*[]" == repr(f.params[2].type)
    assert_same(w - 0.1 * g, f(w, g, 0.1))
    assert_same(w - 0.25 * g, f(w, g, 0.25))


def test_a_numpy_scalar_is_not_weak():
    """[A1]"""
    w = np.ones(3, np.float32)

    assert (
        np.float64
        == lt.trace(lambda w, rate: w * rate, w, np.float64(0.1))(w, np.float64(2.0)).dtype
    )


def test_arithmetic_of_python_numbers_gives_python_numbers():
    f = lt.trace(lambda a, b: (a * b, a + 1, -a, a / b, b // 2, a**2, abs(a)), 2.5, 3)

    assert_same((8.0, 3.0, -2.0, 0.5, 2, 4.0, 2.0), f(2.0, 4))


def test_numpy_functions_of_python_numbers_give_numpy_scalars():
    f = lt.trace(lambda a: (np.sin(a), np.add(a, 1)), 0.0)

    assert_same((np.float64(0.0), np.float64(1.0)), f(0.0))


def test_an_int_is_taken_for_a_float():
    """[B7]"""
    assert_same(8.0, lt.trace(lambda x: x**3, 2.5)(2))


def test_a_bool_is_static():
    f = lt.trace(lambda x, train: 2 * x if train else x, X, True)

    assert 1 == len(f.params)
    assert_same(2 * X, f(X, True))


# ---- replay ----


def test_a_product_is_replayed_with_fresh_gradients():
    """[B7]: x = [4.], y = [7.] has gradients 7 and 4; replayed on [2.], [3.] it has 3 and 2."""
    x, y = np.array([4.0]), np.array([7.0])
    f = lt.trace(lambda x, y: (x * y).sum(), x, y)
    df = lt.grad(f, argnums=(0, 1))

    assert_same((np.array([7.0]), np.array([4.0])), df(x, y))
    assert_same((np.array([3.0]), np.array([2.0])), df(np.array([2.0]), np.array([3.0])))


def test_a_replay_of_traced_values_is_inlined():
    """[B7]"""
    f = lt.trace(lambda x: np.sin(x) * 2.0, X)
    g = lt.trace(lambda x: f(x) + 1.0, X)

    assert ["sin", "mul", "add"] == [bind.op.name for bind in g.binds]
    assert_same(np.sin(X) * 2.0 + 1.0, g(X))


def test_a_replay_inlined_keeps_its_own_lines():
    f = lt.trace(lambda x: np.sin(x), X)  # noqa: PLW0108  the place is asked for
    g = lt.trace(lambda x: f(x), X)  # noqa: PLW0108

    assert line_of("np.sin(x), X)") == g.binds[0].source.short


def test_a_replay_computes_with_the_dtype_that_was_recorded():
    f = lt.trace(lambda x: x / 2, np.arange(3, dtype=np.int32))

    assert_same(np.arange(3, dtype=np.int32) / 2, f(np.arange(3, dtype=np.int32)))


# ---- functions as users write them ----


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x

    def half(self, x):
        return x / 2

    @staticmethod
    def third(x):
        return x / 3


def gathered(x):
    def halves():
        for row in x:
            yield row / 2

    return np.stack(list(halves()))


@pytest.mark.parametrize(
    "function",
    [
        np.sin,
        np.sum,
        lambda x: x + 1,
        Scale(2.0),
        Scale(2.0).half,
        Scale.third,
        functools.partial(np.clip, a_min=0.0, a_max=2.0),
        functools.partial(np.multiply, 3.0),
        functools.lru_cache(lambda: Scale(4.0))(),
        gathered,
        lambda x, scale=2.0, *rest, **options: scale * x,
    ],
    ids=lambda f: getattr(f, "__name__", type(f).__name__),
)
def test_every_kind_of_callable_is_traced(function):
    assert_same(function(X), lt.trace(function, X)(X))


def test_positional_only_and_keyword_only_parameters_are_traced():
    def program(x, /, y, *more, scale, **options):
        return (x + y + sum(more)) * scale + options["shift"]

    arguments, keywords = (X, X, 1.0, 2.0), {"scale": 2.0, "shift": X}
    f = lt.trace(program, *arguments, **keywords)

    assert_same(program(*arguments, **keywords), f(*arguments, **keywords))


def test_a_static_argument_is_part_of_the_program():
    f = lt.trace(lambda x, power: x**power, X, 2, static_argnums=1)

    assert 1 == len(f.params)
    assert "%1 = power %0, 2" in f.listing()


def test_a_static_argument_is_named_by_position_or_by_keyword():
    by_number = lt.trace(lambda x, n: x.sum(axis=n), np.ones((2, 3)), 1, static_argnums=-1)
    by_name = lt.trace(lambda x, n: x.sum(axis=n), np.ones((2, 3)), 1, static_argnames=("n",))
    by_keyword = lt.trace(lambda x, *, n: x.sum(axis=n), np.ones((2, 3)), n=1, static_argnames="n")

    assert by_number == by_name
    assert by_number.listing() == by_keyword.listing()


# ---- abstract tracing ----


def test_abstract_tracing_computes_nothing():
    seen = []
    lt.trace(lambda x: seen.append(np.log(x).held_value) or x, np.array([-1.0]), abstract=True)

    assert "ABSENT" == repr(seen[0])


def test_abstract_and_concrete_tracing_give_one_program():
    def program(x, rate):
        return rate * np.sin(x).sum(axis=0, keepdims=True)

    assert lt.trace(program, X, 0.1) == lt.trace(program, X, 0.1, abstract=True)


def test_shapes_stand_for_arguments():
    f = lt.trace(lambda x: x.sum(axis=0), lt.ShapeDtype((2, 3), np.float32))

    assert_same(np.full(3, 2.0, np.float32), f(np.ones((2, 3), np.float32)))


def test_parameters_have_the_names_of_wrapped_and_bound_functions():
    class Model:
        def loss(self, weights, rate):
            return (weights * rate).sum()

    @functools.wraps(Model.loss)
    def wrapped(*args):
        return Model.loss(*args)

    bound = [
        (Model().loss, (np.ones(2), 2.0)),
        (functools.partial(Model.loss, None), (np.ones(2), 2.0)),
        (functools.partial(Model.loss, None, rate=2.0), (np.ones(2),)),
        (functools.partial(wrapped, None), (np.ones(2), 2.0)),
    ]
    for f, args in bound:
        names = ["weights", "rate"][: len(args)]
        assert [param.name for param in lt.trace(f, *args).params] == names
