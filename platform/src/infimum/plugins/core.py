"""The host's own components, registered through the same hooks as any plugin's."""

from __future__ import annotations

from infimum.plugins import hook
from infimum.plugins.hookspecs import Register

_RULES = {
    "max_iter": ("MaxIter", "limit", "at most so many iterations"),
    "max_time": ("MaxTime", "limit", "at most so many seconds"),
    "max_solver_time": ("MaxSolverTime", "limit", "at most so many seconds, evaluations for the record left out"),
    "max_calls": ("MaxCalls", "limit", "at most so many evaluations of a capability"),
    "target": ("Target", "target", "the value has reached a number"),
    "grad_norm": ("GradNorm", "optimality", "the gradient (mapping) is small"),
    "residual": ("Residual", "optimality", "the solver's residual is small"),
    "gap": ("Gap", "optimality", "the gap to a bound or a known optimum is small"),
    "feasibility": ("Feasibility", "feasibility", "the constraints are violated by little"),
    "rel_change": ("RelChange", "small steps", "the point changes little relative to its norm"),
    "abs_change": ("AbsChange", "small steps", "the point changes little"),
    "stall": ("Stall", "small steps", "the best value has not improved for a while"),
}
_SETS = {
    "simplex": ("Simplex", "simplex", "x >= 0 with entries that sum to a radius"),
    "l1_ball": ("L1Ball", "ball", "absolute values that sum to at most a radius"),
    "l2_ball": ("L2Ball", "ball", "at most a radius from a center, in the Euclidean norm"),
    "linf_ball": ("LinfBall", "ball", "every entry at most a radius from a center"),
    "affine": ("Affine", "equations", "A x = b"),
    "linear": ("LinearConstraint", "inequalities", "lower <= A x <= upper"),
    "second_order_cone": ("SecondOrderCone", "cone", "the norm of x[1:] is at most x[0]"),
    "psd": ("PSD", "cone", "symmetric matrices without negative eigenvalues"),
}
_OBSERVERS = {
    "csv": ("Csv", "every check as a row of a CSV file"),
    "jsonl": ("JsonLines", "every check as a JSON object a line, and the outcome"),
    "tensorboard": ("TensorBoard", "scalars for TensorBoard"),
    "mlflow": ("Mlflow", "parameters, metrics and the outcome for MLflow, in a folder or on a server"),
}


@hook
def infimum_constraints(register: Register) -> None:
    register("box", "infimum.constraints:Box", kind="bounds", summary="lower <= x <= upper, entry by entry")
    register("nonnegative", "infimum.constraints:Nonnegative", kind="bounds", summary="x >= 0, entry by entry")
    for name, (attribute, label, summary) in _SETS.items():
        register(name, f"infimum.constraints:{attribute}", kind=label, summary=summary)


@hook
def infimum_stopping_rules(register: Register) -> None:
    for name, (attribute, label, summary) in _RULES.items():
        register(name, f"infimum.stopping.rules:{attribute}", kind=label, summary=summary)


@hook
def infimum_components(register: Register) -> None:
    register("constant", "infimum.schedule:Constant", kind="schedule", summary="the same step at every iteration")
    register("power", "infimum.schedule:Power", kind="schedule", summary="a step that decays like a power of k")
    for name, (attribute, summary) in _OBSERVERS.items():
        register(name, f"infimum.observers:{attribute}", kind="observer", summary=summary)
