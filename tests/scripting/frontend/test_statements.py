"""Unsupported statements are errors with their place; others mean the same as in Python."""

import linecache
import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.scripting.frontend.vocabulary import known_words, meaning_of_word
from letir.scripting.units import CompilationUnit, script
from tests.each_sample import in_one_test

SCALE, AXES, TABLE = 2.5, (0, 1), np.ones(3)
X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])

RULE = """\
def f(x, y):
    z = x * y
    def backward(g):
        {inner}
        return g * y, g * x
    {outer}
    return z, backward
"""


def error_of(text: str) -> lt.ParseError:
    """The ParseError that reading ``text`` raises."""
    with pytest.raises(lt.ParseError) as caught:
        script(text)
    return caught.value


def inside(statement: str) -> str:
    """A script with a statement in its backward, at line 4, column 9."""
    return RULE.format(inner=statement, outer="pass")


def outside(statement: str) -> str:
    """A script with a statement in its body, at line 6, column 5."""
    return RULE.format(inner="pass", outer=statement)


# ---- errors ----


@in_one_test
@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (inside("z = g"), 4, 9, "assigning to the captured name 'z'"),
        (inside("x = g"), 4, 9, "assigning to the captured name 'x'"),
        (inside("nonlocal x"), 4, 9, "a captured name cannot be assigned to"),
        (inside("q = gg * 2"), 4, 13, "unknown name 'gg'\n  did you mean 'g'?"),
        (inside("if g > 0: return g"), 4, 19, "early return: return is the last statement"),
        (inside("def h(g): return g"), 4, 9, "one inner function"),
        (inside("return g"), 5, 9, "nothing can follow return"),
        (outside("for i in x: pass"), 6, 14, "a script counts: for i in range"),
        (outside("while True: x = x"), 6, 11, "the loop would never end"),
        (outside("x += 1"), 6, 5, "write x = x + y"),
        (outside("x[0] = 1"), 6, 5, "nothing is changed in place"),
        (outside("np.exp(x)"), 6, 5, "is not used"),
        (outside("import os"), 6, 5, "imports nothing"),
        (outside("w = foo(x)"), 6, 9, "unknown name 'foo'"),
        (outside("w = x.taanh()"), 6, 9, "did you mean 'tanh'"),
        (outside("w = np.tnah(x)"), 6, 9, "did you mean 'tanh'"),
        (outside("w = x and y"), 6, 9, "write x & y"),
        (outside("w = x < y < z"), 6, 9, "compare two values"),
        (outside("w = [a for a in x]"), 6, 9, "a loop is a statement"),
        (outside("w = x.size"), 6, 9, "x.size() is the shape"),
        (outside("w = x.sum(axes=0)"), 6, 9, "sum: got an unexpected keyword argument 'axes'"),
        (outside("w = tanh(x, y, z)"), 6, 9, "tanh: too many positional arguments"),
        (outside("w = x(y)"), 6, 9, "'x' is a value, not a function"),
        (outside("w = backward(x)"), 6, 9, "returned, and used nowhere else"),
        (outside("w = f(x, y)"), 6, 9, "recursion: f -> f"),
        (outside("w = sum(*x)"), 6, 13, "Starred"),
        (outside("w = sum(**x)"), 6, 15, "name each argument"),
        (outside("w = f'{x}'"), 6, 9, "text is a plain string"),
        (outside("a, b = x, y, z"), 6, 5, "2 names for 3 values"),
        (outside("w = 36893488147419103232"), 6, 9, "64 bits"),
        (outside("w = x << 2"), 6, 9, "powers of 2"),
        (outside("w = constant(x)"), 6, 9, "unknown name 'constant'"),
        (outside("w = np.exp.reduce(x)"), 6, 9, "docs/operations.md lists"),
        (outside("w = np.load('a')"), 6, 9, "unknown name 'load'"),
        (outside("w = np.__builtins__(x)"), 6, 9, "unknown name"),
        (outside("w = x.__class__"), 6, 9, "no attribute '__class__'"),
        ("def f(x):\n    return x\n\n  x", 4, 4, "not valid Python"),
        ("x = 1", 1, 1, "consists of functions"),
        ("", 1, 1, "there is no function"),
        ("@decorated\ndef f(x): return x", 1, 2, "cannot have decorators"),
        ("def f(x):\n    x = x", 1, 1, "'f' returns nothing"),
        ("def f(x):\n    return", 2, 5, "'f' returns nothing"),
        ("def f(*x):\n    return x", 1, 8, "a fixed number of parameters"),
        ("def f(x, x):\n    return x", 1, 10, "the parameter 'x' appears twice"),
        ("def f(x: Foo):\n    return x", 1, 10, "unknown annotation 'Foo'"),
        ("def f(x, n=g(1)):\n    return x", 1, 12, "unknown name 'g'"),
        ("def f(x, n=exp(1)):\n    return x", 1, 12, "a default is a number"),
        ("def f(x): return x\ndef g(x): return x", 2, 1, "a script is one function, found f, g"),
        ("def f(x): return x\ndef f(y): return y", 2, 1, "f(Tensor) is already defined, at line 1"),
        ("\n    def f(x):\n        return y\n", 3, 16, "unknown name 'y'"),
    ],
)
def test_an_error_says_line_and_column(text, line, column, message):
    """[G1]"""
    error = error_of(text)

    assert message in str(error)
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize(
    ("returned", "column", "message"),
    [
        ("return z", 5, "must return a literal tuple that ends in its inner function"),
        ("return backward", 5, "must return a literal tuple"),
        ("return backward, z", 5, "must return a literal tuple"),
        ("return (backward,)", 5, "there is no result"),
        ("return [z, backward]", 5, "must return a literal tuple"),
        ("return z, (z, backward)", 5, "must return a literal tuple"),
    ],
)
def test_a_function_returns_a_literal_tuple_that_ends_in_its_backward(returned, column, message):
    """[G1]"""
    error = error_of(inside("pass").replace("return z, backward", returned))

    assert message in str(error)
    assert (error.line, error.column) == (7, column)


