"""What notebooks show of programs, gradients, jitted functions and reports."""

import re

import numpy as np
import pytest

import letir as lt
from letir.viz.view_page import html_page, html_table
from tests.viz.views import (
    ARGS,
    EVIL,
    evil_function,
    evil_program,
    expect_harmless,
    loss,
    shown_rows,
)

SCALED = """\
lambda %0:x: float64[3] {
  %1:y: float64[3] = sin(%0)  # model.py:3
  %2: float64[3] = mul(%1, 2.0)  # model.py:3
  return (%2, %1)
}"""


def test_a_program_is_a_table_of_its_parameters_binds_and_results():
    assert [
        ["name", "type", "operation", "operands", "line"],
        ["%0:x", "float64[3]", "param", "", ""],
        ["%1:y", "float64[3]", "sin", "%0:x", "model.py:3"],
        ["%2", "float64[3]", "mul", "%1:y, 2.0", ""],  # the same line as above
        ["", "", "return", "%2, %1:y", ""],
    ] == shown_rows(lt.parse(SCALED)._repr_html_())


def test_the_code_of_the_users_line_is_shown():
    rows = shown_rows(lt.trace(loss, *ARGS)._repr_html_())

    assert rows[3][4].endswith(" x @ w")
    assert rows[4][4].endswith(" np.tanh(x @ w)")


def test_a_local_has_the_same_mark_where_it_is_bound_and_used():
    html = lt.parse(SCALED)._repr_html_()

    assert ["b", "i", "i"] == re.findall(r'<(b|i) data-v="1">', html)


def test_bodies_are_folded_and_numbered_as_in_the_text():
    f = lt.trace(lambda x: lt.fori_loop(0, 3, lambda i, c: np.sin(c) + i, x), np.ones(2))
    html = f._repr_html_()
    names = re.findall(r"(%\d+)(?::\w+)?: ", str(f))

    assert "<details><summary>body: 2 binds</summary>" in html
    assert names
    assert set(names) <= set(re.findall(r"<b data-v=\"\d+\">(%\d+)", html))


def test_a_long_program_shows_its_first_and_last_binds():
    x = np.ones(2)
    f = lt.trace(lambda x: [x := np.sin(x) for _ in range(1000)][-1], x)
    rows = shown_rows(f._repr_html_())

    assert len(rows) == 200 + 4  # heads, parameter, what is left out, return
    assert ["… 800 binds left out: str and dumps write the program, slice takes a part …"] in rows
    assert rows[-2][0].startswith("%1000")


def test_bodies_of_a_program_are_shown_up_to_a_number_of_rows():
    x = np.ones(2)
    inner = lt.trace(lambda x: [x := np.sin(x) for _ in range(100)][-1], x)
    f = lt.trace(lambda x: [x := lt.cond(x.sum() > 0, inner, inner, x) for _ in range(50)][-1], x)
    html = f._repr_html_()

    assert len(shown_rows(html)) < 600
    assert "100 binds, left out" in html
    last = re.findall(r"return %(\d+)", str(f))[-1]
    assert f'<i data-v="{last}">' in html  # numbers of locals that are left out are counted


def test_a_gradient_links_the_residuals_of_its_two_programs():
    html = lt.differentiate(lt.trace(lambda x: np.exp(x).sum(), np.ones(3)))._repr_html_()
    both = [row for row in shown_rows(html) if any("kept" in c or "residual" in c for c in row)]

    assert "gradient: 1 residual, 24 bytes" in html
    assert [["%1", "float64[3] kept 24 bytes"], ["%2", "float64[3]"]] == [row[:2] for row in both]
    assert "residual %1 of f" in both[1]
    # its definition in f, the parameter of df, and its use there
    assert ["b", "b", "i"] == sorted(re.findall(r'<(b|i) data-v="f1">', html))[:3]


def test_a_jitted_function_shows_counters_plans_guards_and_programs():
    f = lt.jit(loss)
    f(*ARGS), f(ARGS[0], -ARGS[1])
    html = f._repr_html_()
    rows = shown_rows(html)

    assert "jitted function" in html
    assert ["executors", "invocations", "hits", "misses", "compiles", "evictions"] in rows
    assert ["1", "2", "0", "2", "2", "0"] in rows
    assert html.count("recorded, last used by call") == 2
    assert [row[1] for row in rows if row[0].startswith("views.py")] == ["h.sum() > 0"] * 2
    assert html == f.debug_state()._repr_html_()
    assert "made because" in f.debug_state().plans[0]._repr_html_()


