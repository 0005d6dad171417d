"""POGO in training: modules with orthogonal layers, from Python and from run files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum.checkpoint import load_tree, save_tree
from infimum.errors import InputError
from infimum_pogo import Stiefel, gaps

torch = pytest.importorskip("torch")
bridge = pytest.importorskip("infimum_torch")

MLP: dict[str, Any] = {"use": "torch.digits_mlp", "hidden": 32, "depth": 2, "value": "accuracy"}
HELD = [{"use": "pogo.stiefel", "rows": "auto", "on": "layers.*.weight"}]
SHARED: dict[str, Any] = {
    "use": "torch.groups",
    "groups": {
        "layers.*.weight": {"use": "pogo.optimizer", "lr": 0.3, "start": "project"},
        "*": {"use": "torch.adam", "lr": 0.01},
    },
}


def test_a_perceptron_learns_with_orthogonal_layers() -> None:
    result = infimum.solve(MLP, constraints=HELD, solver=SHARED, stopping="torch.max_epochs(6)", seed=0)
    assert result.value > 0.9, result
    for layer in result.x.layers:
        weight = layer.weight.detach()
        wide = weight if weight.shape[0] <= weight.shape[1] else weight.mT
        assert float(gaps(wide[None])[0]) < 1e-3


@pytest.mark.slow
def test_a_convolutional_net_learns_with_orthogonal_kernels() -> None:
    result = infimum.solve(
        {"use": "torch.digits_cnn", "channels": 12, "value": "accuracy"},
        constraints=[{"use": "pogo.stiefel", "rows": "auto", "flatten": True, "on": "conv*.weight"}],
        solver={
            "use": "torch.groups",
            "groups": {"conv*.weight": SHARED["groups"]["layers.*.weight"], "*": {"use": "torch.adam", "lr": 0.01}},
        },
        stopping="torch.max_epochs(4)",
        seed=0,
    )
    assert result.value > 0.8, result
    for conv in (result.x.conv1, result.x.conv2):
        flat = conv.weight.detach().flatten(1)
        wide = flat if flat.shape[0] <= flat.shape[1] else flat.mT
        assert float(gaps(wide[None])[0]) < 1e-3


def small(seed: int = 0, bias: bool = False) -> Any:
    """One matrix of 3 x 5 under the constraint."""
    rng = np.random.default_rng(seed)
    inputs, outputs = torch.as_tensor(rng.standard_normal((24, 5))), torch.as_tensor(rng.standard_normal((24, 3)))

    def make() -> Any:
        return torch.nn.Linear(5, 3, bias=bias, dtype=torch.float64)

    held = {"stiefel": Stiefel()}
    on = {"stiefel": "weight"}
    return bridge.Training(make, "mse_loss", (inputs, outputs), batch_size=8, constraints=held, on=on)


@pytest.mark.parametrize("options", [{"base": "sgd", "momentum": 0.5, "lr": 0.2}, {"base": "vadam", "lr": 0.3}])
def test_it_resumes_bit_for_bit(options: dict[str, Any], tmp_path: Path) -> None:
    solver = {"use": "pogo.optimizer", "start": "project", **options}
    arguments: dict[str, Any] = {"solver": solver, "stopping": "max_iter(20)", "seed": 3}
    whole = infimum.solve(small(), **arguments)
    first = infimum.prepare(small(), **arguments)
    first.advance(9)
    save_tree(tmp_path, "state", first.state_dict())
    result = infimum.prepare(small(), **arguments).load_state_dict(load_tree(tmp_path, "state")).solve()
    assert torch.equal(whole.x.weight, result.x.weight) and result.iterations == 20


def test_the_metrics_say_how_it_stands() -> None:
    result = infimum.solve(
        small(),
        solver={"use": "pogo.optimizer", "start": "project", "lr": 20.0},
        stopping="max_iter(12)",
        record=["orthogonality", "guard_share"],
        seed=0,
    )
    assert result.trace is not None
    assert 0 < float(result.trace["orthogonality"][-1]) < 0.06 and float(result.trace["guard_share"][-1]) > 0.8


def test_free_parameters_and_starts_off_the_set_are_refused() -> None:
    with pytest.raises(InputError, match=r"pogo\.optimizer: bias have no Stiefel constraint; .*torch\.groups"):
        infimum.solve(small(bias=True), solver={"use": "pogo.optimizer", "start": "project"}, seed=0)
    with pytest.raises(InputError, match=r"parameter 'weight' is not orthonormal: .*start='project'"):
        infimum.solve(small(), solver="pogo.optimizer", stopping="max_iter(2)", seed=0)


def test_patterns_that_match_nothing_name_the_nearest() -> None:
    with pytest.raises(InputError, match=r"layer\.\*\.weight"):
        infimum.solve(
            MLP,
            constraints=[{"use": "pogo.stiefel", "on": "layer.*.weight"}],
            solver=SHARED,
            seed=0,
            stopping="max_iter(1)",
        )
