"""roofline, the counts of operations behind it, and charts drawn by matplotlib."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import letir as lt
from letir.viz import machine_roofs as roofs_module
from letir.viz.machine_roofs import Roofs
from letir.viz.operation_counts import count_operations

ROOFS = Roofs(bytes=1e9, operations=8e9, dtype="float64")


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch):
    """Nothing is measured: a machine of these roofs."""
    monkeypatch.setattr("letir.viz.roofline_chart.machine_roofs", lambda dtype: ROOFS)


def counts(f, *args) -> dict[str, int | None]:
    """The operations of the binds of a recorded function, by name."""
    return {bind.op.name: count_operations(bind) for bind in lt.trace(f, *args).binds}


def test_products_are_counted_from_their_records():
    x, y = np.ones((4, 5)), np.ones((5, 6))

    assert counts(lambda x, y: x @ y, x, y) == {"matmul": 2 * 4 * 5 * 6}
    assert counts(lambda x, y: np.einsum("ij,jk->ik", x, y), x, y) == {"einsum": 2 * 4 * 5 * 6}
    assert counts(np.dot, x, 2.0) == {"dot": 20}


def test_a_convolution_and_its_gradients_count_the_same_operations():
    x, w = np.ones((2, 3, 8, 8)), np.ones((5, 3, 3, 3))

    def loss(x, w):
        return lt.nn.conv2d(x, w, padding=1).sum()

    found = [
        count_operations(bind)
        for bind in lt.grad(lt.trace(loss, x, w), (0, 1)).binds
        if bind.op.name.startswith("conv")
    ]
    assert set(found) == {2 * (2 * 5 * 8 * 8) * (3 * 3 * 3)}


def test_elementwise_operations_count_the_instructions_of_their_forms():
    found = counts(lambda x: np.exp(x + x).sum(), np.ones(10))

    assert (found["add"], found["sum"]) == (10, 10)
    assert 200 < found["exp"] < 600
    assert counts(lambda x: x[::2].T.reshape(5, 1), np.ones((10, 1))).keys() >= {"index"}
    assert not any(counts(lambda x: x[::2].T.reshape(5, 1), np.ones((10, 1))).values())


def test_a_loop_counts_its_steps_and_an_unknown_number_is_none():
    step = lt.trace(
        lambda x: lt.fori_loop(0, 7, lambda i, x: x * 2.0 + 1.0, x),
        np.ones(3),
    )

    assert [count_operations(bind) for bind in step.binds] == [7 * 6]
    assert counts(np.sort, np.ones(3)) == {"sort": None}
    named = lt.trace(np.negative, lt.ShapeDtype(("n",)), abstract=True)
    assert count_operations(named.binds[0]) is None


def test_a_kernel_counts_what_its_operations_count():
    pytest.importorskip("llvmlite")
    program = lt.trace(lambda x: (np.exp(x) * x).sum(), np.ones(100_000))
    kernels = lt.compile(program, kernels="on").plan.binds

    assert sum(map(count_operations, kernels)) == sum(
        count_operations(bind) for bind in program.binds
    )


def test_a_group_is_compared_with_the_roof_above_it():
    x = np.ones((64, 64))
    found = lt.viz.roofline(lambda x: np.sort(x @ x), x)
    lines = {line.split()[-2]: line.split() for line in str(found).splitlines()[2:]}

    # 2 * 64 operations and 3 * 8 bytes an element, below the meeting point at 8 operations per byte
    assert lines["matmul"][4] == "5.3"
    assert "memory" in lines["matmul"]
    assert lines["sort"][4] == lines["sort"][5] == "-"
    assert found.title == (
        "memory 1 GB/s, peak 8 Gop/s (float64), which meet at 8 operations per byte"
    )
    root = ET.fromstring(found._repr_svg_())
    assert len([e for e in root.iter() if e.tag.endswith("circle")]) == 2  # a point, the legend


def test_a_program_without_arithmetic_has_an_empty_plot():
    found = lt.viz.roofline(lambda x: np.roll(x, 1), np.ones(1000))

    assert "roll" in str(found)
    ET.fromstring(found._repr_svg_())


def test_the_roofs_of_this_machine_are_measured(monkeypatch):
    monkeypatch.setattr(roofs_module, "_ELEMENTS", 1 << 12)
    monkeypatch.setattr(roofs_module, "_PART", 1 << 8)
    monkeypatch.setattr(roofs_module, "_ROWS", 8)
    monkeypatch.setattr(roofs_module, "_SECONDS", 1e-4)

    found = roofs_module.machine_roofs.__wrapped__("float32")

    assert found.bytes > 0
    assert found.operations > 0


@pytest.mark.parametrize("name", ["memory", "live_ranges", "profile", "roofline"])
def test_charts_are_drawn_by_matplotlib(name):
    pytest.importorskip("matplotlib")
    x = np.ones((30, 30))
    program = lt.trace(lambda x: np.sort(x @ x) * 2.0, x)
    takes_arguments = name in ("profile", "roofline")
    chart = getattr(lt.viz, name)(program, *([x] if takes_arguments else []))

    axes = chart.to_matplotlib()
    axes.figure.canvas.draw()
    labels = [text.get_text() for text in axes.get_yticklabels() + axes.texts]
    if (legend := axes.get_legend()) is not None:
        labels += [text.get_text() for text in legend.get_texts()]

    assert any("matmul" in one or "test_roofline.py" in one for one in labels)
    assert chart.to_matplotlib(axes) is axes


def test_the_areas_of_matplotlib_are_the_bytes_over_the_steps():
    pytest.importorskip("matplotlib")
    program = lt.parse("""lambda %0: float64[1000] {
      %1: float64[1000] = sin(%0)  # model.py:3
      %2: float64[1000] = sort(%1)  # model.py:4
      %3: float64[] = sum(%2)  # model.py:5
      return %3
    }""")
    chart = lt.viz.memory(lt.compile(program, optimize=False))

    tops = [area.get_paths()[0].get_extents() for area in chart.to_matplotlib().collections]

    assert [(box.x0, box.x1) for box in tops] == [(0, 3), (0, 3)]
    assert max(box.y1 for box in tops) == 16_000


def test_without_matplotlib_an_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(lt.LetirError, match=r"pip install 'letir\[figures\]'"):
        lt.viz.memory(lt.trace(np.sin, np.ones(3))).to_matplotlib()
