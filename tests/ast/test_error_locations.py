"""Error locations: errors name their line once, and the innermost location wins."""

from letir.ast.error_locations import (
    append_location,
    error_at,
    error_at_bind,
    error_in_let,
    source_line,
)
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Source
from letir.errors import GuardError, LetirError, ShapeError

HERE, THERE = Source("model.py", 3), Source("main.py", 9)


def test_the_users_line_stands_below_the_message():
    error = error_at(ShapeError("sizes differ\n  transpose one of them"), HERE)

    assert "sizes differ\n  at model.py:3\n  transpose one of them" == str(error)


def test_the_innermost_users_line_is_kept():
    error = error_at(error_at(LetirError("no"), HERE), THERE)

    assert "no\n  at model.py:3" == str(error)
    assert str(error) == str(append_location(error, source_line(THERE)))


def test_an_unknown_location_adds_nothing():
    assert "no" == str(error_at(LetirError("no"), None)) and "" == source_line(None)
    assert "no" == str(error_at_bind(LetirError("no"), Bind((), PRIMITIVES["exp"], ())))


def test_an_excerpt_follows_the_line():
    place = Source("model.py", 3, text="if x > 0")

    error = error_at(GuardError("the path does not hold"), place, with_excerpt=True)

    assert "the path does not hold\n  at model.py:3: if x > 0" == str(error)


def test_the_let_line_and_the_users_line_stand_last():
    error = error_in_let(ShapeError("sizes differ"), "%2 = add(%0, %1)", HERE)

    assert "sizes differ\n  in %2 = add(%0, %1)\n  at model.py:3" == str(error)
    assert str(error) == str(error_in_let(error, "%9 = neg(%8)", THERE))


def test_a_let_line_without_a_users_line_gets_the_one_of_the_enclosing_bind():
    error = error_in_let(ShapeError("sizes differ"), "%2 = add(%0, %1)", None)
    bind = Bind((), PRIMITIVES["exp"], (), source=THERE)

    expected = "sizes differ\n  in %2 = add(%0, %1)\n  in exp\n  at main.py:9"
    assert expected == str(error_at_bind(error, bind))
