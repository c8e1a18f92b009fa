"""The classifier of the notebook about ONNX: a small network of PyTorch for digits.

python -m tests.onnx.makers.digit_classifier writes notebooks/digits.onnx. Needs torch and
onnxscript.
"""

from pathlib import Path

import onnx
import torch
from torch import nn

from letir.datasets import load_digits
from tests.onnx.makers.torch_models import exported

FOLDER = Path(__file__).parents[3] / "notebooks"
TRAINED = 1500  # pictures, of 1797


def trained() -> nn.Module:
    """The network after 30 passes over the pictures."""
    torch.manual_seed(0)
    images, labels = load_digits()
    x = torch.tensor(images[:TRAINED].reshape(-1, 1, 8, 8), dtype=torch.float32)
    y = torch.tensor(labels[:TRAINED])
    network = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)),
    )
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(30):
        for rows in torch.randperm(TRAINED).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    return network.eval()


if __name__ == "__main__":
    batch = torch.export.Dim("batch", min=2)
    model = exported(trained(), (torch.zeros(4, 1, 8, 8),), ({0: batch},))
    onnx.save(model, FOLDER / "digits.onnx")
