"""Observers: they watch a run and change nothing in it. Files, TensorBoard, MLflow, and your own.

`solve(observers=…)`, the key `observers` of a run file and `infimum run --observe` take components of this kind by
name; Python takes plain callables too.
"""

from __future__ import annotations

from infimum.observers.base import Row, RunObserver, Watch
from infimum.observers.files import Csv, JsonLines
from infimum.observers.mlflow import Mlflow
from infimum.observers.tensorboard import TensorBoard

__all__ = ["Csv", "JsonLines", "Mlflow", "Row", "RunObserver", "TensorBoard", "Watch"]
