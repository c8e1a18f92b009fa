"""diff: two programs side by side."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.ast.builder import LetBuilder
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.passes import common_subexpressions, dead_code
from letir.testing import programs

BEFORE = parse(
    "lambda %0, %1 { %2 = matmul(%0, %1); %3 = tanh(%2); %4 = sum(%3, axis=0); return %4 }"
)
AFTER = parse("""lambda %0, %1 {
  %2 = matmul(%0, %1); %3 = add(%2, 1); %4 = tanh(%3); %5 = sum(%4, axis=1); return %5
}""")


def marks(f, g) -> str:
    """The marks of all rows."""
    return "".join(row.mark for row in lt.diff(f, g).rows)


def test_insertions_and_changes_are_marked_next_to_their_counterparts():
    found = lt.diff(BEFORE, AFTER)

    assert str(found).splitlines() == [
        "lambda %0                lambda %0",
        "lambda %1                lambda %1",
        "%2 = matmul(%0, %1)      %2 = matmul(%0, %1)",
        "                      >  %3 = add(%2, 1)",
        "%4 = tanh(%2)         |  %4 = tanh(%3)",
        "%5 = sum(%4, axis=0)  |  %5 = sum(%4, axis=1)",
        "return %5                return %5",
    ]
    assert found
    assert not found.same


def test_a_notebook_shows_the_same():
    html = lt.diff(BEFORE, AFTER)._repr_html_()
    added = re.sub("<[bi] [^>]*>|</[bi]>", "", html)

    assert '<td>&gt;</td><td class="more">%3 = add(%2, 1)</td>' in added


def test_in_the_opposite_direction_insertions_are_deletions():
    assert marks(BEFORE, AFTER) == "   >|| "
    assert marks(AFTER, BEFORE) == "   <|| "


def test_programs_that_differ_in_names_and_lines_only_are_the_same():
    f, g = (lt.trace(h, np.ones(2)) for h in (lambda x: x * 2, lambda y: y * 2))

    assert not lt.diff(f, g)
    assert lt.diff(f, g).same
    assert str(lt.diff(f, g)) == "the programs are the same, 1 binds"


@pytest.mark.parametrize(
    ("f", "g", "expected"),
    [
        ("lambda %0 { return %0 }", "lambda { return 1.0 }", "<|"),
        ("lambda %0 { return %0 }", "lambda %0, %1 { return %0 }", " > "),
        ("lambda %0 { return %0 }", "lambda %0 { return (%0, %0) }", " |"),
        ("lambda %0: float64[] { return %0 }", "lambda %0: float32[] { return %0 }", "| "),
        (
            "lambda %0 { %1 = mul(%0, 2); return %1 }",
            "lambda %0 { %1 = mul(%0, 2.0); return %1 }",
            " | ",
        ),
        (
            "lambda %0 { %1 = mul(%0, 2); return %1 }",
            "lambda %0 { %1 = add(%0, 2); return %1 }",
            " <>|",
        ),
        (
            "lambda %0 { %1 = mul(%0, %0); return %1 }",
            "lambda %0 { %1 = mul(%0, 2); %2 = mul(%1, %1); return %2 }",
            " >| ",
        ),
    ],
)
def test_each_kind_of_change_has_its_mark(f, g, expected):
    f, g = parse(f), parse(g)

    assert marks(f, g).rstrip() == expected.rstrip()
    assert lt.diff(f, g).same == (set(marks(f, g)) == {" "}) == (f == g)


def test_differences_in_nesting_are_shown():
    f, g = lt.trace(lambda p: p[0] * 1.0, (2.0,)), lt.trace(lambda p: p["k"] * 1.0, {"k": 2.0})

    assert (
        str(lt.diff(f, g)).splitlines()[0]
        == "lambda in (((*,),), {})  |  lambda in (({'k': *},), {})"
    )


def test_bodies_are_shown_line_by_line():
    df, dg = (lt.differentiate(lt.trace(h, np.ones(2))).df for h in (np.exp, np.sin))
    text = str(lt.diff(df, dg))

    assert "grad_of[exp]" in text
    assert "grad_of[sin]" in text


def chain(length: int, extra=()) -> lt.Lambda:
    """Equal binds, with other binds at ``extra``."""
    builder = LetBuilder()
    y = builder.param(ArrayType(float), "x")
    for i in range(length):
        y = np.sin(y) * 2 if i in extra else y * 2
    return builder.build([y])


def test_long_programs_show_only_the_lines_near_a_difference():
    found = lt.diff(chain(3000), chain(3000, {1000, 2000}))

    assert len(str(found).splitlines()) == 19
    assert "... 998 the same ..." in str(found)
    assert sum(row.mark != " " for row in found.rows) == 4


def test_programs_that_differ_everywhere_show_the_beginning():
    found = lt.diff(chain(3000), chain(2000, range(2000)))

    assert 400 < len(str(found).splitlines()) < 410
    assert str(found).endswith("more rows: .rows has them")


def test_a_value_that_is_not_a_program_is_refused():
    with pytest.raises(lt.DTypeError, match=r"found Gradient\n .* take .f and .df"):
        lt.diff(chain(1), lt.differentiate(chain(1)))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), programs())
def test_all_binds_are_listed_in_order(first, second):
    (f, _), (g, _) = first, second
    rows = lt.diff(f, g).rows

    for side, program in (("left", f), ("right", g)):
        there = [item for row in rows if (item := getattr(row, side)) is not None]
        assert [*program.params, *program.binds, program.ret] == there
    assert all(
        row.left.op is row.right.op
        for row in rows
        if all(hasattr(i, "op") for i in (row.left, row.right))
    )


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_exactly_the_differing_binds_are_marked(program):
    f, _ = program

    assert set(marks(f, f)) == {" "}
    live = dead_code(f)
    assert (set(marks(f, live)) == {" "}) == (f == live) == lt.diff(f, live).same
    assert set(marks(f, live)) <= set(" <|")


def test_bodies_that_differ_are_shown_side_by_side():
    f = parse("""lambda %0: int64[], %1: float64[3] {
      %2: float64[3] = switch(%0, %1, branches=(
        lambda %3: float64[3] {
          %4: float64[3] = exp(%3); %5: float64[3] = exp(%3); %6: float64[3] = mul(%4, %5)
          return %6 },
        lambda %7: float64[3] { %8: float64[3] = sin(%7); return %8 }))
      return %2 }""")

    expected = """\
