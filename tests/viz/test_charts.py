"""memory, live_ranges, profile and diff: what they show, as pictures and as text."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import letir as lt
from tests.viz.views import evil_function, expect_harmless, shown_rows

SVG = "{http://www.w3.org/2000/svg}"
PROGRAM = """\
lambda %0: float64[1000] {
  %1: float64[1000] = sin(%0)  # model.py:3
  %2: float64[1000] = sort(%1)  # model.py:4
  %3: float64[1000] = add(%2, %0)  # model.py:5
  %4: float64[] = sum(%3)  # model.py:6
  return %4
}"""


def plan() -> object:
    return lt.compile(lt.parse(PROGRAM), optimize=False)


def areas(picture, kind: str) -> list[tuple[float, float, float]]:
    """(x, width, height) of the rectangles of a class."""
    found = ET.fromstring(picture._repr_svg_()).iter(f"{SVG}rect")
    shown = [rect for rect in found if kind in rect.get("class").split()]
    return [tuple(float(rect.get(name)) for name in ("x", "width", "height")) for rect in shown]


def texts(picture) -> set[str]:
    return {e.text for e in ET.fromstring(picture._repr_svg_()).iter(f"{SVG}text")}


def test_memory_over_the_steps_with_the_peak_and_its_origin():
    assert str(lt.viz.memory(plan())).splitlines() == [
        "peak: 16 kB at sort, step 2 of 4",
        "     |▄██▄|",
        "     8 kB  sin: float64[1000]  model.py:3",
        "     8 kB  sort: float64[1000]  model.py:4",
    ]


def test_the_areas_of_the_picture_are_the_bytes_of_each_line():
    picture = lt.viz.memory(plan())
    step = 860 / 4

    # the array of each line exists for two steps, and takes half of the height of the peak
    for i in range(3):
        found = [rect for rect in areas(picture, f"c{i}") if rect in areas(picture, "area")]
        assert sum(width * height for _, width, height in found) == 2 * step * 120.0
    assert min(x for x, _, _ in areas(picture, "area")) == 70.0
    assert {"model.py:3", "16 kB", "peak: 16 kB at sort, step 2 of 4"} <= texts(picture)
    rows = shown_rows(picture._repr_html_())
    assert ["8,000", "1", "sort: float64[1000]", "model.py:4", ""] in rows


def test_equal_arrays_of_a_line_are_one_row_of_the_peak():
    def f(x):
        found = [np.sort(x) for _ in range(3)]
        return found[0] + found[1] + found[2]

    program = lt.trace(f, np.ones(1000))

    assert "24 kB  3 x sort: float64[1000]" in str(
        lt.viz.memory(lt.compile(program, optimize=False))
    )


def test_a_long_run_is_drawn_with_its_highest_steps():
    def f(x):
        for i in range(2000):
            x = np.sort(np.repeat(x, 2))[:100] if i == 777 else np.sort(x)
        return x

    picture = lt.viz.memory(lt.compile(lt.trace(f, np.ones(100)), optimize=False))

    assert picture.title.startswith("peak: about 3.2 kB at sort, step 779")
    assert len(picture._repr_svg_()) < 60_000
    assert max(height for _, _, height in areas(picture, "area")) > 100


def test_live_ranges_are_bars_from_the_first_to_the_last_step():
    picture = lt.viz.live_ranges(plan())

    assert str(picture).splitlines() == [
        "3 arrays in 4 steps",
        "8 kB  ██..  sin: float64[1000]  model.py:3",
        "8 kB  .██.  sort: float64[1000]  model.py:4",
        "8 kB  ..██  add: float64[1000]  model.py:5",
    ]
    bars = [rect for i in range(3) for rect in areas(picture, f"c{i}") if rect[1] > 10]
    assert sorted(bars) == [(70 + 130 * i, 260.0, 11.0) for i in range(3)]


def test_sizes_of_a_plan_for_all_sizes_are_given_by_name():
    f = lt.trace(lambda x: np.sort(np.sin(x)), lt.ShapeDtype(("n",)), abstract=True)
    compiled = lt.compile(f, kernels="off")

    assert lt.viz.memory(compiled, n=1000).title.startswith("peak: 16 kB")
    with pytest.raises(lt.ShapeError, match="no number was given for n"):
        lt.viz.memory(compiled)


def test_a_gradient_and_a_jitted_function_have_memory():
    f = lt.trace(lambda x: np.exp(np.sort(x)).sum(), np.ones(1000))
    step = lt.jit(lambda x: np.sort(x) + 1.0)

    assert lt.viz.memory(lt.differentiate(f)).title.startswith("peak: ")
    with pytest.raises(lt.DTypeError, match="call it first"):
        lt.viz.memory(step)
    step(np.ones(1000))
    assert "sort: float64[1000]" in str(lt.viz.memory(step))
    with pytest.raises(lt.DTypeError, match="found int"):
        lt.viz.memory(3)


def test_an_empty_program_has_pictures():
    f = lt.parse("lambda %0: float64[3] { return %0 }")

    assert lt.viz.memory(f).title == "peak: 0 B, there are no steps"
    assert str(lt.viz.live_ranges(f)) == "0 arrays in 0 steps"
    for picture in (lt.viz.memory(f), lt.viz.live_ranges(f), lt.viz.graph(f)):
        ET.fromstring(picture._repr_svg_())


def test_a_profile_adds_the_times_of_each_line():
    x = np.ones(1000)
    picture = lt.viz.profile(plan(), x)
    rows = {row[4]: row for row in shown_rows(picture._repr_html_()) if len(row) == 6}

    assert {"model.py:3", "model.py:4", "model.py:5", "model.py:6"} <= set(rows)
    assert rows["model.py:5"][2:4] == ["24 kB", "add"]
    assert picture.title.endswith("s in 4 lines")
    assert len(areas(picture, "c0")) == 4
    assert len(str(picture).splitlines()) == 5


def test_a_profile_of_a_function_records_it():
    found = str(lt.viz.profile(lambda x: np.sort(x) * 2.0, np.ones(10)))

    assert "np.sort(x) * 2.0" in found
    assert "1 line" in str(lt.viz.profile(lt.jit(lambda x: np.sort(x) * 2.0), np.ones(10)))


def test_diff_shows_the_steps_that_change_the_program():
    f = lt.parse("lambda %0 { %1 = exp(%0); %2 = exp(%0); %3 = mul(%1, %2); return %3 }")
    view = lt.viz.diff(f, lt.passes.dead_code, lt.passes.common_subexpressions)

    assert view.title == "2 steps, 1 changes the program: 3 binds, then 2"
    assert str(view).splitlines()[1] == "common_subexpressions: 3 -> 2 binds, -1 exp"
    assert ["%2 = exp(%0)", "<", ""] in shown_rows(view._repr_html_())


def test_diff_takes_programs_and_without_steps_the_passes_of_jit():
    f = lt.trace(lambda x: np.exp(x) * np.exp(x), np.ones(3))

    empty = f.replace(binds=(), ret=lt.Ret(f.params))

    assert "program 1: 3 -> 0 binds, -2 exp, -1 mul" in str(lt.viz.diff(f, empty))
    assert "common_subexpressions: 3 -> 2 binds, -1 exp" in str(lt.viz.diff(f))
    assert lt.viz.diff(f, lt.passes.dead_code).title.startswith("1 step, 0 change the program")
    with pytest.raises(lt.DTypeError, match="a pass or a program, found int"):
        lt.viz.diff(f, 3)


def test_names_of_a_function_are_not_markup():
    g, x = evil_function(), np.ones(3)
    compiled = lt.compile(lt.trace(g, x))
    for shown in (
        lt.viz.memory(compiled),
        lt.viz.live_ranges(compiled),
        lt.viz.profile(compiled, x),
        lt.viz.diff(lt.trace(g, x)),
    ):
        expect_harmless(shown._repr_html_())
