"""Overloads by the kinds of arguments, and units of functions that call each other."""

import threading

import numpy as np
import pytest

import letir as lt
from letir.scripting.units import CompilationUnit, script
from letir.testing import check_grads

X, Y = np.array([0.5, -1.0, 2.0]), np.array([[1.5], [2.5]])
OVERLOADS = """\
def mul(self, other: Tensor):
    def backward(g):
        return (g * other).sum_to_size(self.size()), (g * self).sum_to_size(other.size())
    return self * other, backward

def mul(self, other: float):
    def backward(g):
        return g * other * 10
    return self * other, backward
"""


# ---- overloads ----


@pytest.mark.parametrize("text", [OVERLOADS, "\n".join(OVERLOADS.split("\n\n")[::-1])])
def test_overloads_are_selected_by_the_kinds_of_arguments(text):
    """[G2]"""
    mul = script(text)

    np.testing.assert_array_equal(lt.grad(lambda x: mul(x, Y).sum())(X), [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(lt.grad(lambda x: mul(x, 2.0).sum())(X), [20.0, 20.0, 20.0])
    np.testing.assert_array_equal(lt.grad(lambda x: mul(x, 2).sum())(X), [20.0, 20.0, 20.0])


def test_python_functions_are_overloads():
    """[G2]"""

    @script
    def mul(x, y: np.ndarray):
        def backward(g):
            return (g * y).sum_to_size(x.size()), (g * x).sum_to_size(y.size())

        return x * y, backward

    @mul.overload
    def mul(x, y: float):
        def backward(g):
            return g * y * 10

        return x * y, backward

    assert repr(mul) == "<script mul(Tensor, np.ndarray), mul(Tensor, float)>"
    assert lt.grad(lambda x: mul(x, 2.0).sum())(X).tolist() == [20.0, 20.0, 20.0]
    assert lt.grad(lambda x: mul(x, X + 1).sum())(X).tolist() == (X + 1).tolist()
    with pytest.raises(lt.ParseError, match=r"mul\(Tensor, float\) is already defined, at line"):
        mul.overload("def mul(x, y: float): return x")


def test_a_scalar_gets_no_gradient():
    """[G2]"""
    mul = script(OVERLOADS)
    by_x, by_s = lt.grad(lambda x, s: mul(x, s).sum(), (0, 1))(X, 2.0)

    np.testing.assert_array_equal(by_x, [20.0, 20.0, 20.0])
    assert by_s == 0.0


def test_a_gradient_that_is_given_for_a_scalar_is_dropped():
    """[G2]"""
    mul = script("""
        def mul(self, other: number):
            def backward(g):
                return g * other, (g * self).sum()
            return self * other, backward
    """)

    assert lt.grad(lambda s: mul(X, s).sum())(2.0) == 0.0
    np.testing.assert_array_equal(lt.grad(lambda x: mul(x, 2.0).sum())(X), [2.0, 2.0, 2.0])


def test_a_number_passed_for_an_array_becomes_an_array():
    mul = script(OVERLOADS.split("\n\n")[0].replace(": Tensor", ""))

    np.testing.assert_array_equal(mul(X, 2), 2 * X)
    assert mul(X.astype("f"), 2.0).dtype == "float32"
    check_grads(mul, (X, 2.0), order=2)


def test_a_value_computed_from_numbers_is_a_number():
    f = script("def f(x, rate): return x * (1 - rate) / np.sqrt(rate) ** 2 + -rate")

    for rate in (0.5, 2):
        assert f(X.astype("f"), rate).dtype == "float32"
    check_grads(f, (X, 0.5), order=2)


def test_0d_arrays_and_numpy_scalars_are_arrays():
    """[G2]"""
    mul = script(OVERLOADS)

    assert mul.pick((X, np.array(2.0)), {}).function is mul.overloads[0]
    assert mul.pick((X, np.float64(2.0)), {}).function is mul.overloads[0]
    assert mul.pick((X, 2.0), {}).function is mul.overloads[1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X,), "'other' is missing"),
        ((X, X, X), "it takes 2 arguments, found 3"),
        ((X, "a"), "other must be an array, found str 'a'"),
        ((X, "a"), "other must be a number, found str 'a'"),
        ((X, None), r"mul\(Tensor, float\): other must be a number, found NoneType None"),
        (([1.0], X), "self must be an array, found list"),
    ],
)
def test_arguments_that_no_overload_takes_are_an_error_that_lists_them(args, message):
    """[G2]"""
    with pytest.raises(lt.DTypeError, match=rf"mul: no overload takes \((.|\n)*{message}"):
        script(OVERLOADS)(*args)


