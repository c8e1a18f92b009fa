"""``if``, ``while`` and counted ``for`` of scripts become control flow of programs [G3]."""

import numpy as np
import pytest

import letir as lt
from letir.ast.bodies import all_bodies
from letir.scripting.units import CompilationUnit, script
from letir.testing import check_grads
from tests.each_sample import in_one_test

X = np.array([0.5, -1.0, 2.0])


def names_of(program: lt.Lambda) -> list[str]:
    """The operations of a program and of its bodies."""
    return [bind.op.name for body in all_bodies(program) for bind in body.binds]


# ---- if ----


def test_if_becomes_a_conditional():
    """[G3]"""
    f = script("""
        def f(x, y):
            if x.sum() > 1:
                z = x * y
            elif x.sum() > 0:
                z = x + y
            else:
                z = -x
            return z * 2
    """)

    for x in (X, X * 0.5, -X):
        expected = x * 3 if x.sum() > 1 else x + 3 if x.sum() > 0 else -x
        np.testing.assert_array_equal(f(x, 3.0), expected * 2)
        check_grads(f, (x, 3.0), order=2)
    program = f.at(X, X).forward
    assert names_of(program).count("cond") == 2
    assert lt.parse(lt.dumps(program)) == program


def test_an_if_without_else_keeps_the_previous_values():
    """[G3]"""
    f = script("""
        def f(x):
            scale, shift = 1.0, 0.0
            if x[0] > 0:
                scale = x.max()
            return x * scale + shift
    """)

    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(f(-X), -X)
    assert f(-X.astype("f")).dtype == "float32"


@pytest.mark.parametrize(
    "one, other, use",
    [
        ("1", "2.5", "x * a"),
        ("x.sum()", "3", "x * a"),
        ("(x > 0).all()", "True", "x * a"),
        ("(x, 1)", "(x * 2, 2.5)", "a[0] * 2 + a[1]"),
        ("x.shape", "x.shape", "x * a[0]"),
        ("x.shape[0]", "2", "x * a"),
        ("1j", "2.0", "x * a"),
    ],
)
def test_branches_give_values_of_one_kind(one, other, use):
    """[G3]"""
    text = (
        f"def f(x):\n  if x.sum() > 0:\n    a = {one}\n  else:\n    a = {other}\n  return {use}\n"
    )
    names = {}
    exec(text, names)

    for x in (X, -X):
        np.testing.assert_array_equal(script(text)(x), names["f"](x))


def test_a_conditional_expression_becomes_a_conditional():
    """[G3]"""
    f = script("def f(x, s): return (x * 2 if s > 0 and not s > 5 else x + 1) * 3")

    for s in (1.0, -1.0, 7.0):
        np.testing.assert_array_equal(f(X, s), (X * 2 if 0 < s <= 5 else X + 1) * 3)


def test_the_branch_not_taken_is_not_computed():
    """[G3]: no index out of range, and no nan in a derivative."""
    f = script("""
        def f(x, i):
            y = x.sum()
            if i < len(x) and x[i] > 0:
                y = np.sqrt(x[i])
            return y
    """)

    with np.errstate(all="raise"):
        assert f(X, np.array(3)) == 1.5
        assert f(X, np.array(2)) == np.sqrt(2)
        found = lt.grad(f)(np.array([-1.0, 0.0, 2.0]), np.array(0))
    np.testing.assert_array_equal(found, [1.0, 1.0, 1.0])


def test_a_known_condition_is_decided_while_lifting():
    """[G3]"""
    f = script("""
        def f(x, reduction: str = "mean", bias: Optional[Tensor] = None):
            if bias is not None:
                x = x + bias
            if reduction == "mean":
                y = x.mean()
            elif reduction == "sum":
                y = x.sum()
            else:
                y = x
            if x.ndim > 1:
                y = y + 1
            return y
    """)

    assert f(X) == X.mean()
    assert f(X, "sum") == X.sum()
    np.testing.assert_array_equal(f(X, "none", X), X + X)
    assert f(X[None], "sum") == X.sum() + 1
    assert "cond" not in names_of(f.at(X, "none", X).forward)


def test_a_branch_that_only_a_dropped_branch_reads_is_dropped():
    """No result of the second ``if`` is read, so no result of the first one is read either."""
    made = script("""
        def f(x, y, s):
            if s > 0.5:
                x = x * 0.5 + x
            else:
                x = x * 0.5 + x
            if s > 0.5:
                x = x * 0.5 + x
            return s, y
    """)

    assert [] == names_of(made.forward)
    assert CompilationUnit(made.lifted).f.forward == made.forward


