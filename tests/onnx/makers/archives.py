"""Models of other packages with these packages' numbers, in one archive for each package."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from attrs import frozen

FOLDER = Path(__file__).parents[2] / "data" / "onnx_models"


@frozen
class Made:
    """A model as bytes with inputs, results, and gradients.

    The gradients are those of the sum of all floating results times cos(0.3), cos(1.3) ..., with
    respect to the floating inputs, and by name with respect to the weights.
    """

    name: str
    model: bytes
    inputs: list[np.ndarray]
    results: list[np.ndarray]
    gradients: list[np.ndarray]
    weight_gradients: dict[str, np.ndarray]


def write(package: str, models: Iterable[Made]) -> None:
    """Write an archive."""
    found: dict[str, np.ndarray] = {}
    for made in models:
        found[f"{made.name}/model"] = np.frombuffer(made.model, np.uint8)
        for part in ("inputs", "results", "gradients"):
            found |= {f"{made.name}/{part}/{i}": x for i, x in enumerate(getattr(made, part))}
        found |= {f"{made.name}/weight/{n}": x for n, x in made.weight_gradients.items()}
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(FOLDER / f"{package}.npz", **found)


def read(package: str) -> list[Made]:
    """The models in an archive."""
    with np.load(FOLDER / f"{package}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    names = dict.fromkeys(key.partition("/")[0] for key in arrays)
    return [_made_of(name, arrays) for name in names]


def _made_of(name: str, arrays: dict[str, np.ndarray]) -> Made:
    own = {
        key.removeprefix(f"{name}/"): x for key, x in arrays.items() if key.startswith(f"{name}/")
    }
    rows = [
        [x for key, x in own.items() if key.startswith(f"{part}/")]
        for part in ("inputs", "results", "gradients")
    ]
    weights = {k.removeprefix("weight/"): x for k, x in own.items() if k.startswith("weight/")}
    return Made(name, own["model"].tobytes(), *rows, weights)
