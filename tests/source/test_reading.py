"""How sources look: names, guards, comments; and which programs are refused."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import letir as lt
from letir.ast.builder import LetBuilder
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.ops.define.records import composite
from letir.testing import assert_same


def loaded(source: str, name: str = "f"):
    """A function of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return namespace[name]


def body_of(source: str) -> str:
    """The source without its imports and comments."""
    lines = [line for line in source.splitlines() if not line.strip().startswith("#")]
    return "\n".join(lines).removeprefix("import numpy as np\n\n\n") + "\n"


def the_same(f, *args, **kwargs) -> str:
    """The source of ``f``. Raises AssertionError unless it computes what the program computes."""
    program = lt.trace(f, *args, **kwargs)
    source = lt.to_source(program)
    assert_same(program(*args, **kwargs), loaded(source)(*args, **kwargs))
    return source


def test_a_function_reads_as_its_author_wrote_it():
    def loss(w, x, y):
        h = np.tanh(x @ w)
        r = h - y
        return (r**2).mean(axis=0) / 2

    source = the_same(loss, np.ones((3, 2)), np.ones((4, 3)), np.zeros((4, 2)))

    assert body_of(source) == textwrap.dedent("""\
        def f(w, x, y):
            matmul_1 = x @ w
            h = np.tanh(matmul_1)
            r = h - y
            power_1 = r ** 2
            mean_1 = np.mean(power_1, axis=0)
            div_1 = mean_1 / 2
            return div_1
        """)
    assert "# test_reading.py:" in source
    assert "h = np.tanh(x @ w)\n" in source  # the user's line, as a comment


def test_operators_are_written_only_where_they_equal_the_ufunc():
    def f(x, z, b, n, e):
        powers = x**2, x**-3, 2**x, x**x, x**0.5, x**-1, x**e, np.power(b, 2), np.power(z, 2)
        products = x * z, z[0] * z[1], x[0] * x[1], n[0] * n[1], x[0] ** x[1]
        squares = b**2, z**2  # NumPy's operator squares these, its ufunc does not
        return powers, products, squares, -x, -n, -n[0], -x[0]

    x, n = np.array([0.1, 2.3]), np.array([3, 2], np.int8)
    source = the_same(f, x, x + 1j, x > 1, n, 0.5)

    for text in ("x ** 2", "x ** -3", "2 ** x", "x ** x", "x * z", "-x", "-n", "index_3 * index_4"):
        assert f" = {text}\n" in source
    for text in ("x, 0.5", "x, -1", "x, e", "b, 2", "z, 2"):
        assert f"np.power({text})" in source
    assert "np.square(b)" in source
    assert "np.square(z)" in source
    assert "np.multiply(index_1, index_2)" in source


def test_a_gradient_reads_as_a_forward_and_a_backward_function():
    def f(a, b):
        c = a * b
        return np.sin(c).sum()

    g = lt.differentiate(lt.trace(f, np.ones(3), np.ones(3)))
    source = lt.to_source(g, "loss")

    assert body_of(source) == textwrap.dedent("""\
        def loss_forward(a, b):
            c = a * b
            sin_1 = np.sin(c)
            sum_1 = np.sum(sin_1)
            return sum_1, (a, b, c)


        def loss_backward(residuals, ct):
            if ct is None:
                return (np.zeros((3,)), np.zeros((3,)))
            a, b, c = residuals
            broadcast_to_1 = np.broadcast_to(ct, (3,))
            cos_1 = np.cos(c)
            mul_1 = broadcast_to_1 * cos_1
            d_a = mul_1 * b
            d_b = mul_1 * a
            return (d_a, d_b)
        """)
    _, residuals = loaded(source, "loss_forward")(np.ones(3), np.full(3, 2.0))
    found = loaded(source, "loss_backward")(residuals, np.float64(1.0))
    assert_same(g.backward(residuals, np.float64(1.0)), found)
    assert_same(g.backward(residuals, None), loaded(source, "loss_backward")(residuals, None))


def test_a_backward_function_of_several_results_checks_which_cotangents_are_given():
    g = lt.differentiate(lt.trace(lambda x: (x * x, np.exp(x)), np.ones(2)))
    source = lt.to_source(g)
    backward = loaded(source, "f_backward")
    _, residuals = g.forward(np.ones(2))

    assert "is None" in source
    for cts in [(np.ones(2), np.ones(2)), (None, np.ones(2)), (np.ones(2), None), (None, None)]:
        assert_same(g.backward(residuals, *cts), backward(residuals, *cts))


