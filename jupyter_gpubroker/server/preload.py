"""Prepares a kernel's environment for torch-memory-saver, which lets PyTorch park its device memory (`parked`).

The library is looked for in the kernel's own environment, in the build for that environment's CUDA. It must be preloaded, and
a preload whose dependencies cannot be found is fatal to every process that inherits it: so the kernel's interpreter is
run with it first, and where that fails the kernel starts without. Results are kept per interpreter and library.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environment import ipykernel_python

PROBE_S = 10.0
Python = tuple[str, ...]
_SUPPORTED_CUDA_MAJORS = (12, 13)

# Runs in the kernel's interpreter; imports neither torch nor the library, which would take seconds.
_LOOK = """
import importlib.util, json, pathlib, re
def folder(name):
    spec = importlib.util.find_spec(name)
    return pathlib.Path(list(spec.submodule_search_locations)[0]) if spec and spec.submodule_search_locations else None
saver, torch, nvidia = folder("torch_memory_saver"), folder("torch"), folder("nvidia")
version = torch and (torch / "version.py").read_text()
found = re.search(r"^cuda\\b[^=]*=\\s*['\\"](\\d+)", version or "", re.M)
cuda = found and int(found.group(1))
libraries = sorted(saver.parent.glob("torch_memory_saver_hook_mode_preload_cu%s.*so" % cuda)) if saver and cuda else []
runtimes = sorted(nvidia.glob("*/lib/libcudart.so.%s" % cuda)) if nvidia and cuda else []
print(json.dumps({"saver": bool(saver), "cuda": cuda, "library": str(libraries[0]) if libraries else None,
                  "runtime": str(runtimes[0].parent) if runtimes else None}))
"""


@dataclass(frozen=True, slots=True)
class Preload:
    """`environment` is what to add to the kernel's; where it is empty, `refusal` is the code of the reason why."""

    environment: Mapping[str, str]
    refusal: str | None = None


_tried: dict[tuple[Python, str, int], bool] = {}


async def prepare(argv: Sequence[str], environ: Mapping[str, str], state_folder: Path) -> Preload:
    """What to add to `environ` so that the kernel `argv` can park, or why it cannot. Never raises, never hangs.

    On real GPUs parking stays off until a hardware test of this machine has seen it work (`park-verified.json`).
    """
    python = ipykernel_python(argv)
    if python is None:
        return Preload({}, "not_ipykernel")
    if not is_verified(state_folder):
        return Preload({}, "unverified_hardware")
    return await asyncio.to_thread(_prepare, python, environ)


def is_verified(state_folder: Path) -> bool:
    """Has parking been seen to work on this machine's GPUs?"""
    try:
        found = json.loads((state_folder / "park-verified.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("verified") is True


def _prepare(python: Python, environ: Mapping[str, str]) -> Preload:
    # torch maps memory by itself then, and pausing would free nothing.
    if "expandable_segments:True" in environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        return Preload({}, "park_expandable_segments")
    found = _look(python, environ)
    if not found.get("saver"):
        return Preload({}, "park_library_missing")
    library = found.get("library")
    if found.get("cuda") not in _SUPPORTED_CUDA_MAJORS or library is None:
        return Preload({}, "park_cuda_unsupported")
    additions = _additions(library, found.get("runtime"), environ)
    if not _starts(python, library, {**environ, **additions}):
        return Preload({}, "park_preload_fails")
    return Preload(additions)


def _look(python: Python, environ: Mapping[str, str]) -> dict[str, Any]:
    """What `_LOOK` prints in the kernel's environment; empty where it could not run."""
    status, output = _run(python, _LOOK, environ)
    if status != 0:
        return {}
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _additions(library: str, runtime: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    additions = {
        "LD_PRELOAD": ":".join(filter(None, (library, environ.get("LD_PRELOAD", "")))),
        "TMS_INIT_ENABLE": "1",
        "TMS_INIT_ENABLE_CPU_BACKUP": "1",
        # Unlike pinned memory, this is given back to the host on return.
        "TMS_INIT_CPU_BACKUP_BACKEND": "mmap",
    }
    if runtime is not None:
        # With torch from pip the CUDA runtime lies in site-packages, where the loader does not look.
        path = (environ.get("LD_LIBRARY_PATH", ""), runtime)
        additions["LD_LIBRARY_PATH"] = ":".join(filter(None, path))
    return additions


def _starts(python: Python, library: str, environ: Mapping[str, str]) -> bool:
    try:
        key = (python, library, Path(library).stat().st_mtime_ns)
    except OSError:
        return False
    if key not in _tried:
        _tried[key] = _run(python, "pass", environ)[0] == 0
    return _tried[key]


def _run(python: Python, code: str, environ: Mapping[str, str]) -> tuple[int | None, str]:
    """Exit status and output of `python -c code`; None when it could not be run or took too long."""
    try:
        done = subprocess.run(
            [*python, "-c", code],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    return done.returncode, done.stdout.decode(errors="replace")