@pytest.mark.parametrize(
    ("returned", "count"),
    [("g", 1), ("g, g, g", 3), ("None", 1), ("(g,)", 1), ("g * y, g * x, None", 3)],
)
def test_a_wrong_number_of_gradients_is_an_error(returned, count):
    """[D9]"""
    error = error_of(inside("pass").replace("g * y, g * x", returned))

    assert f"'backward' returns {count} gradients, expected 2: one for each of (x, y)" in str(error)
    assert error.line == 5


def test_a_backward_takes_one_gradient_for_each_result():
    error = error_of(inside("pass").replace("backward(g)", "backward(g, h)"))

    assert "one gradient for each of 1 results, found 2 parameters" in str(error)
    assert (error.line, error.column) == (3, 5)


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ("g * y, g.sum()", r"argument 1 \(y\) a gradient of float64\[\], expected float64\[3\]"),
        ("g.reshape(3, 1), g", r"argument 0 \(x\) a gradient of float64\[3, 1\]"),
        ("g > 0, g", r"argument 0 \(x\) a gradient of bool\[3\], expected float64\[3\]"),
        ("1.0, g", r"argument 0 \(x\) a gradient of the number 1.0, expected float64\[3\]"),
        ("'a', g", r"argument 0 \(x\) a gradient of 'a'"),
    ],
)
def test_a_gradient_of_a_wrong_type_is_an_error_that_says_which(returned, found):
    """[D9]"""
    f = script(inside("pass").replace("g * y, g * x", returned))

    with pytest.raises(lt.LetirError, match=rf"f: 'backward' gave {found}[^$]*at <script>:5"):
        lt.grad(lambda x, y: f(x, y).sum())(np.ones(3), np.ones(3))