def test_arguments_have_names_and_defaults():
    f = script("def f(x, rate=0.5, axis: int = -1): return (x * rate).sum(axis)")

    assert f(X) == 0.75
    assert f(rate=2.0, x=X) == 3.0
    assert f(Y, axis=0).shape == (1,)
    with pytest.raises(lt.DTypeError, match="'y' is not a parameter"):
        f(X, y=1)
    with pytest.raises(lt.DTypeError, match="'x' is given twice"):
        f(X, x=1)


def test_static_arguments_are_part_of_the_program():
    total = script("""
        def total(x, dim: List[int], keepdim: bool = False):
            def backward(g):
                return g.expand(x.size()), None, None
            return x.sum(dim, keepdim=keepdim), backward
    """)

    assert total(Y @ X[None], [0, 1]) == total(Y @ X[None], (0, 1)) == 6.0
    assert total(X, (0,), keepdim=True).shape == (1,)
    assert lt.grad(lambda x: total(x, (0,)))(X).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(lt.DTypeError, match="keepdim must be a constant bool, found int 1"):
        total(X, (0,), 1)
    with pytest.raises(lt.LetirError, match=r"depends on the value of 'dim'\n  call \.at"):
        _ = total.forward
    assert str(total.at(X, (0,)).forward).count("sum(") == 1


def test_an_array_may_be_missing_where_it_is_optional():
    f = script("def f(x, bias: Optional[Tensor] = None): return x * 2, bias")

    assert f(X)[1] is None
    np.testing.assert_array_equal(f(X, X)[1], X)


def test_arrays_may_come_in_tuples():
    f = script("""
        def f(pair: Tuple[Tensor, Tensor], z):
            x, y = pair
            def backward(g):
                return (g * y * z, g * x * z), g * x * y
            return x * y * z, backward
    """)

    check_grads(lambda x, y, z: f((x, y), z), (X, X + 1, X + 2), order=2)
    assert f.forward((X, X), X)[0].tolist() == (X**3).tolist()


# ---- calls ----

UNIT = """\
def square(x):
    def backward(g):
        return 2 * g * x
    return x * x, backward

def norm(x):
    return np.sqrt(total(square(x)))

def total(x):
    return x.sum()

def both(x, y):
    z = norm(x) + norm(y)
    def backward(g):
        return g * x / norm(x), g * y / norm(y)
    return z, backward
"""


def test_functions_of_a_unit_call_each_other():
    """[G3]"""
    unit = CompilationUnit(UNIT)

    np.testing.assert_allclose(unit.norm(X), np.linalg.norm(X))
    np.testing.assert_allclose(unit["both"](X, Y), np.linalg.norm(X) + np.linalg.norm(Y))
    check_grads(unit.norm, (X,), order=2)
    check_grads(unit.both, (X, Y), order=2)


def test_a_function_with_a_backward_is_called_by_reference_others_are_inlined():
    """[G3]"""
    f = lt.trace(CompilationUnit(UNIT).norm, X)

    assert [bind.op.name for bind in f.binds] == ["scripted", "sum", "sqrt"]
    assert f.binds[0].attrs["script"] == "square"


def test_the_code_of_a_unit_gives_the_same_unit():
    """[G3]"""
    unit = CompilationUnit(UNIT)
    again = CompilationUnit(unit.code)

    assert unit.code == str(unit) == again.code == UNIT
    for name in unit:
        assert again[name].forward == unit[name].forward
    assert again.both.backward == unit.both.backward


def test_functions_can_be_added_to_a_unit():
    unit = CompilationUnit(UNIT)
    unit.define("def cube(x): return square(x) * x")
    unit.define("def square(x: float): return x * x")

    assert unit.cube(2.0) == 8.0
    assert len(unit.square.overloads) == 2
    assert list(unit) == ["square", "norm", "total", "both", "cube"]
    assert "cube" in dir(unit)
    assert repr(unit).startswith("CompilationUnit(<script square(Tensor), square(float)>, <script")


def test_a_text_with_an_error_adds_nothing():
    unit = CompilationUnit()
    with pytest.raises(lt.ParseError):
        unit.define("def f(x): return x\ndef g(x): return y")

    assert len(unit) == 0
    with pytest.raises(AttributeError, match="no function 'f', it has none"):
        _ = unit.f


@pytest.mark.parametrize(
    ("text", "cycle", "line"),
    [
        ("def f(x): return f(x)", "f -> f", 1),
        ("def f(x): return g(x)\ndef g(x): return 2 * f(x)", "f -> g -> f", 2),
        (
            "def a(x): return b(x)\ndef b(x): return c(x)\ndef c(x):\n"
            "    def back(g):\n        return b(g)\n    return x, back",
            "b -> c -> b",
            5,
        ),
    ],
)
def test_recursion_is_an_error_that_names_the_cycle(text, cycle, line):
    """[G3]"""
    with pytest.raises(lt.ParseError, match=f"recursion: {cycle}\n") as caught:
        CompilationUnit(text)

    assert caught.value.line == line