# ---- loops ----


def test_a_counted_for_becomes_a_loop_of_constant_size():
    """[G3]"""
    power = script("""
        def power(x, n: int):
            y = np.ones_like(x)
            for i in range(n):
                y = y * x
            return y
    """)

    for n in (0, 1, 5):
        np.testing.assert_allclose(power(X, n), X**n)
    check_grads(lambda x: power(x, 4), (X,), order=2)
    sizes = [len(names_of(power.at(X, n).forward)) for n in (2, 1000)]
    assert sizes[0] == sizes[1] < 10


@pytest.mark.parametrize("bounds", ["5", "2, 5", "5, 2", "1, 8, 3", "8, 1, -3", "-2, 2"])
def test_ranges_count_as_in_python(bounds):
    """[G3]"""
    f = script(f"""
        def f(x):
            total = 0
            for i in range({bounds}):
                total = 10 * total + i
            return x * total
    """)
    total = 0
    for i in eval(f"range({bounds})"):
        total = 10 * total + i

    np.testing.assert_array_equal(f(X.astype("f")), X.astype("f") * np.float32(total))
    assert f(X.astype("f")).dtype == "float32"  # Python numbers in a loop stay weak


def test_the_bounds_of_a_range_may_be_traced_values():
    """[G3]"""
    f = script("""
        def f(x, start, stop):
            total = x
            for i in range(start, stop, 2):
                total = total + x[i]
            return total
    """)
    for start, stop in ((0, 3), (1, 3), (2, 1)):
        expected = X + sum(X[range(start, stop, 2)])
        np.testing.assert_array_equal(f(X, np.array(start), np.array(stop)), expected)
    check_grads(lambda x: f(x, np.array(0), np.array(3)), (X,))


def test_while_becomes_a_loop():
    """[G3]"""
    root = script("""
        def root(x):
            low, high, steps = 0 * x, x + 1, 0
            while high - low > 1e-9:
                middle = (low + high) / 2
                if middle * middle > x:
                    high = middle
                else:
                    low = middle
                steps = steps + 1
            return low, steps
    """)
    low, steps = root(2.0)

    np.testing.assert_allclose(low, np.sqrt(2), atol=1e-8)
    assert steps == 32
    assert type(steps) is int or np.issubdtype(type(steps), np.integer)


def test_loops_and_branches_nest():
    """[G3]"""
    text = """
def f(x, s):
    y = x
    for i in range(3):
        j = 0
        while j < i and y.sum() < 50:
            if s > j:
                y = y * s
            else:
                y = y + x[i]
            j = j + 1
        y = y + i
    return y, s
"""
    f, names = script(text), {}
    exec(text, names)

    for s in (0.5, 1.5, 3.0):
        for one, other in zip(f(X, s), names["f"](X, s), strict=True):
            np.testing.assert_array_equal(one, other)
        check_grads(lambda x, s: f(x, s)[0], (X, s), order=1)


def test_a_temporary_of_a_loop_may_change_its_type():
    """[G3]: a loop does not carry values that are not read afterwards."""
    f = script("""
        def f(x):
            t = x.sum()
            y = x + t
            for i in range(3):
                t = y * 2
                y = t - x
            return y
    """)
    loop = next(bind for bind in f.at(X).forward.binds if bind.op.name == "fori_loop")

    assert len(loop.binders) == 1
    np.testing.assert_array_equal(f(X), (X + 1.5) * 8 - 7 * X)


def test_the_index_keeps_its_last_value_if_it_had_one():
    """[G3]"""
    f = script("""
        def f(x, n: int):
            i = 10
            for i in range(n):
                x = x + 1
            return x * i
    """)

    np.testing.assert_array_equal(f(X, 3), (X + 3) * 2)
    np.testing.assert_array_equal(f(X, 0), X * 10)


def test_a_number_of_the_caller_becomes_an_array_where_a_branch_gives_one():
    """[G3]"""
    f = script("""
        def f(x, s):
            for i in range(2):
                s = s + x.sum()
            if s > 0:
                t = s
            else:
                t = 1.0
            return t
    """)

    for dtype in ("f4", "f8"):
        for start in (1.0, 1, -9.0):
            x = X.astype(dtype)
            expected = start + 2 * x.sum()
            assert f(x, start) == (expected if expected > 0 else 1.0)
            assert f(x, start).dtype == dtype


