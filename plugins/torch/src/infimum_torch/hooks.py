"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

OPTIMIZERS = {
    "adadelta": ("Adadelta", "Adadelta: steps from running averages of squared gradients and squared steps"),
    "adafactor": ("Adafactor", "Adafactor: second moments by row and column, for little memory"),
    "adagrad": ("Adagrad", "Adagrad: steps from the sum of squared gradients"),
    "adam": ("Adam", "Adam: steps from running averages of gradients and their squares"),
    "adamax": ("Adamax", "Adam with the infinity norm"),
    "adamw": ("AdamW", "Adam with decoupled weight decay"),
    "asgd": ("ASGD", "averaged stochastic gradient descent"),
    "lbfgs": ("LBFGS", "limited-memory BFGS; one iteration holds up to max_iter of its own"),
    "muon": ("Muon", "Muon: orthogonalized momentum, for parameters that are matrices"),
    "nadam": ("NAdam", "Adam with Nesterov momentum"),
    "radam": ("RAdam", "Adam with rectified variance at the beginning"),
    "rmsprop": ("RMSprop", "RMSprop: steps from a running average of squared gradients"),
    "rprop": ("Rprop", "Rprop: steps from signs of full gradients"),
    "sgd": ("SGD", "gradient descent, with momentum"),
    "sparse_adam": ("SparseAdam", "Adam for sparse gradients, as embeddings give them"),
}
"""Name to class in torch.optim and a summary."""
SCHEDULES = {
    "constant_lr": ("ConstantLR", "a smaller step size at the beginning"),
    "cosine_annealing_lr": ("CosineAnnealingLR", "falls along half a period of the cosine"),
    "cosine_annealing_warm_restarts": ("CosineAnnealingWarmRestarts", "falls along a cosine and starts anew"),
    "cyclic_lr": ("CyclicLR", "to and fro between two step sizes"),
    "exponential_lr": ("ExponentialLR", "a constant factor at each step"),
    "linear_lr": ("LinearLR", "from one factor to another, linearly"),
    "multi_step_lr": ("MultiStepLR", "a constant factor at given steps"),
    "one_cycle_lr": ("OneCycleLR", "up to a large step size and down to almost nothing"),
    "polynomial_lr": ("PolynomialLR", "falls to zero like a power of what is left"),
    "sequential_lr": ("SequentialLR", "one schedule after another"),
    "step_lr": ("StepLR", "a constant factor after every so many steps"),
}
"""Name to class in torch.optim.lr_scheduler and a summary."""


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    register(
        "training",
        "infimum_torch.training:Training",
        kind="training",
        summary="a module of yours, a loss, data and metrics",
    )
    register(
        "digits_mlp",
        "infimum_torch.digits:digits_mlp",
        kind="training",
        summary="a perceptron on handwritten digits of 8 by 8 pixels",
    )
    register(
        "digits_cnn",
        "infimum_torch.digits:digits_cnn",
        kind="training",
        summary="a small convolutional net on the digits, orthogonal where it is wanted",
    )


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    register(
        "autograd",
        "infimum_torch.autograd:Autograd",
        kind="gradient",
        summary="exact derivatives of a function that computes with torch; value and gradient in one pass",
    )


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    for name, (optimizer, summary) in OPTIMIZERS.items():
        register(name, f"infimum_torch.optimizers:{optimizer}", kind="torch optimizer", summary=summary)
    register(
        "groups",
        "infimum_torch.groups:Groups",
        kind="torch optimizer",
        summary="several optimizers, each for the parameters that its pattern matches",
    )


@hook
def infimum_stopping_rules(register: Callable[..., None]) -> None:
    register("max_epochs", "infimum_torch.rules:MaxEpochs", kind="limit", summary="at most so many epochs of the data")


@hook
def infimum_components(register: Callable[..., None]) -> None:
    for name, (scheduler, summary) in SCHEDULES.items():
        register(name, f"infimum_torch.schedules:{scheduler}", kind="schedule", summary=summary)
