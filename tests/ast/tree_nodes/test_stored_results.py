"""Places of results that a program stores in its arguments, and their text."""

from collections import OrderedDict, deque

import pytest

import letir as lt
from letir.ast.tree_nodes.stored_results import (
    containers_in,
    parse_place,
    part_at,
    places_of,
    store_part,
)
from tests.each_sample import in_one_test

TEXT = """lambda %0: float64[3] in (({'w': *},), {}) out stores(*, {"args[0]['w']": *}) {
  %1: float64[3] = neg(%0)
  return (%1, %0)
}"""


@in_one_test
@pytest.mark.parametrize(
    "text",
    [
        *("args[0].w", "kwargs['state']['t']", "args[1][3:]", "args[0][-1]", "del args[0].w"),
        *("stores[0][1].x", "args[0][(1, 'a')][None]", "args[0]['[0].w']", "args[0][1.5][True]"),
    ],
)
def test_a_place_is_read_as_it_is_written(text):
    assert str(parse_place(text)) == text


@in_one_test
@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "args",
            "args[0",
            "args[0].w = 1",
            "x[0]",
            "args[0].__class__",
            "f(args)",
            "args[f()]",
        ),
        *(
            "args[:]",
            "args[0][1:2]",
            "args[0][1:].w",
            "del args[0][1:]",
            'args[0]["w"]',
            "args[ 0]",
        ),
        *(
            "args[[1]]",
            "args[{}]",
            "args[0]" + ".w" * 5000,
            "args[0].w #",
            "del del args[0]",
            "a;b",
        ),
        *(
            "args['\\d']",
            "args[-" + "(" * 300 + "1" + ")" * 300 + "]",
            "args[0].w\n",
            "args[1e400]",
        ),
    ],
)
def test_other_texts_are_no_places(text):
    with pytest.raises(lt.DTypeError, match="does not name a part of the arguments"):
        parse_place(text)


@in_one_test
@pytest.mark.parametrize(
    ("container", "text", "expected"),
    [
        ([1, 2], "args[0]", [0, 2]),
        ([1, 2], "args[1:]", [1, 0]),
        ([], "args[0:]", [0]),
        (deque([1, 2], maxlen=2), "args[2:]", deque([2, 0], maxlen=2)),
        ({"a": 1}, "args['b']", {"a": 1, "b": 0}),
        ({"a": 1, "b": 2}, "del args['a']", {"b": 2}),
        (OrderedDict(a=1, b=2), "del args['a']", OrderedDict(b=2)),
    ],
)
def test_parts_are_set_deleted_and_added(container, text, expected):
    place = parse_place(text)
    store_part(container, place, [0] if place.action == "extend" else 0)
    assert container == expected


def test_every_container_is_met_with_the_steps_to_it():
    shared = []
    value = ({"a": shared, "t": (shared,)}, 1.0)
    met = [(str(steps), container) for steps, container in containers_in(value)]
    assert [container for _, container in met] == [value[0], shared, shared]
    for steps, container in containers_in(value):
        place = parse_place("args[0]").__class__("args", steps, "set")
        assert part_at({"args": value}, place) is container


def test_stored_results_are_a_part_of_the_text():
    program = lt.parse(TEXT)
    assert places_of(program) == ("args[0]['w']",)
    assert places_of(lt.parse("lambda %0 { return %0 }")) == ()
    assert lt.parse(lt.dumps(program)) == program
    assert program != lt.parse(
        TEXT.replace("'w'\\]", "'v'").replace("args[0]['w']", "args[0]['v']")
    )


@in_one_test
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stores(*, {", "stores(stores(*, {}), {"),
        ("out stores(*, {\"args[0]['w']\": *})", "out (stores(*, {}), *)"),
        ("out stores(*, {\"args[0]['w']\": *})", "out (*, *, same_as('args[0]'))"),
        ("({'w': *},)", "(stores({'w': *}, {}),)"),
    ],
)
def test_stores_is_the_root_of_results_and_same_as_is_in_it(old, new):
    with pytest.raises(lt.ShapeError, match="describes all results of a program"):
        lt.check(lt.parse(TEXT.replace(old, new)))


@in_one_test
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\"args[0]['w']\": *", "'args[0].__class__': *"),
        ("\"args[0]['w']\": *", "1: *"),
        ("stores(*, {", "stores({"),
        ("stores(*", "stores(same_as(0)"),
        ("stores(*", "stores(same_as('x')"),
    ],
)
def test_malformed_texts_are_refused(old, new):
    with pytest.raises(lt.ParseError):
        lt.parse(TEXT.replace(old, new))


@in_one_test
@pytest.mark.parametrize(
    "place",
    ["args[0].w", "args[0]['w']['v']", "args[0]['v'].w", "args[1]['w']", "kwargs['w']", "args[0]"],
)
def test_a_place_that_a_call_does_not_have_is_refused(place):
    program = lt.parse(TEXT.replace("args[0]['w']", place))
    with pytest.raises(lt.DTypeError, match="stores a result at"):
        program({"w": 1.0 * lt.numpy.arange(3)})
