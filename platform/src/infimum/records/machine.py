"""Facts about the machine that can change the last bits of a result, without names, users or paths."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

VARIABLES = re.compile(r"(OPENBLAS|OMP|MKL|BLIS|NUMEXPR|VECLIB|GOTO|CUBLAS)_\w+|CUDA_VISIBLE_DEVICES|PYTHONHASHSEED")
"""Environment variables that steer numerical libraries."""


def machine_facts() -> dict[str, Any]:
    """System, architecture, processor and memory; accelerators where torch has been loaded and sees some."""
    facts = dict(_fixed())
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["accelerators"] = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    return facts


@cache
def _fixed() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gib": _memory(),
        "libc": " ".join(platform.libc_ver()).strip(),
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found is not None else platform.processor()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def thread_facts() -> list[dict[str, Any]]:
    """The BLAS and OpenMP libraries that are loaded, with their versions and numbers of threads; no file names."""
    keys = ("user_api", "internal_api", "version", "num_threads", "threading_layer", "architecture")
    rows = [{key: one[key] for key in keys if one.get(key) is not None} for one in _pools(len(sys.modules)).info()]
    return sorted(rows, key=lambda row: sorted((key, str(value)) for key, value in row.items()))


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:
    """The libraries that are loaded. They are looked for again when modules have been imported, which takes a while."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def torch_facts() -> dict[str, Any] | None:
    """How torch computes, where it has been loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return {
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "cuda": torch.version.cuda,
    }


def environment() -> dict[str, str]:
    """The variables that steer numerical libraries, as they are set."""
    return {name: os.environ[name] for name in sorted(filter(VARIABLES.fullmatch, os.environ))}
