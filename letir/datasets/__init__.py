"""Small data sets that ship with letir; README.md in this folder gives their sources."""

import bz2
from importlib import resources

import numpy as np
from numpy.typing import NDArray

__all__ = ["load_alice", "load_digits"]


def load_digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return handwritten digits as a pair of images and labels.

    Images: float64 of shape (1797, 64), each row an 8×8 image row by row, 0 (blank) to 1 (full).
    Labels: int64 of shape (1797,), 0 to 9.

    Source: Alpaydin and Kaynak, UCI Machine Learning Repository, 1998,
    https://doi.org/10.24432/C50P49 (CC BY 4.0).

    >>> images, labels = load_digits()
    >>> images.shape, labels.shape
    ((1797, 64), (1797,))
    >>> float(images.min()), float(images.max())
    (0.0, 1.0)
    >>> labels[:10].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    path = resources.files(__name__) / "digits.csv.bz2"
    with path.open("rb") as packed, bz2.open(packed, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    return table[:, :-1] / 16, table[:, -1].copy()


def load_alice() -> str:
    """Return the first three chapters of Alice's Adventures in Wonderland, in ASCII.

    Source: Lewis Carroll, 1865 (public domain); README.md in this folder names the edition.

    >>> text = load_alice()
    >>> len(text.split()), text[text.index("Alice was") :][:50]
    (5990, 'Alice was beginning to get very tired of sitting b')
    """
    return (resources.files(__name__) / "alice.txt").read_text(encoding="ascii")