@pytest.mark.parametrize(
    "file", ["a\nb.py", "a\x00b.py", "a\u2028b.py", "\ud800.py", "/no/such.py"]
)
def test_unusual_file_names_are_escaped_in_comments(file):
    program = lt.trace(lambda x: x * 2, np.ones(2))
    (bind,) = program.binds
    program = program.with_binds(
        [lt.Bind(bind.binders, bind.op, bind.args, source=lt.Source(file, 1))]
    )

    assert_same(np.full(2, 2.0), loaded(lt.to_source(program))(np.ones(2)))


def test_attributes_of_composites_of_every_kind_are_written():
    odd = composite("reading.odd", lambda x, *, note: x + 1)

    the_same(lambda x: odd(x, note='"""\\'), np.ones(2))
    the_same(lambda x: odd(x, note="\n\x00"), np.ones(2))


def test_python_numbers_stay_python_numbers():
    source = the_same(lambda x, n, r: (x * n, n / 2, r, r * r), np.ones(2, np.float32), 3, 0.5)
    assert "r = float(r)" in source

    program = lt.trace(lambda r: r * r, 0.5)
    assert_same(program(2), loaded(lt.to_source(program))(2))
    assert type(program(2)) is float


@pytest.mark.parametrize(
    "name",
    ["lambda", "np", "float", "f", "x.0.w", "2nd", "ﬁ", "sum", "sum_1", "_", "tuple", "print"],
)
def test_colliding_names_are_changed(name):
    builder = LetBuilder()
    x = builder.param(ArrayType(float, (2,)), name)
    y = builder.param(ArrayType(float, (), True), name)
    total = (x * y + lt.Value(builder, builder.constant(np.arange(99.0)))[:2]).sum()
    total.arg.name = name
    program = builder.build([total, total * y])

    found = loaded(lt.to_source(program))(np.ones(2), 3.0)

    assert_same(program(np.ones(2), 3.0), found)


@pytest.mark.parametrize("name", ["no name", "lambda", "np", "1st", ""])
def test_a_function_name_must_be_valid(name):
    with pytest.raises(lt.ExportError, match="cannot name a function"):
        lt.to_source(lt.trace(lambda x: x, 1.0), name)


# ---- guards, functions, operations of users ----


@pytest.mark.parametrize(
    ("f", "other"),
    [
        (lambda x: x if x.sum() > 0 else -x, -np.ones(3)),
        (lambda x: x if x.sum() < 0 else -x, -np.ones(3)),
        (lambda x: x * int((x > 0).sum()), np.array([1.0, 1.0, -1.0])),
        (lambda x: x[x > 0], np.array([1.0, 1.0, -1.0])),
        (lambda x: x * lt.concrete(x), np.zeros(3)),
    ],
)
def test_a_guard_is_a_statement(f, other):
    program = lt.trace(f, np.ones(3))
    written = loaded(lt.to_source(program))

    assert_same(program(np.ones(3)), written(np.ones(3)))
    with pytest.raises(ValueError, match=r"test_reading.py:\d+: recorded where .* was"):
        written(other)


def test_equal_composites_share_one_function():
    def f(x):
        return lt.nn.log_softmax(x) + lt.nn.log_softmax(2 * x) + lt.nn.log_softmax(x, axis=0)

    source = the_same(f, np.ones((2, 3)))

    assert source.count("def log_softmax") == 2
    assert "def log_softmax(x):" in source


def test_a_custom_rule_is_written_as_its_function():
    @lt.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x * 1, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    source = the_same(lambda x: clipped(x) * 2, np.ones(2))
    g = lt.differentiate(lt.trace(lambda x: clipped(x) * 2, np.ones(2)))

    assert "custom" not in body_of(source)
    _, residuals = g.forward(np.ones(2))
    found = loaded(lt.to_source(g), "f_backward")(residuals, np.full(2, 5.0))
    assert_same(g.backward(residuals, np.full(2, 5.0)), found)


def test_an_opaque_function_is_imported_from_its_module():
    softplus = lt.opaque(textwrap.indent, ArrayType(float), name="reading.indent")
    builder = LetBuilder()
    program = builder.build([builder.apply(softplus, [builder.param(ArrayType(float), "x")])])

    source = lt.to_source(program)

    assert "from textwrap import indent\n" in source
    assert "indent(x)" in source


