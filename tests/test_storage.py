"""``save`` and ``load`` of programs and Gradients."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from letir.ast.pytrees import flatten
from letir.ast.text.files import FORMAT, load_programs
from letir.testing import assert_close

X = np.array([1.0, 2.0])


def test_a_gradient_survives_a_file(tmp_path):
    g = lt.differentiate(lt.trace(lambda p: {"y": np.tanh(p["w"]) * p["w"]}, {"w": X}))

    lt.save(g, tmp_path / "g.letir")
    again = lt.load(tmp_path / "g.letir")

    assert (g.f, g.df, str(g.out_tree)) == (again.f, again.df, str(again.out_tree))
    out, residuals = again.forward({"w": X})
    np.testing.assert_array_equal(np.tanh(X) * X, out["y"])
    np.testing.assert_allclose(
        np.tanh(X) + X * (1 - np.tanh(X) ** 2), again.backward(residuals, np.ones(2))[0], rtol=1e-14
    )


def test_a_program_survives_a_file(tmp_path):
    f = lt.trace(lambda x: x * np.arange(2.0), X)

    lt.save(f, tmp_path / "f.letir")

    assert f == lt.load(tmp_path / "f.letir")


def test_other_objects_are_refused(tmp_path):
    with pytest.raises(lt.DTypeError, match="expected a Lambda or a Gradient, found int"):
        lt.save(3, tmp_path / "x.letir")


# ---- files saved by an earlier version ----

OLD = Path(__file__).parent / "data" / "saved_files"  # see make.py there
ROW = np.array([0.5, -1.25, 2.0])
TABLE = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
ARGUMENTS = {
    "control_flow": (ROW, 2),
    "control_flow_gradient": (ROW,),
    "named_sizes": (TABLE, TABLE[:, 0]),
    "constants": (ROW,),
    "batch": (ROW,),
}


def text_of(name: str) -> str:
    """The text stored next to a file."""
    return (OLD / f"{name}.txt").read_text(encoding="utf-8")


def results_of(name: str) -> list:
    """The results stored next to a file, as a flat list."""
    with np.load(OLD / f"{name}.npz") as found:
        return [found[f"arr_{i}"] for i in range(len(found.files))]


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_program_saved_before_the_modules_moved_is_the_same(name):
    program = lt.load(OLD / f"{name}.letir")

    assert text_of(name) == lt.dumps(program)
    assert program == lt.check(lt.parse(text_of(name)))
    assert_close(results_of(name), flatten(program(*ARGUMENTS[name]))[0])


def test_a_gradient_saved_before_the_modules_moved_is_the_same():
    gradient = lt.load(OLD / "gradient.letir")
    params = {"w": np.linspace(-1.0, 1.0, 6).reshape(3, 2), "b": np.ones(2), "scale": 0.5}
    out, residuals = gradient.forward(params, TABLE)
    cts = [np.ones(np.shape(out[key])) for key in ("loss", "y")]
    by_params = gradient.backward(residuals, *cts)

    assert text_of("gradient") == f"{lt.dumps(gradient.f)}\n{lt.dumps(gradient.df)}"
    assert_close(results_of("gradient"), flatten((out, by_params))[0])


def test_every_operation_saved_before_the_modules_moved_is_the_same():
    programs, _ = load_programs(OLD / "operations.letir")
    texts = [f"# {name}\n{lt.dumps(program)}\n" for name, program in programs.items()]

    assert 470 < len(programs)
    assert text_of("operations") == "".join(texts)


def test_there_are_files_of_every_format():
    """A new format adds a folder of files that it wrote; the old ones stay as they are."""
    formats = set()
    for path in OLD.parent.rglob("*.letir"):
        with zipfile.ZipFile(path) as archive:
            formats.add(json.loads(archive.read("letir.json"))["format"])

    assert formats == set(range(1, FORMAT + 1))
