"""graph: the data flow of programs as pictures, text and DOT."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.viz.layered_layout import layered_layout
from tests.viz.views import evil_program, expect_harmless

PROGRAM = """\
lambda %0:x: float64[3], %1 {
  %2:y = sin(%0)  # model.py:3
  %3 = mul(%2, 2.0)  # model.py:3
  %4 = add(%3, %1)  # model.py:4
  %5 = add(%4, %2)  # model.py:3
  return (%5, %0)
}"""
SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture) -> list[str]:
    """The titles of the boxes of a picture."""
    root = ET.fromstring(picture._repr_svg_())
    return [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g") if g.get("data-v")]


def texts(picture) -> list[str]:
    return [e.text for e in ET.fromstring(picture._repr_svg_()).iter(f"{SVG}text")]


def test_a_box_for_each_operation_in_groups_of_the_same_line():
    assert str(lt.viz.graph(lt.parse(PROGRAM))).splitlines() == [
        "data flow: 2 parameters, 4 binds, 2 results",
        "%0:x: float64[3]  -> %2, return",
        "%1  -> %4",
        "model.py:3",
        "  %2:y = sin(%0)  -> %3, %5",
        "  %3 = mul(%2, 2.0)  -> %4",
        "model.py:4",
        "  %4 = add(%3, %1)  -> %5",
        "model.py:3",
        "  %5 = add(%4, %2)  -> return",
    ]


def test_a_picture_has_the_boxes_and_edges_of_its_text():
    picture = lt.viz.graph(lt.parse(PROGRAM))
    root = ET.fromstring(picture._repr_svg_())

    assert boxes(picture)[2:] == [
        "%2:y = sin(%0)",
        "%3 = mul(%2, 2.0)",
        "%4 = add(%3, %1)",
        "%5 = add(%4, %2)",
        "return",
    ]
    assert len(list(root.iter(f"{SVG}path"))) == 8
    assert {"mul 2.0", "%2:y", "model.py:4"} <= set(texts(picture))
    assert root.find(f"{SVG}desc").text == "A graph of 7 boxes in 6 groups."


def step_of(h, w):
    return np.tanh(h @ w)


def test_consecutive_operations_of_one_function_form_a_group():
    def loss(x, w):
        return (step_of(x, w) ** 2).sum()

    f = lt.trace(loss, np.ones((2, 3)), np.ones((3, 3)))
    places = str(lt.viz.graph(f, cluster="function")).splitlines()[3:]

    assert [line for line in places if not line.startswith(" ")] == ["step_of", "loss"]


def test_a_long_program_has_a_box_for_each_group():
    def f(x):
        for _ in range(100):
            x = np.sin(x) * 2.0
        return x.sum()

    picture = lt.viz.graph(lt.trace(f, np.ones(2)))

    assert boxes(picture) == [
        "parameter %0:x",
        "200 binds: 100 sin, 100 mul",
        "1 bind: sum",
        "return",
    ]
    assert "return x.sum()" in texts(picture)


def test_very_many_groups_are_left_out_in_the_middle():
    lines = [f"%{i + 1} = sin(%{i})  # model.py:{i}" for i in range(10_000)]
    f = lt.parse("lambda %0 {\n" + "\n".join(lines) + "\nreturn %10000 }")
    picture = lt.viz.graph(f)

    assert "… 9,940 groups left out …" in texts(picture)
    assert len(boxes(picture)) == 63
    assert len(picture._repr_html_()) < 100_000


def test_a_gradient_and_a_plan_are_shown_as_one_program():
    f = lt.trace(lambda x: np.exp(x).sum(), np.ones(3))

    assert "exp" in str(lt.viz.graph(lt.differentiate(f)))
    assert "exp" in str(lt.viz.graph(lt.compile(f)))


def test_a_function_is_an_error_with_the_remedy():
    with pytest.raises(lt.DTypeError, match=r"found function\n.*letir\.trace"):
        lt.viz.graph(step_of)
    with pytest.raises(lt.LetirError, match="cluster must be"):
        lt.viz.graph(lt.parse(PROGRAM), cluster="file")


def test_names_and_lines_of_a_program_are_not_markup():
    picture = lt.viz.graph(evil_program())

    expect_harmless(picture._repr_html_())
    expect_harmless(picture._repr_svg_())
    ET.fromstring(picture._repr_svg_())


def test_dot_quotes_every_text(tmp_path):
    path = tmp_path / "flow.dot"
    lt.viz.graph(evil_program()).save(path)
    lines = path.read_text().splitlines()

    assert "n0 -> n1;" in [line.strip() for line in lines]
    unquoted = [line.replace('\\"', "").split('"')[::2] for line in lines]
    assert not [parts for parts in unquoted if "alert" in "".join(parts)]


@pytest.mark.parametrize(
    ("end", "start"), [("svg", "<svg"), ("html", "<!DOCTYPE"), ("txt", "data")]
)
def test_a_picture_is_saved_in_the_form_that_the_name_says(tmp_path, end, start):
    path = tmp_path / f"flow.{end}"
    lt.viz.graph(lt.parse(PROGRAM)).save(path)

    assert path.read_text(encoding="utf-8").startswith(start)


def test_another_form_is_an_error(tmp_path):
    with pytest.raises(lt.LetirError, match=r"end the name with \.dot, \.html, \.svg, \.txt"):
        lt.viz.graph(lt.parse(PROGRAM)).save(tmp_path / "flow.png")


SIZES = st.lists(st.tuples(st.floats(1, 99), st.floats(1, 99)), min_size=1, max_size=12)


@given(SIZES, st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_boxes_of_a_layout_do_not_overlap_and_edges_lead_down(sizes, pairs):
    n = len(sizes)
    edges = [(a, b) for a, b in pairs if a < b < n]
    found = layered_layout(sizes, edges)
    frames = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), (w, h) in zip(found.centers, sizes, strict=True)
    ]

    slack = 1e-6
    for i, (left, top, right, bottom) in enumerate(frames):
        assert left >= -slack and right <= found.width + slack
        assert top >= -slack and bottom <= found.height + slack
        for others in frames[:i]:
            assert (
                right <= others[0] + slack
                or others[2] <= left + slack
                or bottom <= others[1] + slack
                or others[3] <= top + slack
            )
    for a, b in edges:
        heights = [frames[a][3], *[y for _, y in found.ways[a, b]], frames[b][1]]
        assert heights == sorted(heights)