def test_two_calls_of_one_function_are_not_recursion():
    """[G3]"""
    text = "def f0(x): return x + x\n"
    for i in range(30):
        text += f"def f{i + 1}(x): return f{i}(x) * f{i}(0.0 * x)\n"
    CompilationUnit(text)


def test_long_chains_of_calls_need_no_stack():
    """[G3]"""
    text = (
        "".join(f"def f{i}(x): return f{i + 1}(x)\n" for i in range(2000))
        + "def f2000(x): return x"
    )

    unit = CompilationUnit(text)
    with pytest.raises(lt.LetirError, match="calls are nested too deeply"):
        unit.f0(1.0)
    assert unit.f1990(1.0) == 1.0


def test_inside_a_function_named_like_an_operation_the_name_means_the_operation():
    """[G3]"""
    unit = CompilationUnit("def exp(x): return 10 * exp(x)\ndef f(x): return exp(x) + np.exp(x)")

    assert unit.exp(0.0) == 10.0
    assert unit.f(0.0) == 11.0
    assert CompilationUnit(unit.lifted).f(0.0) == 11.0


def test_a_script_is_called_in_several_threads_at_once():
    mul, found = script(OVERLOADS), []
    threads = [
        threading.Thread(target=lambda n=n: found.append(lt.grad(lambda x: mul(x, n).sum())(X)[0]))
        for n in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(found) == [10.0 * n for n in range(1, 9)]


# ---- scripts and the rest of letir ----


def test_programs_with_scripts_are_text_and_files_without_them(tmp_path):
    f = lt.trace(lambda x: CompilationUnit(UNIT).both(x, Y) * 2, X)
    lt.save(f, tmp_path / "f.letir")

    assert lt.parse(lt.dumps(f)) == f
    assert lt.load(tmp_path / "f.letir") == f
    np.testing.assert_array_equal(lt.grad(lt.parse(lt.dumps(f)))(X), lt.grad(f)(X))


def test_variables_use_the_backward_of_a_script():
    mul = script(OVERLOADS)
    x = lt.Variable(X, requires_grad=True)
    mul(x, 2.0).sum().backward()

    np.testing.assert_array_equal(x.grad, [20.0, 20.0, 20.0])


def test_a_script_becomes_plain_source():
    f = lt.trace(CompilationUnit(UNIT).both, X, Y)
    names: dict = {}
    exec(lt.to_source(f), names)

    np.testing.assert_allclose(names["f"](X, Y), f(X, Y))


def test_a_wrong_backward_is_found():
    wrong = script("""
        def wrong(x):
            def backward(g):
                return g * x
            return x * x, backward
    """)

    with pytest.raises(AssertionError, match="respect to argument 0 is wrong in reverse"):
        check_grads(wrong, (X,), order=1)
    check_grads(wrong, (X,), order=1, modes=("fwd",))


def test_results_that_are_integers_take_a_gradient_of_zeros():
    f = script("""
        def f(x):
            place = np.argmax(x)
            def backward(g, ignored):
                return g * 2 * x + ignored
            return x * x, place, backward
    """)
    assert f(X)[1] == 2
    check_grads(lambda x: f(x)[0], (X,), order=2)


def test_every_mask_of_missing_cotangents_is_right():
    """[D7]"""
    f = script("""
        def f(x, y):
            product = x * y
            late = np.exp(product)
            def backward(a, b, c):
                total = a + b * late + c * np.cos(product)
                return total * y, total * x
            return product, late, np.sin(product), backward
    """)
    gradient = lt.differentiate(lt.trace(f, X, X + 1))
    _, residuals = gradient.forward(X, X + 1)
    for mask in range(1, 8):
        chosen = [i for i in range(3) if mask >> i & 1]
        check_grads(lambda x, y, chosen=chosen: [f(x, y)[i] for i in chosen], (X, X + 1), order=2)
        cts = tuple(X * i if i in chosen else None for i in range(3))
        zeros = tuple(X * 0 if ct is None else ct for ct in cts)
        found = gradient.backward(residuals, *cts)
        expected = lt.vjp(f, X, X + 1)[1](zeros)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other)


def test_an_argument_passed_twice_gets_both_gradients():
    mul = script(OVERLOADS)

    check_grads(lambda x: mul(x, x), (X,), order=3)


def test_a_derivative_through_captured_values_is_right():
    """Second derivatives flow through captured values that are neither operands nor results."""
    f = script("""
        def f(x):
            inner = np.sin(x) * x
            def backward(g):
                return g * np.exp(inner) * (np.cos(x) * x + np.sin(x))
            return np.exp(inner), backward
    """)

    check_grads(f, (X,), order=3)