def test_loops_carry_values_in_tuples():
    """[G3]"""
    f = script("""
        def f(x):
            pair = x, 1.0
            for i in range(3):
                a, b = pair
                pair = a * 2, b + a.sum()
            return pair
    """)
    a, b = f(X)

    np.testing.assert_array_equal(a, 8 * X)
    assert b == 1 + 1.5 * 7


def test_constants_that_a_loop_does_not_change_stay_constants():
    """[G3]"""
    f = script("""
        def f(x):
            shape = x.shape
            y = x.sum()
            for i in range(2):
                shape = x.shape
                y = y + np.ones(shape).sum()
            return y
    """)

    assert f(X) == 7.5


def test_a_carried_value_that_only_a_dropped_branch_reads_is_dropped():
    made = script("""
        def f(x, y, n):
            total, last, k = x, y, 0
            while k < n:
                k = k + 1
                if k > 1:
                    unread = last * 2
                last = total * k
                total = total + y
            return total, y
    """)

    (loop,) = [bind for bind in made.forward.binds if bind.op.name == "while_loop"]
    assert 2 == len(loop.binders)  # k and total
    assert CompilationUnit(made.lifted).f.forward == made.forward


# ---- backward functions ----


def test_control_flow_in_a_function_with_its_own_backward():
    """[G3]"""
    f = script("""
        def power(x, n: int):
            y = x
            for i in range(n - 1):
                y = y * x
            def backward(g):
                slope = 0 * x + n
                for j in range(n - 1):
                    slope = slope * x
                if g.sum() > 100:
                    slope = slope * 1
                return g * slope
            return y, backward
    """)

    check_grads(lambda x: f(x, 3), (X,), order=2)
    np.testing.assert_array_equal(lt.grad(lambda x: f(x, 3).sum())(X), 3 * X**2)


def test_a_backward_captures_the_result_of_a_loop():
    """[G3]"""
    f = script("""
        def f(x):
            y = x
            for i in range(3):
                y = y * 2
            def backward(g):
                return g * 8 * y / y
            return y, backward
    """)

    assert "  return (y_3, (y_3,))" in f.lifted
    again = CompilationUnit(f.lifted)
    assert again.f.forward == f.forward
    assert again.backward.forward == f.backward
    np.testing.assert_array_equal(lt.grad(lambda x: f(x).sum())(X), [8.0, 8.0, 8.0])


def test_functions_of_a_unit_are_called_in_loops():
    """[G3]"""
    unit = CompilationUnit("""
def square(x):
    def backward(g):
        return 3 * g * x
    return x * x, backward

def halved(x):
    while x.sum() > 1:
        x = x / 2
    return x

def f(x):
    for i in range(2):
        if i > 0:
            x = square(x)
        x = halved(x)
    return x
""")

    np.testing.assert_array_equal(unit.f(X), (X / 2) ** 2 / 2)
    np.testing.assert_array_equal(lt.grad(lambda x: unit.f(x).sum())(X), 3 * X / 2 / 2 / 2)
    assert CompilationUnit(unit.code).f.forward == unit.f.forward


def test_an_operation_may_have_control_flow():
    """[G3]"""

    @lt.script_op("tests.clipped_power")
    def clipped_power(x, n: int = 3):
        y = x
        for _ in range(n - 1):
            y = y * x
        if y.sum() > 100:
            y = y / y.sum()
        return y

    check_grads(clipped_power, (X,), order=2)
    program = lt.trace(clipped_power, X)
    assert [bind.op.name for bind in program.binds] == ["tests.clipped_power"]
    np.testing.assert_array_equal(lt.vmap(clipped_power)(np.stack([X, 9 * X]))[0], X**3)


# ---- what is refused ----


