"""Structured arrays that the traced function makes."""

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError

RIPPLE = [("position", float, 2), ("age", int), ("size", float)]
NESTED = [("p", [("x", float), ("y", float)]), ("c", float)]


def fields_and_elements(s):
    z = np.zeros(3, RIPPLE)
    z["position"] = s
    z["age"] += 1
    z["size"][1] = s * 2
    z[0]["size"] = s + 1
    z[2] = (s, 3, 4.0)
    z[1]["position"][0] = 9.0
    return z["position"], z["age"], z["size"], z[1][2], len(z), z.shape


def parts_of_parts(s):
    z = np.zeros(4, RIPPLE)
    z[1:3]["size"] = s
    tail = z[1:]
    tail[0]["size"] += 1
    tail["age"] = 5
    tail[1:][0]["position"] = 8
    z[:] = z[::-1]
    return z["size"], z["age"], z["position"]


def nested_fields(s):
    z = np.zeros((2, 2), NESTED)
    z["p"]["x"] = s
    z["p"]["y"][0] += z["p"]["x"][1]
    z[..., 0]["c"] = s
    return z["p"]["x"], z["p"]["y"], z["c"]


def selections(s):
    z = np.zeros(3, RIPPLE)
    z[np.array([0, 2])] = (s, 2, s)
    taken = z[np.array([True, False, True])]
    taken["age"] = 9  # a copy
    z[1] = 0
    return z["size"], z["age"], z["position"], taken["age"], taken.shape


def elements_in_a_loop(s):
    z = np.ones(3, RIPPLE)
    for i, (position, _, _) in enumerate(z):
        position[:] = s * i
    return z["position"], sum(ripple["size"] for ripple in z) + s


def known_contents(s):
    z = np.zeros(3, RIPPLE)
    z["size"] = [3, 1, 2]
    found = np.sort(z, order="size")["size"] * s
    z.sort(order="size")
    return found, z["size"] * s, (z == z).sum(), isinstance(z, np.ndarray)


def rows_of_tuples(s):
    z = np.array([(1, s), (2, -s), (3, 0.5)], dtype=[("id", "i4"), ("score", "f4")])
    taken = np.sort(z, order="score")[::-1]
    return taken["id"], taken["score"], z[0]["score"], np.array([row["score"] for row in z])


def sorted_by_fields(s):
    z = np.zeros(4, [("a", int), ("b", float)])
    z["a"] = [1, 0, 1, 0]
    z["b"] = [s, -s, -s, s]
    order = np.argsort(z, order=["a", "b"])
    z.sort(order="b")
    return z["a"], z["b"], order, np.shape(z), z[z["b"] > 0]["a"]


def whole_arrays(s):
    """NumPy's functions and methods of arrays without traced fields."""
    z = np.zeros(3, [("a", float), ("b", int)])
    z["a"] = [3, 1, 2]
    part = z[["a"]]
    twice, known = np.concatenate([z, z]), np.unique(ar=z)
    rows, has = z.tolist(), (hasattr(z, "nothing"), bool(z[:1]), repr(z)[:5] == "")
    z.fill(7)
    return part["a"] * s, twice["a"] * s, known["a"] * s, len(rows), has, (z != z).any(), z["b"]


@pytest.mark.parametrize(
    "f",
    [
        whole_arrays,
        *(fields_and_elements, parts_of_parts, nested_fields, selections),
        *(elements_in_a_loop, known_contents, rows_of_tuples, sorted_by_fields),
    ],
)
def test_a_structured_array_agrees_with_numpys(f):
    fn = lt.trace(f, 2.0)

    for expected, actual in zip(f(3.0), fn(3.0), strict=True):
        np.testing.assert_array_equal(expected, actual)


def test_traced_fields_are_not_one_array():
    def f(s):
        z = np.zeros(3, RIPPLE)
        z["size"] = s
        return np.sort(z, order="size")["size"]

    with pytest.raises(TraceError, match="read and write the fields"):
        lt.trace(f, 2.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda z: np.concatenate([z, z])["size"],
        lambda z: z.tolist(),
        lambda z: (z == z).sum(),
        lambda z: z.view(float),
    ],
)
def test_a_use_of_traced_fields_as_one_array_is_named(use):
    def f(s):
        z = np.zeros(3, RIPPLE)
        z["size"] = s
        return use(z)

    with pytest.raises(TraceError, match="a structured array with traced fields as one array"):
        lt.trace(f, 2.0)


def test_an_array_of_records_is_made_of_a_list_of_tuples():
    kinds = [("a", int), ("b", float)]

    with pytest.raises(ValueError, match="it has 2 fields"):
        lt.trace(lambda s: np.array([(1, s, s)], dtype=kinds)["b"], 2.0)
    with pytest.raises(TraceError, match="anything but a list of tuples"):
        lt.trace(lambda s: np.array((1, s), dtype=kinds)["b"], 2.0)


def test_a_write_through_a_copy_is_an_error():
    def f(s):
        z = np.zeros(3, RIPPLE)
        np.asarray(z)["size"][0] = 5.0
        return z["size"] * s

    with pytest.raises(ValueError, match="read-only"):
        lt.trace(f, 2.0)