def test_a_gradient_of_None_is_zero():
    """[D9]"""
    f = script(inside("pass").replace("g * y, g * x", "None, g * x"))
    by_x, by_y = lt.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, 2 * X)

    np.testing.assert_array_equal(by_x, np.zeros((2, 3)))
    np.testing.assert_array_equal(by_y, X)


def test_an_operation_that_fails_is_an_error_with_the_line_of_the_script():
    f = script("def f(x, y):\n    z = x + 1\n    return x @ y")

    with pytest.raises(lt.ShapeError, match=r"matmul(.|\n)*at <script>:3"):
        f(np.ones((2, 3)), np.ones((2, 3)))


def test_an_invalid_operand_is_an_error_with_the_line_of_the_script():
    f = script("def f(x):\n    z = x + 1\n    return z * 'a'")

    with pytest.raises(lt.DTypeError, match=r"'a'(.|\n)*in mul\(z, 'a'\)\n  at <script>:3"):
        f(np.ones(2))


def test_a_mask_is_not_an_index():
    f = script("def f(x):\n    return x[x > 0]")

    with pytest.raises(lt.LetirError, match=r"write where\(mask, x, 0\)(.|\n)*at <script>:2"):
        f(X)


def test_a_text_that_is_nested_too_deeply_is_an_error():
    assert "nested too deeply" in str(error_of(f"def f(x): return {'x + ' * 500}x"))
    assert "not valid Python" in str(error_of(f"def f(x): return {'(' * 500}x{')' * 500}"))


def test_a_script_of_many_lines_is_read():
    lines = "".join(f"    x = x * {i % 3 + 1}.5\n" for i in range(2000))
    f = script(f"def f(x):\n{lines}    return x")

    assert len(f.forward) == 2000


def lines_run(length: int) -> int:
    """How many lines of Python run to read, lift and record a script of this length."""
    count = [0]

    def count_line(frame, event, arg):
        count[0] += 1
        return count_line

    lines = "    x = x * 1.0\n" * length
    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        f = script(f"def f(x):\n{lines}    def back(g):\n        return g * x\n    return x, back")
        assert f.forward
        assert f.lifted
        lt.grad(f)(1.0)
    finally:
        sys.settrace(before)
    return count[0]


def test_scripts_are_read_in_linear_time():
    """[A3]"""
    lines_run(10)  # fills caches

    assert lines_run(2000) / 2000 < 1.3 * lines_run(200) / 200


@pytest.mark.parametrize("text", ["9 ** 9 ** 9 ** 9", "1 / 0", "(2 ** 1000) ** 1000 * 1.5", "-'a'"])
def test_results_that_are_too_large_are_errors(text):
    f = script(f"def f(x):\n    return x * ({text})")

    with pytest.raises(lt.LetirError, match="at <script>:2"):
        f(1.0)


# ---- garbage ----

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))
WORDS = """def f ( ) : , = * x y g return backward np.exp .size() None 1 1.5 [ ] ' " @ lambda if for
while -> Tensor int not and in is += ** x[0] {} \\ # é async await import class yield del try with
match _ 1j ... 0x 1e999 print"""
TOKENS = st.sampled_from([*WORDS.split(), "\n", "\n\t", "\n    ", "\x00", "\ud800"])
GOOD = inside("h = g * np.exp(x)")


@QUICK
@given(st.lists(TOKENS, max_size=30).map(" ".join))
@example("\n \x00")
def test_garbage_is_a_parse_error(text):
    read(text)


@QUICK
@given(st.text(max_size=40))
@example("\x00")
@example("def f(x): return '\ud800'")
@example("def f(x):\r    return x\x0c")
def test_any_text_is_a_parse_error(text):
    read(text)


@QUICK
@given(st.integers(0, len(GOOD)), st.integers(0, 8), TOKENS)
def test_a_changed_script_is_a_script_or_a_parse_error(start, count, token):
    read(GOOD[:start] + token + GOOD[start + count :])