def test_an_opaque_derivative_is_imported_too():
    polyval = np.polynomial.polynomial.polyval  # stands in for a derivative: nothing calls it here
    norm = lt.opaque(np.linalg.norm, lambda x: ArrayType(float), vjp=polyval, name="reading.norm")

    source = lt.to_source(lt.differentiate(lt.trace(norm, np.ones(2))))

    assert "from numpy.linalg import norm" in source
    assert "from numpy.polynomial.polynomial import polyval\n" in source
    assert "return (cts_1[0],)" in source


def test_an_opaque_function_without_a_place_is_an_error():
    local = lt.opaque(lambda x: x, ArrayType(float), name="reading.local")
    builder = LetBuilder()
    program = builder.build([builder.apply(local, [builder.param(ArrayType(float), "x")])])

    with pytest.raises(lt.ExportError, match="no import finds"):
        lt.to_source(program)


def test_an_operation_of_a_user_defines_its_source_form():
    impl, aval = (lambda xp, x, *, n: n * x - x), (lambda x, *, n: x)
    mute = lt.primitive("reading.mute", impl, aval)
    written = lt.primitive("reading.written", impl, aval, source="{n} * {0} - {0}")

    source = the_same(lambda x: written(x, n=3) + 1, np.ones(2))

    assert "3 * x - x" in source
    with pytest.raises(
        lt.ExportError, match=r"reading.mute has no form in NumPy\n(.|\n)*at .*py:\d+"
    ):
        lt.to_source(lt.trace(lambda x: mute(x, n=3), np.ones(2)))


def test_symbolic_sizes_are_read_from_the_arrays():
    f = lt.trace(lambda x: np.zeros_like(x) + x.sum(axis=0), lt.ShapeDtype(("n", 2)))
    g = lt.differentiate(f)
    x = np.arange(6.0).reshape(3, 2)
    forward, backward = (loaded(lt.to_source(g), f"f_{part}") for part in ("forward", "backward"))

    out, residuals = forward(x)

    assert_same(g.forward(x), (out, residuals))
    assert_same(g.backward(residuals, np.ones((3, 2))), backward(residuals, np.ones((3, 2))))


def test_the_source_assumes_nothing_about_unknown_types():
    text = (
        "lambda %0:x, %1:y { %2 = mul(%0, %1); %3 = neg(%2); %4 = power(%3, 2); return (%2, %4) }"
    )
    program = parse(text)
    written = loaded(lt.to_source(program))

    for args in [(2.0, 3.0), (np.ones(2), 3), (np.float32(2), np.arange(3))]:
        assert_same(program(*args), written(*args))


def test_a_value_that_is_not_a_program_is_refused():
    with pytest.raises(lt.DTypeError, match=r"found function\n  record it first"):
        lt.to_source(lambda x: x)


def test_sources_run_without_letir(tmp_path):
    def f(key, x, i, w):
        h = lt.nn.dropout(lt.nn.log_softmax(x @ w), key, rate=0.25)
        h[i] += 1.0
        return h.sum() * lt.numpy.asarray(np.arange(100.0))[i].sum()

    args = (
        np.array([7, 11]),
        np.linspace(-1, 1, 12).reshape(4, 3),
        np.array([0, 2]),
        np.ones((3, 2)),
    )
    g = lt.differentiate(lt.trace(f, *args), [False, True, False, True])
    program = tmp_path / "program.py"
    program.write_text(lt.to_source(g), encoding="utf-8")
    expected, residuals = g.forward(*args)
    cts = g.backward(residuals, np.float64(1.0))
    np.savez(
        tmp_path / "data.npz", *args, expected=expected, **{f"ct{i}": c for i, c in enumerate(cts)}
    )
    script = textwrap.dedent("""\
        import sys
        sys.modules["letir"] = None  # an import of it fails
        import numpy as np
        from program import f_forward, f_backward
        data = np.load("data.npz")
        out, residuals = f_forward(*(data[f"arr_{i}"] for i in range(4)))
        assert out.tobytes() == data["expected"].tobytes()
        for i, ct in enumerate(f_backward(residuals, np.float64(1.0))):
            assert ct.tobytes() == data[f"ct{i}"].tobytes()
        assert not [name for name in sys.modules if name.startswith("letir.")]
        """)

    found = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert found.returncode == 0, found.stderr