def test_a_jitted_function_that_was_not_called_has_no_plans():
    assert "no plan yet: the first call makes one" in lt.jit(loss)._repr_html_()


def test_residuals_are_a_table():
    found = lt.explain_residuals(lt.trace(loss, *ARGS))
    rows = shown_rows(found._repr_html_())

    assert rows[0][:3] == ["kept", "type", "bytes"]
    assert len(rows) == 1 + len(found)


def test_a_comparison_marks_what_differs_by_signs_too():
    f = lt.parse("lambda %0 { %1 = exp(%0); %2 = exp(%0); %3 = mul(%1, %2); return %3 }")
    rows = shown_rows(lt.diff(f, lt.passes.common_subexpressions(f))._repr_html_())

    assert ["%2 = exp(%0)", "<", ""] in rows
    assert ["%3 = mul(%1, %2)", "|", "%3 = mul(%1, %1)"] in rows
    assert "the programs are the same" in lt.diff(f, f)._repr_html_()


def test_short_cells_of_reports_stand_on_one_line():
    html = html_table(
        ("line", "code"), [("In [2], line 3", "x = np.tanh(z) / (1 + np.exp(-z)) + 1")]
    )

    assert '<td class="d">In [2], line 3</td><td>x = ' in html


def test_memory_and_profile_of_a_plan_are_tables():
    plan = lt.compile(lt.trace(lambda x: np.sort(np.sin(x)), np.ones(1000)))

    assert ["8,000", "sin: float64[1000]"] in [
        r[:2] for r in shown_rows(plan.memory()._repr_html_())
    ]
    assert len(shown_rows(plan.profile(np.ones(1000))._repr_html_())) == 3
    assert "compiled program: 2 binds of 2 recorded" in plan._repr_html_()


def test_a_plan_with_kernels_shows_a_table_of_them():
    pytest.importorskip("llvmlite", reason="the extra fast makes kernels")
    f = lt.trace(lambda x: np.sqrt(np.abs(x) + 1) * x, np.ones(100_000))
    html = lt.compile(f, kernels="on")._repr_html_()
    kernel = next(row for row in shown_rows(html) if row[0].startswith("kernel of"))

    assert "<h4>1 kernel</h4>" in html
    assert kernel[:2] == ["kernel of 4 operations: abs, add, sqrt, mul", "1,600,000"]


def test_a_variable_shows_its_history():
    x = lt.Variable(np.ones(3), requires_grad=True, name="x")
    y = (np.sin(x) * 2.0).sum()

    assert [r[2] for r in shown_rows(y._repr_html_())[2:5]] == ["sin", "mul", "sum"]
    assert "history" not in x._repr_html_()
    y.backward()
    assert "were freed by backward" in y._repr_html_()


def views() -> dict:
    """A view of each kind; names and lines of the programs are markup."""
    f, g = evil_program(), evil_function()
    x = np.ones(3)
    jitted, plan = lt.jit(g), lt.compile(lt.trace(g, x))
    jitted(x)
    variable = lt.Variable(x, requires_grad=True, name=EVIL)
    return {
        "program": f,
        "gradient": lt.differentiate(lt.Lambda(f.params, f.binds[:2], f.ret)),
        "jitted function": jitted,
        "explanation": lt.explain(jitted, x),
        "residuals": lt.explain_residuals(lt.Lambda(f.params, f.binds[:2], f.ret)),
        "comparison": lt.diff(f, lt.Lambda(f.params, f.binds[:2], f.ret)),
        "plan": plan,
        "memory": plan.memory(),
        "profile": plan.profile(x),
        "variable": np.sin(variable).sum(),
    }


def test_names_and_lines_of_a_program_are_not_markup():
    pages = {kind: view._repr_html_() for kind, view in views().items()}

    for kind, html in pages.items():
        expect_harmless(html)
        assert html.startswith('<div class="letir">'), kind


def test_the_title_of_a_page_is_not_markup():
    page = html_page(evil_program()._repr_html_(), EVIL)

    assert "<title>&lt;/script&gt;" in page
    assert "default-src 'none'" in page


def test_a_malformed_program_is_an_error_of_check():
    f = lt.parse("lambda %0 { %1 = exp(%0); return %1 }")
    broken = lt.Lambda(f.params, (lt.Bind(f.binds[0].binders, f.binds[0].op, (3,)),), f.ret)

    with pytest.raises(lt.LetirError):
        broken._repr_html_()