def read(text: str) -> None:
    """Read ``text`` as a unit; the only error allowed is a ParseError with a place."""
    try:
        unit = CompilationUnit()
        unit.define(text)
        assert unit.code
        assert unit.lifted
    except lt.ParseError as error:
        assert error.line >= 1
        assert error.column >= 1


# ---- supported expressions ----


def test_methods_functions_and_operators_are_equivalent():
    texts = ["x.tanh() @ x.T", "np.tanh(x).matmul(transpose(x))", "torch.mm(tanh(x), x.t())"]
    programs = [script(f"def f(x): return {text}").forward for text in texts]

    assert programs[0] == programs[1] == programs[2]


@in_one_test
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.sum(dim=1, keepdim=True)", X.sum(1, keepdims=True)),
        ("x.unsqueeze(0)", X[None]),
        ("x[:, 0:2] + x[..., None][1, 0]", X[:, 0:2] + X[1, 0]),
        ("x[::2, -1]", X[::2, -1]),
        ("x.view(-1)", X.reshape(-1)),
        ("x.reshape(3, 2)", X.reshape(3, 2)),
        ("np.stack([x, 2 * x], axis=1)", np.stack([X, 2 * X], 1)),
        ("cat((x, x), 0)", np.concatenate([X, X])),
        ("np.moveaxis(x, 0, 1)", X.T),
        ("x.astype(float32).astype(float64)", X.astype("f").astype(float)),
        ("x * np.pi + inf", X * np.pi + np.inf),
        ("zeros_like(x) + ones_like(x)", np.ones((2, 3))),
        ("np.zeros((2, 3)) + x", X),
        ("x / x.shape[0] / len(x) / x.ndim / x.numel()", X / 2 / 2 / 2 / 6),
        ("x.numel() * math.pi * x", X * 6 * math.pi),
        ("np.where(x > 0, x, -x)", np.abs(X)),
        ("x * sqrt(2.0)", X * math.sqrt(2.0)),
        ("x.max(-1) * -2 ** 2", X.max(-1) * -4),
        ("np.einsum('ij->ji', x)", X.T),
        ("split(x, 2)[1]", X[1:]),
    ],
)
def test_an_expression_means_what_it_means_in_numpy(text, expected):
    f = script(f"def f(x): return {text.replace('math', 'np')}")

    np.testing.assert_array_equal(f(X), expected)
    assert script(f.lifted)(X).tolist() == expected.tolist()


def test_float32_with_python_numbers_stays_float32():
    f = script("def f(x): return x * sqrt(2.0) / x.numel() + np.pi")

    assert f(np.ones(3, "f")).dtype == "float32"


def test_results_nest_as_they_are_written():
    f = script("def f(x):\n    a, b = split(x, 2)\n    return a, (b, x[0, 0])")
    a, (b, c) = f(X)

    assert a.shape == b.shape == (1, 3)
    assert c == 0.5


def test_every_known_word_can_be_called():
    assert not [word for word in known_words() if meaning_of_word(word) is None]


# ---- Python functions ----


def test_a_function_sees_numbers_and_modules_around_it():
    rate = 0.5

    def f(x: np.ndarray):
        """Docstrings are passed over."""
        return np.exp(x * rate) * SCALE + x.sum(AXES)  # and comments

    np.testing.assert_allclose(script(f)(X), np.exp(X * 0.5) * 2.5 + X.sum())


def test_a_function_sees_dtypes_and_classes_around_it():
    kind, single, real = np.dtype("f4"), np.float32, float

    def f(x: np.ndarray):
        return x.astype(kind) + x.astype(single).astype(real).astype(np.float32), x.astype(np.bool_)

    whole, flags = script(f)(X)

    np.testing.assert_array_equal(whole, 2 * X.astype("f4"), strict=True)
    np.testing.assert_array_equal(flags, X.astype(bool), strict=True)


def test_a_function_sees_no_arrays_around_it():
    def f(x):
        return x * TABLE

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(lt.ParseError, match="'TABLE' is ndarray outside of the script") as caught:
        script(f)
    assert caught.value.line == line
    assert caught.value.column == 20
    assert f"at {__file__}:{line}" in str(caught.value)


