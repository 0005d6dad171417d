"""Small networks on handwritten digits (the 1797 images of 8 by 8 pixels that come with scikit-learn)."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Lt
from torch import nn

from infimum.errors import InputError
from infimum_torch.modules import device_of
from infimum_torch.training import DTYPES, DType, Training

HELD_OUT = 360
"""Images for validation: a fifth."""

Device = str | None
Value = Literal["loss", "accuracy", "none"]


@cache
def _images() -> tuple[torch.Tensor, torch.Tensor]:
    """Images as rows with entries in [0, 1], in a fixed random order, and their digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return torch.tensor(X[order] / 16.0, dtype=torch.float32), torch.tensor(y[order], dtype=torch.long)


class Accuracy:
    """The share of samples that a classifier gets right.

    Parameters
    ----------
    inputs : tensor of shape (n, …)
    labels : tensor of int, shape (n,)
    """

    def __init__(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __call__(self, module: nn.Module) -> float:
        """The share, of the module as it is."""
        return float((module(self.inputs).argmax(1) == self.labels).double().mean())


def _training(make: Any, shape: tuple[int, ...], name: str, value: Value, **options: Any) -> Training:
    images, labels = _images()
    images = images.reshape(-1, *shape)
    device = device_of(nn.Identity(), options.get("device"))
    dtype = DTYPES[options.get("dtype") or "float32"]
    inside, held = (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])
    accuracy = Accuracy(held[0].to(device, dtype), held[1].to(device))
    return Training(
        make,
        "cross_entropy",
        inside,
        validation=held,
        metrics={"accuracy": accuracy},
        value=value,
        sense="max" if value == "accuracy" else "min",
        name=name,
        **options,
    )


def digits_mlp(
    hidden: Annotated[int, Ge(1)] = 64,
    depth: Annotated[int, Ge(1)] = 2,
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
    bias: bool = True,
    batch_size: Annotated[int, Ge(1)] = 64,
    value: Value = "loss",
    device: Device = None,
    dtype: DType | None = None,
    seed: Annotated[int, Ge(0)] | None = None,
) -> Training:
    """A multilayer perceptron that classifies the digits: 1437 images to train on, 360 for `value` and `accuracy`.

    Layers are called `layers.0`, `layers.1`, …, `head`. With `hidden` up to 64 the weights of the layers can be
    orthogonal: `constraints: [{use: …, on: "layers.*.weight"}]`.

    Parameters
    ----------
    hidden : int, default 64
        Width of the hidden layers.
    depth : int, default 2
        Number of hidden layers.
    dropout : float, default 0.0
        Share of the hidden units that is left out at each step.
    bias : bool, default True
        Whether the hidden layers have a bias.
    batch_size : int, default 64
        Images of a batch; 23 batches make an epoch.
    value : {"loss", "accuracy", "none"}, default "loss"
        What ranks iterates, on the images that are held out; accuracy is maximized.
    device : str, optional
        Where to train; the CPU by default.
    dtype : {"float64", "float32", "bfloat16", "float16"}, optional
        float32 by default.
    seed : int, optional
        Of the first weights; by default they follow the seed of the run.
    """

    def make() -> nn.Module:
        return DigitsMLP(hidden, depth, dropout, bias)

    return _training(make, (64,), "digits_mlp", value, batch_size=batch_size, device=device, dtype=dtype, seed=seed)


class DigitsMLP(nn.Module):
    """64 inputs, hidden layers with ReLU, ten outputs."""

    def __init__(self, hidden: int, depth: int, dropout: float, bias: bool) -> None:
        super().__init__()
        widths = [64, *[hidden] * depth]
        self.layers = nn.ModuleList(nn.Linear(m, n, bias=bias) for m, n in pairwise(widths))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the ten digits."""
        for layer in self.layers:
            x = self.dropout(torch.relu(layer(x)))
        scores: torch.Tensor = self.head(x)
        return scores


def digits_cnn(
    channels: Annotated[int, Ge(1)] = 16,
    kernel: Literal[1, 3, 5] = 3,
    orthogonal: bool = False,
    batch_size: Annotated[int, Ge(1)] = 64,
    value: Value = "loss",
    device: Device = None,
    dtype: DType | None = None,
    seed: Annotated[int, Ge(0)] | None = None,
) -> Training:
    """A small convolutional net that classifies the digits: 1437 images to train on, 360 for `value` and `accuracy`.

    Two convolutions with stride 2, and a linear layer. With `orthogonal` the kernels are stored as matrices with a row
    for each output channel, `conv1.matrix` of (channels, kernel²) and `conv2.matrix` of (channels, channels kernel²),
    and start with orthonormal rows: a constraint on "conv*.matrix" keeps them so.

    Parameters
    ----------
    channels : int, default 16
        Output channels of both convolutions; with `orthogonal` at most kernel².
    kernel : {1, 3, 5}, default 3
        Width of the kernels.
    orthogonal : bool, default False
        Whether the kernels are matrices with orthonormal rows; a channel more than kernel² would leave no room.
    batch_size : int, default 64
        Images of a batch; 23 batches make an epoch.
    value : {"loss", "accuracy", "none"}, default "loss"
        What ranks iterates, on the images that are held out; accuracy is maximized.
    device : str, optional
        Where to train; the CPU by default.
    dtype : {"float64", "float32", "bfloat16", "float16"}, optional
        float32 by default.
    seed : int, optional
        Of the first weights; by default they follow the seed of the run.

    Raises
    ------
    InputError
        If `orthogonal` asks for more channels than a kernel has entries.
    """
    if orthogonal and channels > kernel**2:
        raise InputError(
            f"digits_cnn: channels={channels} rows of {kernel**2} entries cannot be orthonormal; expected at most "
            f"{kernel**2} channels with kernel={kernel}"
        )

    def make() -> nn.Module:
        return DigitsCNN(channels, kernel, orthogonal)

    return _training(make, (1, 8, 8), "digits_cnn", value, batch_size=batch_size, device=device, dtype=dtype, seed=seed)


class MatrixConv(nn.Module):
    """A convolution with stride 2 whose kernels are the rows of a matrix, orthonormal at the start."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.kernel, self.inputs = kernel, inputs
        self.matrix = nn.Parameter(torch.empty(outputs, inputs * kernel**2))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.orthogonal_(self.matrix)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The filtered image, half as wide."""
        weight = self.matrix.reshape(-1, self.inputs, self.kernel, self.kernel)
        return nn.functional.conv2d(x, weight, self.bias, stride=2, padding=self.kernel // 2)


class DigitsCNN(nn.Module):
    """Two convolutions with ReLU, ten outputs."""

    def __init__(self, channels: int, kernel: int, orthogonal: bool) -> None:
        super().__init__()

        def conv(inputs: int) -> nn.Module:
            if orthogonal:
                return MatrixConv(inputs, channels, kernel)
            return nn.Conv2d(inputs, channels, kernel, stride=2, padding=kernel // 2)

        self.conv1, self.conv2 = conv(1), conv(channels)
        self.head = nn.Linear(4 * channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the ten digits."""
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        scores: torch.Tensor = self.head(x.flatten(1))
        return scores
