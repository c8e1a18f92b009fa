"""Write the files in this folder: programs, their texts and results.

They were written by letir as it was at f7d6bba, before its modules were moved and renamed:

    git worktree add ../before f7d6bba
    cd tests/data/saved_files
    export PYTHONPATH=../../../../before
    python -c "exec(compile(open('make.py').read(), 'make.py', 'exec'))"

``test_storage`` loads them. Do not write them again with newer code, they stand for old ones.
"""

from pathlib import Path

import numpy as np
from letir.ast.files import save_programs  # where it was then

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.testing import SAMPLES, applied_program

FOLDER = Path()  # so that no path of a machine is written into the files
X = np.array([0.5, -1.25, 2.0])
TABLE = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])


def control_flow(x, n):
    """Conditionals and all kinds of loops, with bodies inside of bodies."""

    def step(total, row):
        larger = lt.cond(row > 0, lambda r: r * total, lambda r: r - n, row)
        counted = lt.fori_loop(0, n, lambda i, s: s * 0.5 + i * row, larger)
        return total + counted, lt.checkpoint(np.tanh)(counted)

    last, rows = lt.scan(step, np.float64(1.0), x)
    root = lt.while_loop(lambda s: s > 1.5, lambda s: s / 2, abs(last) + 8.0)
    chosen = lt.switch(n, [lambda y: y, lambda y: -y, lambda y: y * y], rows)
    return {"root": root, "chosen": lt.map(lambda y: y.sum() * 2.0, chosen[:, None]), "rows": rows}


def named_sizes(x, y):
    """Of any number of rows."""
    return (x * y[:, None]).sum(axis=0), np.concatenate([x, x]).mean(), x.reshape(-1) * 2


def constants(x):
    """Constants of several dtypes, those in the text among them, and attributes of all kinds."""
    weights = np.arange(3, dtype=np.float32) * np.float32(0.1)
    special = np.array([np.nan, np.inf, -0.0])
    large = np.linspace(0.0, 1.0, 600).reshape(200, 3)
    return (
        x * weights + special,
        large @ x + 2,
        x[np.array([True, False, True])] * 1j,
        np.einsum("ij,j->i", large, x)[10:40:7],
        np.where(x > 0, np.int8(3), np.uint8(5)),
        x[..., None].astype("f4"),
    )


def network(params, x):
    """A function of nested arguments, for a Gradient."""
    h = np.tanh(x @ params["w"] + params["b"])
    return {"y": h * params["scale"], "loss": np.log(np.exp(h).sum(axis=-1)).mean()}


PARAMS = {"w": np.linspace(-1.0, 1.0, 6).reshape(3, 2), "b": np.ones(2), "scale": 0.5}
N = lt.ShapeDtype(("n", 3), float), lt.ShapeDtype(("n",), float)
PROGRAMS = {
    "control_flow": (lt.trace(control_flow, X, 2), (X, 2)),
    "control_flow_gradient": (
        lt.grad(lt.trace(lambda x: control_flow(x, 2)["rows"].sum(), X)),
        (X,),
    ),
    "named_sizes": (lt.trace(named_sizes, *N), (TABLE, TABLE[:, 0])),
    "constants": (lt.trace(constants, X), (X,)),
    "batch": (lt.trace(lt.vmap(lambda x: lt.cond(x > 1, np.sin, np.cos, x)), X), (X,)),
}
GRADIENT = lt.differentiate(lt.trace(network, PARAMS, TABLE))


def leaves_of(value) -> list:
    """The arrays of a nested result, in order."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves_of(value[key])]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [] if value is None else [np.asarray(value)]


def write() -> None:
    """Write all files."""
    for name, (program, args) in PROGRAMS.items():
        lt.save(program, FOLDER / f"{name}.letir")
        (FOLDER / f"{name}.txt").write_text(lt.dumps(program), encoding="utf-8")
        np.savez_compressed(FOLDER / f"{name}.npz", *leaves_of(program(*args)))
    lt.save(GRADIENT, FOLDER / "gradient.letir")
    text = lt.dumps(GRADIENT.f) + "\n" + lt.dumps(GRADIENT.df)
    (FOLDER / "gradient.txt").write_text(text, encoding="utf-8")
    out, residuals = GRADIENT.forward(PARAMS, TABLE)
    cts = [np.ones(np.shape(out[key])) for key in ("loss", "y")]
    found = leaves_of((out, GRADIENT.backward(residuals, *cts)))
    np.savez_compressed(FOLDER / "gradient.npz", *found)
    # one sample of every operation: their names, versions and attributes
    programs = {
        name: applied_program(PRIMITIVES[name], SAMPLES[name][0])[0] for name in sorted(SAMPLES)
    }
    save_programs(FOLDER / "operations.letir", programs)
    text = "".join(f"# {name}\n{lt.dumps(program)}\n" for name, program in programs.items())
    (FOLDER / "operations.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
