"""Training: a jitted function gives the loss and its gradient on every batch."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen

from letir import Lambda, jit, trace, value_and_grad
from letir.datasets import load_digits
from letir.demo.models import descent_step, loss, new_layers, scores

CLASSES = 10
_TRAINING_IMAGES = 1437  # of 1,797; the others are held out
BATCH = 128


@frozen(eq=False)
class Digits:
    """Shuffled images, labels and targets (a row of 0s and a 1 for each image)."""

    images: np.ndarray
    labels: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: Any) -> "Digits":
        return Digits(self.images[item], self.labels[item], self.targets[item])


def split_digits(rng: np.random.Generator) -> tuple[Digits, Digits]:
    """(digits to train on, held-out digits), shuffled by ``rng``."""
    images, labels = load_digits()
    order = rng.permutation(len(labels))
    digits = Digits(images[order], labels[order], np.eye(CLASSES)[labels[order]])
    return digits[:_TRAINING_IMAGES], digits[_TRAINING_IMAGES:]


@frozen(eq=False)
class Model:
    """A classifier to train.

    ``layers``: the initial layers; ``loss``: their recorded loss; ``gradient``: the program of its
    value and gradient; ``step``: the jitted function that training calls for them.
    """

    name: str
    layers: list
    loss: Lambda
    gradient: Lambda
    step: Callable

    @classmethod
    def recorded(
        cls, name: str, sizes: tuple[int, ...], batch: Digits, rng: np.random.Generator
    ) -> "Model":
        """Record the loss of new layers of these sizes on ``batch``, and differentiate it."""
        layers = new_layers(sizes, rng)
        program = trace(loss, layers, batch.images, batch.targets)
        gradient = value_and_grad(program)
        return cls(name, layers, program, gradient, jit(value_and_grad(loss)))

    def epochs(
        self, digits: Digits, count: int, rate: float, rng: np.random.Generator
    ) -> Iterator[tuple[list, float]]:
        """Yield (layers, mean loss) after each pass over ``digits``, in batches of size BATCH."""
        layers = self.layers
        for _ in range(count):
            order, values = rng.permutation(len(digits)), []
            # full batches only: another size would be compiled for one batch
            for start in range(0, len(digits) - BATCH + 1, BATCH):
                batch = digits[order[start : start + BATCH]]
                value, slopes = self.step(layers, batch.images, batch.targets)
                layers = descent_step(layers, slopes, rate)
                values.append(value)
            yield layers, float(np.mean(values))


def predictor(layers: list, images: np.ndarray) -> Lambda:
    """The program that classifies images; the trained layers are constants in it."""
    return trace(lambda images: scores(layers, images).argmax(axis=1), images)


def accuracy(labels: np.ndarray, digits: Digits) -> float:
    """The fraction of images whose label is right."""
    return float((labels == digits.labels).mean())
