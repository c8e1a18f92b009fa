"""From a script to two closed programs, and their text."""

import numpy as np
import pytest

import letir as lt
from letir.ast.checker import check
from letir.scripting.units import CompilationUnit, script

MUL = """\
def mul(self, other):
    def backward(grad_output):
        grad_self = (grad_output * other).sum_to_size(self.size())
        grad_other = (grad_output * self).sum_to_size(other.size())
        return grad_self, grad_other
    return self * other, backward
"""
LIFTED = """\
def mul(self: Tensor, other: Tensor) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
  return (mul(self, other), (other, self))
def backward(context: Tuple[Tensor, Tensor], grad_output: Tensor) -> Tuple[Tensor, Tensor]:
  other, self, = context
  grad_self = sum_to_size(mul(grad_output, other), size(self))
  grad_other = sum_to_size(mul(grad_output, self), size(other))
  return (grad_self, grad_other)
"""
X, Y = np.array([[1.0, 2.0, 3.0]]), np.array([[0.5], [-2.0]])


def lifted(body: str) -> str:
    """The text after lifting of a script of these lines."""
    return script("def f(x, y):\n" + "".join(f"    {line}\n" for line in body.split("\n"))).lifted


# ---- text ----


def test_before_lifting_a_script_prints_as_it_was_written():
    """[G1]"""
    assert script(MUL).code == str(script(MUL)) == MUL


def test_after_lifting_a_script_prints_as_two_closed_functions():
    """[G1]"""
    assert script(MUL).lifted == LIFTED


def test_a_python_function_prints_as_its_text():
    """[G1]"""

    def mul(self, other):
        def backward(grad_output):
            grad_self = (grad_output * other).sum_to_size(self.size())
            grad_other = (grad_output * self).sum_to_size(other.size())
            return grad_self, grad_other

        return self * other, backward

    assert (script(mul).code, script(mul).lifted) == (MUL, LIFTED)


def test_comments_layout_and_docstrings_do_not_matter():
    text = """
        def f( x ,y ) :   # a product
            return (x*y)
    """

    assert script(text).code == "def f(x, y):\n    return x * y\n"


def test_the_context_has_the_captured_values_in_order_of_first_use():
    """[G1]"""
    text = lifted("z = x + y\ndef back(g):\n    return g * (y - z), g * z * x\nreturn x * y, back")

    assert "(mul(x, y), (y, z, x))" in text
    assert "  y, z, x, = context\n" in text


def test_a_single_captured_value_is_passed_in_a_tuple():
    text = lifted("def back(g):\n    return g * x, None\nreturn x * x, back")

    assert "return (mul(x, x), (x,))" in text
    assert "def back(context: Tuple[Tensor], g: Tensor) -> Tuple[Tensor, None]:" in text


def test_nothing_captured_is_an_empty_tuple():
    text = lifted("def back(g):\n    return g, g\nreturn x + y, back")

    assert "return (add(x, y), ())" in text
    assert "def back(context: Tuple[()], g: Tensor) -> Tuple[Tensor, Tensor]:\n  return" in text


def test_several_results_come_before_the_context():
    text = lifted("def back(g, h):\n    return g * y, h\nreturn x * y, x + y, back")

    assert "-> Tuple[Tensor, Tensor, Tuple[Tensor]]:" in text
    assert "return (mul(x, y), add(x, y), (y,))" in text
    assert "def back(context: Tuple[Tensor], g: Tensor, h: Tensor)" in text


def test_a_name_that_is_bound_again_gets_a_number():
    text = lifted("x = x * 2\ndef back(g):\n    return g * x, g\nreturn x * y, back")

    assert "x_1 = mul(x, 2)" in text
    assert "return (mul(x_1, y), (x_1,))" in text


def test_a_value_called_as_an_operation_does_not_hide_it():
    text = lifted("exp = np.exp(x)\nreturn np.exp(exp) * y")

    assert "  exp = lt.exp(x)\n  return mul(lt.exp(exp), y)\n" in text


def test_a_variable_named_context_keeps_its_name():
    text = lifted("context = x * y\ndef back(g):\n    return g * context, g\nreturn context, back")

    assert "def back(context_: Tuple[Tensor], g: Tensor)" in text
    assert "  context, = context_\n" in text


def test_shapes_and_numbers_are_annotated_with_their_types():
    text = lifted(
        "s = x.size()\nn = 2\ndef back(g):\n    return g.sum_to_size(s) * n, g\nreturn x, back"
    )

    assert "back(context: Tuple[List[int]], g: Tensor)" in text
    assert "  s, = context\n  n = 2\n" in text


