"""memory_timeline: the bytes of each step of a plan, and the life of each array."""

import numpy as np
from hypothesis import given

import letir as lt
from letir.executor.measurements.memory_timeline import memory_timeline
from letir.testing import programs


def timeline(f, **options):
    plan = lt.compile(f, kernels="off", **options).plan
    return memory_timeline(plan, sizes_of(plan))


def sizes_of(plan) -> dict[str, int]:
    """A number for each symbolic size of a plan, such as the number of steps of a loop."""
    types = [binder.type for bind in plan.binds for binder in bind.binders]
    sizes = [n for aval in types for n in getattr(aval, "shape", ()) if type(n) is not int]
    return {name: 3 for n in sizes for name in n.names}


@given(programs())
def test_the_peak_equals_the_peak_that_memory_predicts(program):
    fn, _ = program
    for plan in (lt.compile(fn, optimize=False).plan, lt.compile(fn, kernels="off").plan):
        sizes = sizes_of(plan)
        found, memory = memory_timeline(plan, sizes), plan.memory(**sizes)

        assert memory.peak == found.peak
        assert memory.is_exact == found.is_exact


@given(programs())
def test_the_bytes_of_a_step_are_those_of_its_arrays_and_temporary_ones(program):
    found = timeline(program[0])

    for n, live in enumerate(found.live):
        held = sum(one.bytes for one in found.arrays if one.first <= n <= one.last)
        assert held <= live


def test_each_array_exists_from_its_bind_to_its_last_use():
    f = lt.trace(lambda x: (np.sort(np.sin(x)) + x).sum(), np.ones(1000))
    found = timeline(f, optimize=False)

    assert [bind.op.name for bind in found.steps] == ["sin", "sort", "add", "sum"]
    assert [(one.text, one.bytes, one.first, one.last) for one in found.arrays] == [
        ("sin: float64[1000]", 8000, 0, 1),
        ("sort: float64[1000]", 8000, 1, 2),
        ("add: float64[1000]", 8000, 2, 3),
    ]
    assert found.live == (8000, 16000, 16000, 8000)
    assert (found.peak, found.peak_at) == (16000, 1)
    assert [one.text for one in found.at_peak()] == ["sin: float64[1000]", "sort: float64[1000]"]


def test_results_exist_to_the_end():
    found = timeline(lt.trace(lambda x: (np.sort(x), np.sin(x)), np.ones(4)), optimize=False)

    assert [one.last for one in found.arrays] == [2, 2]


def test_a_plan_without_steps_has_no_peak():
    found = timeline(lt.trace(lambda x: x, np.ones(4)))

    assert (found.peak, found.peak_at, found.at_peak()) == (0, -1, [])
