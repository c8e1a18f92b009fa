"""The explorer page: what it says of programs, without a browser."""

import json
import re

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, LetirError
from tests.viz.views import EVIL, evil_program


def loss(w, x):
    h = np.tanh(x @ w)
    return (h * np.exp(h)).sum()


ARGS = np.ones((3, 2)), np.ones((4, 3))


def content_of(page) -> dict:
    """The JSON of a page."""
    text = re.search(r'<script type="application/json" id="program">(.*?)</script>', page.html)[1]
    return json.loads(text)


def test_a_function_is_recorded_and_differentiated():
    page = lt.viz.explorer(loss, *ARGS)

    assert str(page) == ("explorer of loss: 2 parameters, 5 binds, 1 result; backward: 12 binds")


def test_each_kind_of_program_has_a_page():
    f = lt.trace(loss, *ARGS)
    step = lt.jit(loss)
    step(*ARGS)
    shown = [f, lt.differentiate(f), lt.compile(f), step]

    assert [content_of(lt.viz.explorer(one))["program"]["forward"] for one in shown] == [5] * 4


def test_locals_have_the_numbers_of_the_text():
    f = lt.trace(lambda x: lt.fori_loop(0, 3, lambda i, c: np.sin(c) + i, x), np.ones(2))
    content = content_of(lt.viz.explorer(f, gradient=False))
    (loop,) = [content["rows"][row] for row in content["program"]["rows"]]
    ((name, params, rows, results, left),) = loop[5]

    numbers = [*loop[0], *params, *[n for row in rows for n in row[0]]]
    assert [f"%{n}" for n in numbers] == re.findall(r"(%\d+)(?::\w+)?: ", str(f))[1:]
    assert (name, results, left) == ("body", rows[-1][0], 0)


def test_residuals_are_the_values_that_the_backward_program_reads():
    content = content_of(lt.viz.explorer(loss, *ARGS))
    program = content["program"]
    forward = [content["rows"][row] for row in program["rows"][: program["forward"]]]
    names = [content["texts"][row[1]] for row in forward]
    made = {row[0][0]: name for row, name in zip(forward, names, strict=True)}

    assert {made.get(local, "parameter"): size for local, size in program["kept"]} == {
        "parameter": 96,
        "tanh": 64,
        "exp": 64,
    }


def test_the_lines_of_the_function_are_in_the_page():
    content = content_of(lt.viz.explorer(loss, *ARGS))
    ((first, texts),) = content["files"][0]["pieces"]

    assert texts[0] == "def loss(w, x):"
    file, line, last = content["lines"][0]
    assert texts[line - first] == "    h = np.tanh(x @ w)"
    assert (file, line) == (0, last)


def test_a_program_without_derivative_says_why():
    page = lt.viz.explorer(lt.trace(lambda x: x > 0, np.ones(3)))

    assert "backward" not in str(page)
    assert content_of(page)["program"]["reason"] == (
        "No result depends differentiably on a parameter."
    )


def test_texts_of_a_program_cannot_end_the_script():
    page = lt.viz.explorer(evil_program())

    assert page.html.count("<script") == page.html.count("</script>") == 2
    assert EVIL not in page.html
    assert any(EVIL[:20] in text for text in content_of(page)["texts"])


def test_a_page_loads_nothing():
    html = lt.viz.explorer(loss, *ARGS).html

    assert "default-src 'none'" in html
    loading = r"(?:src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)"
    assert not re.findall(loading, html)


def test_other_values_are_refused():
    with pytest.raises(DTypeError, match=r"explorer shows a program, .*found int"):
        lt.viz.explorer(3)


def test_pages_are_html_files(tmp_path):
    page = lt.viz.explorer(loss, *ARGS)
    page.save(tmp_path / "page.html")

    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(LetirError, match=r"end the name with \.html"):
        page.save(tmp_path / "page.svg")