# ---- programs ----


def test_both_programs_are_closed_and_compute_what_the_text_says():
    """[G1]"""
    mul = script(MUL)
    out, context = mul.forward(X, Y)
    by_x, by_y = mul.backward(context, np.ones((2, 3)))

    check(mul.forward)
    check(mul.backward)
    np.testing.assert_array_equal(out, X * Y)
    assert context[0] is Y
    assert context[1] is X
    np.testing.assert_array_equal(by_x, [[-1.5, -1.5, -1.5]])
    np.testing.assert_array_equal(by_y, [[6.0], [6.0]])


@pytest.mark.parametrize(
    "body",
    [
        "z = x + y\ndef back(g):\n    return g * (y - z), g * z * x\nreturn x * y, back",
        "def back(g, h):\n    return g * y, h\nreturn x * y, x + y, back",
        "def back(g):\n    return g, None\nreturn x[0:2, None] + 1e-05, back",
        "s = x.size()\ndef back(g):\n    return g.sum_to_size(s), g\nreturn x - y, back",
        "exp = np.exp(x)\ndef back(g):\n    return g * exp, g * np.exp(y)\nreturn exp, back",
    ],
)
def test_the_text_after_lifting_is_a_script_of_the_same_programs(body):
    """[G1]"""
    made = script("def f(x, y):\n" + "".join(f"    {line}\n" for line in body.split("\n")))
    again = CompilationUnit(made.lifted)

    assert again.f.forward == made.forward
    assert again.back.forward == made.backward
    for pair in (script(made.code), script(made.lifted)):
        assert pair.forward == made.forward
        assert pair.backward == made.backward
        assert pair.lifted == made.lifted


def test_the_golden_text_is_a_script_of_the_same_programs():
    """[G1]"""
    again = CompilationUnit(LIFTED)

    assert again.mul.forward == script(MUL).forward
    assert again.backward.forward == script(MUL).backward
    assert again.mul.lifted == LIFTED[: LIFTED.index("def backward")]


def test_the_golden_text_reads_back_as_the_pair():
    """[G1]"""
    pair = script(LIFTED)

    assert pair.lifted == LIFTED
    assert pair.forward == script(MUL).forward
    assert pair.backward == script(MUL).backward
    by_x = lt.grad(lambda x, y: pair(x, y).sum())(X, Y)
    np.testing.assert_array_equal(by_x, np.full(X.shape, Y.sum()))


def test_pairs_of_several_overloads_read_back():
    """[G2]"""
    made = script(
        MUL + "\ndef mul(self, other: float):\n    def backward(g):\n"
        "        return g * other, None\n    return self * other, backward\n"
    )

    again = script(made.lifted)

    assert again.lifted == made.lifted
    assert again.at(X, 2.0).backward == made.at(X, 2.0).backward


def test_two_functions_that_are_not_a_pair_are_not_joined():
    other = LIFTED.replace("other, self, = context", "self, other, = context")

    with pytest.raises(lt.ParseError, match="a script is one function, found mul, backward"):
        script(other)


def test_the_name_of_a_function_is_an_operation_in_its_backward():
    made = script(MUL.replace("grad_output * other", "mul(grad_output, other)"))

    assert made.backward == script(MUL).backward


def test_programs_at_given_types_know_their_shapes():
    at = script(MUL).at(X, Y)

    assert "sum_to_size(%3, shape=(1, 3))" in str(at.backward)
    assert at.forward(X, Y)[1] == (Y, X)


def test_an_unknown_size_is_a_value_of_the_program():
    total = script("""
        def total(x):
            def backward(g):
                return g.expand(x.size()) * x.size(0)
            return x.sum(), backward
    """)

    (by_x,) = (total.backward((X,), 1.0),)

    np.testing.assert_array_equal(by_x, np.ones((1, 3)))


def test_sizes_computed_from_sizes_are_values_of_the_program():
    swapped = script("def f(x): return x.reshape(x.size(1), x.size(0))")

    assert swapped.forward(np.zeros((2, 3))).shape == (3, 2)


def test_only_what_the_backward_reads_is_kept():
    made = script("""
        def f(x, y):
            scaled = x * y
            unread = np.exp(scaled)
            def backward(g):
                return (g * scaled).sum_to_size(x.size()), g.sum_to_size(unread.size())
            return np.sin(scaled) + unread + y, backward
    """)
    f = lt.trace(made, X, np.ones((2, 3)))
    (bind,) = f.binds

    assert len(bind.binders) == 2  # the result, and scaled
    assert bind.attrs["context"] == (3,)
