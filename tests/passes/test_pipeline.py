"""Pipelines: the order of passes, passes of users, the files that LETIR_DUMP writes."""

from functools import partial

import pytest

import letir as lt
from letir.ast.terms import Lambda
from letir.ast.text.parser import parse
from letir.errors import LetirError
from letir.passes import dead_code
from letir.passes.pipeline import register, registered_passes, run_pipeline, unregister

PROGRAM = "lambda %0 { %1 = exp(%0); %2 = neg(%0); return %2 }"


def nothing(fn: Lambda) -> Lambda:
    """Changes nothing."""
    return fn


@pytest.fixture
def points():
    """Unregisters the passes that a test registers."""
    before = {point: registered_passes(point) for point in ("before", "gradient", "after")}
    yield
    for point, passes in before.items():
        for found in registered_passes(point):
            if found not in passes:
                unregister(point, found.pass_)


def test_passes_run_in_their_order_and_are_observed():
    seen = []
    f = parse(PROGRAM)

    g = run_pipeline((nothing, dead_code), f, observe=lambda *args: seen.append(args))

    assert g == parse("lambda %0 { %1 = neg(%0); return %1 }")
    assert [name for name, *_ in seen] == ["nothing", "dead_code"]
    assert seen[0][1] is seen[0][2] is f and seen[1][2] is g
    assert all(seconds >= 0 for *_, seconds in seen)


def test_an_empty_pipeline_changes_nothing():
    f = parse(PROGRAM)

    assert run_pipeline((), f) is f


def test_the_name_of_a_pass_includes_its_options():
    names = []

    def limited(fn, *, limit):
        return fn

    run_pipeline(
        (partial(limited, limit=3),), parse(PROGRAM), observe=lambda *a: names.append(a[0])
    )

    assert names == ["limited(limit=3)"]


def test_every_pass_writes_its_input_and_output(tmp_path, monkeypatch):
    monkeypatch.setenv("LETIR_DUMP", str(tmp_path / "new" / "folder"))
    f = parse(PROGRAM)
    g = run_pipeline((nothing, dead_code), f)

    files = sorted((tmp_path / "new" / "folder").iterdir())

    assert [file.name.split("-", 2)[2] for file in files] == [
        *("nothing-in.txt", "nothing-out.txt", "dead_code-in.txt", "dead_code-out.txt")
    ]
    assert [parse(file.read_text()) for file in files] == [f, f, f, g]


def test_an_error_names_the_pass_in_which_it_was_raised():
    def broken(fn):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        run_pipeline((broken,), parse(PROGRAM))

    assert caught.value.__notes__ == ["letir: in the pass broken"]


def test_a_pass_that_forgets_to_return_is_named():
    def forgetful(fn):
        dead_code(fn)

    with pytest.raises(LetirError, match="the pass forgetful gave NoneType"):
        run_pipeline((forgetful,), parse(PROGRAM))


def test_a_registered_pass_runs_where_it_was_registered(points):
    register("before", nothing)

    assert [one.__name__ for one in registered_passes("before")] == ["nothing"]
    assert registered_passes("gradient") == registered_passes("after") == ()
    assert run_pipeline(registered_passes("before"), parse(PROGRAM)) == parse(PROGRAM)


def test_a_pass_that_is_defined_again_replaces_the_first(points):
    def defined(answer):
        def mine(fn):
            return answer

        return mine

    f = parse(PROGRAM)
    for answer in (None, f):
        register("after", defined(answer))

    assert run_pipeline(registered_passes("after"), f) is f


@pytest.mark.parametrize(
    "found, message",
    [
        ("lambda %0 { return %0 }", None),
        ("lambda %0, %1 { return %0 }", "other parameters or results"),
        ("lambda %0 { return (%0, %0) }", "other parameters or results"),
        ("lambda { return 1 }", "other parameters or results"),
    ],
)
def test_the_program_that_a_registered_pass_returns_is_checked(points, found, message):
    def given(fn):
        return parse(found)

    register("before", given)

    if message is None:
        assert run_pipeline(registered_passes("before"), parse(PROGRAM)) == parse(found)
    else:
        with pytest.raises(LetirError, match=message) as caught:
            run_pipeline(registered_passes("before"), parse(PROGRAM))
        assert "the pass given" in str(caught.value)


def test_a_registered_pass_that_breaks_a_program_is_refused(points):
    def breaking(fn):
        return fn.with_binds(fn.binds[1:])

    register("before", breaking)

    with pytest.raises(lt.errors.ScopeError):
        run_pipeline(registered_passes("before"), parse("lambda %0 { %1 = exp(%0); return %1 }"))


@pytest.mark.parametrize("point, pass_", [("later", nothing), ("before", "nothing")])
def test_an_invalid_registration_is_refused(point, pass_):
    with pytest.raises(LetirError, match="register"):
        register(point, pass_)


@pytest.mark.parametrize("flag, is_checked", [("1", True), ("0", False), (None, False)])
def test_every_pass_is_followed_by_check_where_the_environment_asks_for_it(
    flag, is_checked, monkeypatch
):
    def breaking(fn):
        return fn.with_binds(fn.binds[1:])

    monkeypatch.delenv("LETIR_CHECK", raising=False)
    if flag is not None:
        monkeypatch.setenv("LETIR_CHECK", flag)
    f = parse("lambda %0 { %1 = exp(%0); return %1 }")

    if is_checked:
        with pytest.raises(lt.ScopeError) as caught:
            run_pipeline((nothing, breaking), f)
        assert ["letir: in the pass breaking"] == caught.value.__notes__
        with pytest.raises(LetirError, match="other parameters or results"):
            run_pipeline((lambda fn: parse("lambda { return 1 }"),), f)
    else:
        assert 0 == len(run_pipeline((nothing, breaking), f))