lambda %0: int64[]                                           lambda %0: int64[]
lambda %1: float64[3]                                        lambda %1: float64[3]
%2: float64[3] = switch(%0, %1, branches=({...}, {...}))  |  %2: float64[3] = switch(%0, %1, branches=({...}, {...}))
  branches[0]:                                                 branches[0]:
    lambda %3: float64[3]                                        lambda %3: float64[3]
    %4: float64[3] = exp(%3)                                     %4: float64[3] = exp(%3)
    %5: float64[3] = exp(%3)                              <
    %6: float64[3] = mul(%4, %5)                          |      %6: float64[3] = mul(%4, %4)
    return %6                                                    return %6
return %2                                                    return %2"""  # noqa: E501
    assert str(lt.diff(f, common_subexpressions(f))) == expected


def test_a_bind_that_lost_results_is_next_to_its_original():
    f = parse("""lambda %0, %1 {
      %2, %3 = checkpoint(%0, %1, saved=0, body=lambda %4, %5 {
        %6 = exp(%4); %7 = sin(%5); return (%6, %7) })
      %8 = neg(%3)
      return %8 }""")

    rows = lt.diff(f, dead_code(f)).rows

    assert [row.mark for row in rows] == [" ", " ", "|", " ", " "]
    ((name, inner),) = rows[2].inner
    assert (name, [row.mark for row in inner]) == ("body", ["<", " ", "<", " ", "|"])


def test_bodies_that_are_the_same_are_folded():
    text = """lambda %0 {
      %1 = checkpoint(%0, saved=0, body=lambda %2 { %3 = exp(%2); return %3 }); return %1 }"""

    changed = parse(text.replace("saved=0", "saved=1"))

    assert lt.diff(parse(text), changed).rows[1].inner == ()


def test_loops_in_loops_are_compared_50_deep():
    f, g = (lt.trace(h, np.ones(())) for h in (np.exp, np.sin))
    for _ in range(50):
        f, g = lt.checkpoint(f), lt.checkpoint(g)

    found, depth = lt.diff(f, g), 0
    rows = found.rows
    while rows[1].inner:
        rows, depth = rows[1].inner[0][1], depth + 1

    assert depth == 50 and len(str(found)) > 0