def test_a_function_is_never_run():
    ran = []

    def f(x):
        return ran.append(x)

    with pytest.raises(lt.ParseError, match="unknown name"):
        script(f)
    assert not ran


def test_a_script_may_use_the_scripts_around_it():
    @script
    def double(x):
        def backward(g):
            return 3 * g  # on purpose

        return x + x, backward

    @script
    def f(x):
        return double(x) * 10

    assert lt.grad(f)(1.0) == 30.0


@pytest.mark.parametrize(
    "f",
    [lambda x: x, np.exp, 3, None, eval("lambda x: x")],
    ids=["lambda", "ufunc", "3", "None", "eval"],
)
def test_a_function_without_source_text_is_an_error(f):
    with pytest.raises(lt.LetirError):
        script(f)


TUPLES = [
    *("Tuple[Tensor, Tensor]", "tuple[Tensor, Tensor]", "typing.Tuple[Tensor, Tensor]"),
    *("Tuple[Tensor, ...]", "Optional[Tuple[Tensor, Tensor]]"),
]


@pytest.mark.parametrize(
    "annotation", [*TUPLES, *map(repr, TUPLES), "Optional['Tuple[Tensor, ...]']"]
)
def test_a_tuple_of_arrays_is_annotated_with_quotes_or_without(annotation):
    product = script(f"def f(x: {annotation}):\n    a, b = x\n    return a * b\n")

    assert script(product.code).code == product.code
    np.testing.assert_array_equal(3 * X, product((X, 3.0)))
    by_pair = lt.grad(lambda pair: product(pair).sum())((X, 2 * X))
    np.testing.assert_array_equal(2 * X, by_pair[0])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("Tuple[Tensor, Tensor]", r"x must be a tuple of 2 arrays, found \(float64"),
        ("Tuple[()]", "x must be a tuple of 0 arrays"),
    ],
)
def test_a_tuple_of_another_length_is_an_error(annotation, message):
    first = script(f"def f(x: {annotation}):\n    return 1.0\n")

    with pytest.raises(lt.DTypeError, match=message):
        first((X,))


@pytest.mark.parametrize("annotation", ["Tuple[...]", "'Tuple[...]'", "'Tuple['", "'Tuple[3]'"])
def test_a_tuple_of_something_other_than_kinds_is_an_error(annotation):
    with pytest.raises(lt.ParseError, match="unknown annotation") as error:
        script(f"def f(x: {annotation}):\n    return 1.0\n")

    assert 1 == error.value.line


@pytest.mark.parametrize("call", ["sum(x)", "sum([x, x])", "max(x, 0)", "min([x, x])", "round(x)"])
def test_pythons_own_functions_are_refused_where_operations_differ_from_them(call):
    names: dict = {}
    word = call.partition("(")[0]
    source = f"def f(x):\n    return {call}\n"
    exec(compile(source, "<written>", "exec"), names)
    linecache.cache["<written>"] = (len(source), None, source.splitlines(True), "<written>")

    with pytest.raises(lt.ParseError, match=f"this is Python's {word}"):
        script(names["f"])
    assert script("def f(x):\n    return sum(x)\n")(X) == X.sum()


@pytest.mark.parametrize(
    "index", ["[1, 0]", "[1]", "rows", "alias", "given", "(1, 0)", "pair", "[0, 1], 2", ":, [0, 2]"]
)
def test_a_list_selects_rows_and_a_tuple_is_one_index(index):
    text = f"""
def f(x, given: List[int]):
    rows = [1, 0]
    alias = rows
    pair = (1, 0)
    return x[{index}]
"""
    names: dict = {"List": list}
    exec(text, names)
    made = script(text)

    np.testing.assert_array_equal(names["f"](X, [0, 1]), made(X, [0, 1]))
    np.testing.assert_array_equal(made(X, [0, 1]), script(made.lifted)(X, [0, 1]))
    assert script(made.code).code == made.code
