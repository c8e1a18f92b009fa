"""Functions in sources take and return the pytrees of the original function."""

import dataclasses
from collections import OrderedDict, deque, namedtuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.pytrees import flatten
from letir.testing import assert_same

Layer = namedtuple("Layer", "w b")


@dataclasses.dataclass
class Model:
    """A pytree node whose children are attributes."""

    hidden: object
    out: object


def loaded(source: str):
    """The function of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return namespace["f"]


def the_same(f, *args, **kwargs) -> str:
    """The source of ``f``. Raises AssertionError unless it computes what the program computes."""
    program = lt.trace(f, *args, **kwargs)
    source = lt.to_source(program)
    assert_same(program(*args, **kwargs), loaded(source)(*args, **kwargs))
    return source


def test_arguments_and_results_nest_as_in_the_original_function():
    def f(layers, options, *, scale):
        (x, y) = options["data"]
        h = x @ layers[0].w + layers[0].b
        return {"out": h * scale, "all": [y, (h.sum(),)], "none": None}

    layers = [Layer(np.ones((3, 2)), np.zeros(2))]
    source = the_same(f, layers, {"data": (np.ones((4, 3)), 2.0)}, scale=0.5)

    assert "def f(layers, options, *, scale):" in source
    assert "((w, b),) = layers" in source
    assert 'return {"out": ' in source and ', "all": [' in source


def test_attrs_classes_and_dataclasses_are_flattened():
    source = the_same(lambda m: m.hidden["w"] * m.out, Model({"w": np.ones(2)}, 3.0))

    assert 'w = m_hidden["w"]' in source


def test_other_containers_are_flattened_and_rebuilt():
    def f(queue, table):
        return OrderedDict(b=queue[0], a=table["k"]), deque([queue[1]])

    the_same(f, deque([np.ones(2), 2.0]), OrderedDict(k=np.ones(1)))


def test_a_named_tuple_of_results_is_defined_in_the_source():
    program = lt.trace(lambda x: Layer(x, x * 2), np.ones(2))

    found = loaded(lt.to_source(program))(np.ones(2))

    assert type(found).__name__ == "Layer"
    assert_same(tuple(program(np.ones(2))), tuple(found))


def test_texts_among_the_results_are_written():
    def f(x):
        return {"kind": "it's\n", "values": [x, "b"]}, "a"

    program = lt.trace(f, 1.5)

    assert loaded(lt.to_source(program))(2.5) == f(2.5)


def test_results_in_a_class_of_a_user_are_flat_with_a_comment():
    source = lt.to_source(lt.trace(lambda x: Model(x, x * 2), np.ones(2)))

    assert "# the results are the leaves of Model(hidden=*, out=*)" in source
    assert_same((np.ones(2), np.full(2, 2.0)), loaded(source)(np.ones(2)))


def test_nestings_that_cannot_be_written_are_flat_with_a_comment():
    program = lt.trace(lambda d: d[np.nan] * 2, {np.nan: np.ones(2)})

    source = lt.to_source(program)

    assert "# the arguments are the leaves of (({nan: *},), {})" in source
    assert_same(np.full(2, 2.0), loaded(source)(np.ones(2)))


def test_empty_and_missing_arguments_keep_their_positions():
    the_same(lambda a, b, x, c: x * 2, None, (), np.ones(2), {"k": None})
    the_same(lambda a, x: x * a["s"][1], {"s": (None, 2.0), "e": []}, np.ones(2))


def test_a_static_argument_must_be_what_it_was():
    def f(x, mode, scale=1.0):
        return x.sum() if mode == "sum" else x.mean()

    source = the_same(f, np.ones(2), "sum")
    with pytest.raises(ValueError, match="'sum', found 'mean'"):
        loaded(source)(np.ones(2), "mean")
    the_same(f, np.ones(2), scale=2.0, mode="mean")


@pytest.mark.parametrize("value", ["%d", "'\"", "a\nb", "", True, False])
def test_static_arguments_are_compared_by_type_and_value(value):
    source = the_same(lambda x, s: x * 2, np.ones(2), value)

    with pytest.raises(ValueError, match="found 'other'"):
        loaded(source)(np.ones(2), "other")


def test_a_static_argument_that_cannot_be_written_is_a_comment():
    f = lt.trace(lambda x, s: x * 2, np.ones(2), np.sin, static_argnums=1)

    assert "# recorded for arg1 = ufunc <ufunc 'sin'>" in lt.to_source(f)
    assert_same(np.full(2, 2.0), loaded(lt.to_source(f))(np.ones(2), np.sin))


def test_keyword_arguments_keep_their_names_when_variables_share_them():
    the_same(lambda t, *, w: t["w"] * w, {"w": np.ones(2)}, w=3.0)
    the_same(lambda x, *, max: x * max, np.ones(2), max=3.0)
    with pytest.raises(lt.ExportError, match="'float' has a name that the source needs"):
        lt.to_source(lt.trace(lambda x, *, float: x * float, np.ones(2), float=2.0))


NODES = st.recursive(
    st.sampled_from([np.ones(2), 2.5, 3, None, "mode", True, (), [], {}]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=2).map(deque)
        | st.dictionaries(st.sampled_from(["a", "b", "x_1", "if", "0", "a b"]), inner, max_size=3)
        | st.dictionaries(st.sampled_from([0, 1, -3]), inner, max_size=2)
        | st.tuples(inner, inner).map(lambda pair: Layer(*pair))
    ),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(NODES, max_size=3), st.dictionaries(st.sampled_from(["k", "x", "if_"]), NODES))
def test_generated_nestings_are_flattened_and_rebuilt(args, kwargs):
    def doubled(*args, **kwargs):
        leaves, spec = flatten((args, kwargs))
        return spec.unflatten([x if type(x) in (str, bool) else x * 2 for x in leaves])

    def f(*args, **kwargs):
        leaves, spec = flatten(doubled(*args, **kwargs))
        return spec.unflatten([0 if type(x) in (str, bool) else x for x in leaves])

    program = lt.trace(f, *args, **kwargs)
    expected, found = program(*args, **kwargs), loaded(lt.to_source(program))(*args, **kwargs)

    assert str(flatten(expected)[1]) == str(flatten(found)[1])
    assert_same(flatten(expected)[0], flatten(found)[0])