def reason(body: str, match: str = "") -> lt.ParseError:
    """The error of a function with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    with pytest.raises(lt.ParseError, match=match) as caught:
        script(f"def f(x, y):\n{lines}\n    return x\n")
    return caught.value


@in_one_test
@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        ("if x > 0:\n    return x", 3, 9, "early return: return is the last statement"),
        ("for i in range(3):\n    break", 3, 9, "break: a loop ends by its condition"),
        ("while x > 0:\n    x = x - 1\n    continue", 4, 9, "continue: put what follows"),
        ("if x > 0:\n    z = x\nx = z", 4, 9, "'z' is assigned in only one branch of the if at"),
        (
            "if x > 0:\n    pass\nelse:\n    z = x\nx = z",
            6,
            9,
            "'z' is assigned in only one branch",
        ),
        ("for i in range(3):\n    z = x\nx = z", 4, 9, "'z' is assigned only inside of the loop"),
        ("for i in range(3):\n    x = x * 2\nx = i", 4, 9, "'i' is assigned only inside of the"),
        ("while x > z:\n    z = x", 2, 15, "'z' has no value before the loop at line 2"),
        ("for i in range(3):\n    x = x + z\n    z = x", 3, 17, "'z' has no value before the"),
        ("for z in x:\n    x = z", 2, 14, "a script counts: for i in range"),
        ("for i, j in range(3):\n    x = x", 2, 9, "a loop counts by one name"),
        ("for i in range():\n    x = x", 2, 14, "range takes one to three integers"),
        ("for i in range(3):\n    x = x + 1\nelse:\n    x = y", 5, 9, "a loop has no else"),
        ("while True:\n    x = x + 1", 2, 11, "the loop would never end"),
        ("if x > 0:\n    x += 1", 3, 9, "changes nothing in place"),
        ("if x > 0:\n    def back(g):\n        return g", 3, 9, "define the backward outside"),
        ("match x:\n    case 1: pass", 2, 5, "match: write if and elif"),
        ("x = x and y", 2, 9, "'and' and 'or' ask for a truth value"),
        ("x = x is y", 2, 9, "'is' compares with None"),
    ],
)
def test_an_unsupported_statement_is_an_error_with_its_place(body, line, column, message):
    """[G3]"""
    error = reason(body, match=message)

    assert (line, column) == (error.line, error.column)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("if x[0] > 0:\n    x = x.sum()", lt.ShapeError, r"'x' is float64\[\] where the condition"),
        (
            "if x[0] > 0:\n    x = x.astype(int)",
            lt.DTypeError,
            r"where the .*float64\[3\] whe",
        ),
        (
            "for i in range(3):\n    x = x.sum()",
            lt.ShapeError,
            r"'x' is float64\[3\] before the",
        ),
        ("while x[0] > 0:\n    x = x > 0", lt.DTypeError, r"bool\[3\] after a step of it"),
        ("y = 'a'\nif x[0] > 0:\n    y = 'b'\nx = y", lt.LetirError, "'y' is 'b' where the cond"),
        ("if x > 0:\n    x = x + 1", lt.LetirError, "a condition is one truth value, found bool"),
        (
            "y = True\nif x[0] > 0:\n    y = 2\nx = x * y",
            lt.DTypeError,
            r"int64\*\[\] where the condition holds, bool\[\]",
        ),
        (
            "y = (x, 1)\nif x[0] > 0:\n    y = (x,)\nx = y[0]",
            lt.DTypeError,
            r"\(float64\[3\],\) where the condition holds, \(float64\[3\], int64\*\[\]\) where",
        ),
        ("y = x > 0\nif x[0] > 0:\n    y = 3\nx = x * y", lt.ShapeError, r"bool\[3\] where not"),
        ("for i in range(y):\n    x = x + 1", lt.LetirError, "must be integers, found float64"),
        ("for i in range(2**70):\n    x = x + 1", lt.LetirError, "counts in 64 bits"),
        ("for i in range(0, 3, 0):\n    x = x + 1", lt.LetirError, "the step of a range"),
    ],
)
def test_values_that_change_their_type_are_an_error(body, error, message):
    """[G3]"""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    f = script(f"def f(x, y):\n{lines}\n    return x\n")

    with pytest.raises(error, match=message) as caught:
        f(X, 1.0)
    assert "at <script>:" in str(caught.value)


def test_blocks_may_nest_deeply_but_not_without_limit():
    """[G3]"""

    def text(depth: int) -> str:
        ifs = "".join(f"{'    ' * (i + 1)}if x > {i}:\n" for i in range(depth))
        return f"def f(x):\n{ifs}{'    ' * (depth + 1)}x = x * 2\n    return x\n"

    assert script(text(39))(40.0) == 80.0
    with pytest.raises(lt.ParseError, match="nested too deeply: make a function"):
        script(text(60))


def test_nested_loops_are_read_a_fixed_number_of_times_per_level():
    """[G3]: each level turns a number into an array, which needs a second round."""
    depth, lines = 16, []
    for i in range(depth):
        lines += [f"{'    ' * i}s{i} = 0", f"{'    ' * i}for i{i} in range(1):"]
    lines.append(f"{'    ' * depth}s{depth - 1} = s{depth - 1} + x.sum()")
    lines += [f"{'    ' * (i + 1)}s{i} = s{i} + s{i + 1}" for i in reversed(range(depth - 1))]
    text = "".join(f"    {line}\n" for line in [*lines, "return s0"])

    # otherwise the innermost body would be read 2 ** 16 times
    assert script(f"def f(x):\n{text}")(X) == X.sum()
