"""Views in a browser: what lights up, folds, is found, and can be reached by the keyboard."""

import functools

import numpy as np

import letir as lt
from letir.viz.view_page import html_page
from tests.viz.browser import found_in, needs_chromium
from tests.viz.views import evil_program

pytestmark = needs_chromium


def program() -> lt.Lambda:
    """%1 is used twice, %0 once; the loop has a body."""

    def f(x):
        y = np.sin(x)
        return lt.fori_loop(0, 3, lambda i, c: np.cos(c) * y.sum(), y)

    return lt.trace(f, np.ones(2))


@functools.cache
def page() -> str:
    """The page of this program."""
    return html_page(program()._repr_html_(), "a program")


def test_hovering_a_name_lights_up_its_definition_and_uses():
    script = """
        all('i[data-v="1"]')[0].dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
        var lit = [texts(".def"), texts(".use"), texts("output")];
        document.querySelector(".letir").dispatchEvent(new MouseEvent("mouseleave"));
        return [lit, texts(".def, .use")];
    """
    (defined, used, said), after = found_in(page(), script)

    assert defined == ["%1:y"]
    assert used == ["%1:y"] * len(used) and len(used) > 1
    assert said == [f"%1:y: used {len(used)} times"]
    assert after == []


def test_names_are_reached_by_the_keyboard_alone():
    script = """
        var stops = all("[data-v]").filter(function (e) { return e.tabIndex === 0; });
        stops[0].focus();
        var way = [document.activeElement.textContent];
        ["ArrowDown", "ArrowRight", "Enter", "ArrowUp"].forEach(function (key) {
          press(key);
          way.push(document.activeElement.tagName + document.activeElement.textContent);
        });
        return [stops.length, way];
    """
    stops, way = found_in(page(), script)

    assert stops == 1
    assert way == ["%0:x", "B%1:y", "I%0:x", "B%0:x", "B%0:x"]


def test_search_shows_the_rows_that_match_and_unfolds_bodies():
    script = """
        var box = document.querySelector("input");
        function rows() {
          return all("tbody tr").filter(function (e) { return e.getClientRects().length; }).length;
        }
        function search(text) {
          box.value = text;
          box.dispatchEvent(new Event("input"));
          return [rows(), all("details").map(function (e) { return e.open; }), texts("output")[0]];
        }
        return [rows(), search("COS"), search("no such text"), search("")];
    """
    at_first, cosine, nothing, all_again = found_in(page(), script)

    assert cosine == [3, [True], "2 lines"]  # the loop, and two binds of its body
    assert nothing == [0, [False], "0 lines"]
    assert all_again == [at_first, [False], ""]


def test_markup_in_names_does_not_run():
    page = html_page(evil_program()._repr_html_(), "evil")

    assert found_in(page, 'return all("img, .letir script").length') == 0  # and no alert


def contrast(scheme: str) -> float:
    """The least contrast of a text of a view and its ground, by the formula of WCAG 2."""
    script = """
        function parts(color) {
          return color.match(/[\\d.]+/g).map(Number);
        }
        function ground(e) {
          for (; e; e = e.parentElement) {
            var c = parts(getComputedStyle(e).backgroundColor);
            if (c.length < 4 || c[3] > 0) return c;
          }
          return [255, 255, 255];
        }
        function light(c) {
          var l = c.slice(0, 3).map(function (v) {
            v /= 255;
            return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
          });
          return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
        }
        all("details").forEach(function (e) { e.open = true; });
        all("i[data-v]")[1].dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
        var texts = all(".letir *").filter(function (e) {
          return e.textContent.trim() && e.children.length === 0 && e.tagName !== "STYLE";
        });
        return [matchMedia("(prefers-color-scheme: dark)").matches].concat(texts.map(function (e) {
          var a = light(parts(getComputedStyle(e).color)), b = light(ground(e));
          return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }));
    """
    gradient = lt.differentiate(program())
    page = html_page(gradient._repr_html_(), "a gradient")
    is_dark, *found = found_in(page, script, scheme=scheme)
    assert is_dark == (scheme == "dark")
    assert len(found) > 20
    return min(found)


def test_texts_have_enough_contrast_in_light_and_dark():
    assert contrast("light") >= 4.5
    assert contrast("dark") >= 4.5


def test_types_stay_on_one_line_in_a_narrow_page():
    f = lt.trace(lambda x, y: np.tanh(x @ y).sum(axis=1, keepdims=True), *np.ones((2, 4, 4)))
    page = html_page(lt.differentiate(f)._repr_html_(), "a gradient")
    script = """
        return all("td.t").filter(function (e) { return e.textContent.includes("["); })
          .map(function (e) {
            var range = document.createRange();
            range.selectNodeContents(e.querySelector("span:not(.kept)") || e.firstChild);
            return range.getClientRects().length;
          });
    """
    lines = found_in(page, script, size=(500, 600))

    assert lines == [1] * len(lines) and len(lines) > 10


def test_every_box_that_scrolls_has_a_name_and_is_in_the_order_of_tab():
    script = """return all(".scroll").map(function (e) {
      return [e.tabIndex, e.getAttribute("role"), e.getAttribute("aria-label")];
    })"""

    assert found_in(page(), script) == [[0, "group", "program"]]


def test_pointing_at_a_box_of_a_graph_lights_up_the_edges_to_its_users():
    picture = lt.viz.graph(program())
    script = """
        var box = all("g[data-v]")[1];
        box.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
        var lit = all("path.use").length, width = getComputedStyle(all("path.use")[0]).strokeWidth;
        box.focus();
        press("ArrowRight");
        var next = document.activeElement.querySelector("title").textContent;
        return [box.tabIndex, lit, width, next, all("g.def").length];
    """
    tab, lit, width, after, defined = found_in(html_page(picture._repr_html_(), "a graph"), script)

    assert lit == 1
    assert (tab, width, defined) == (-1, "2.5px", 1)
    assert after.startswith("%")


def test_texts_of_pictures_have_a_size_and_a_color():
    """Of an SVG file alone, too, which has its own style."""
    picture = lt.viz.memory(lt.compile(program(), optimize=False))
    page = f"<html><head></head><body>{picture._repr_svg_()}</body></html>"
    script = """
        var style = getComputedStyle(all("text")[0]);
        return [style.fontSize, style.fill !== "rgb(0, 0, 0)", all("rect.area").length > 0];
    """

    assert found_in(page, script) == ["11.5px", True, True]
