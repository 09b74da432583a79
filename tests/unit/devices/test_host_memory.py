"""Host memory is what the tightest control group above the process allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpubroker.devices.checkpoint_driver import HostMemory
from jupyter_gpubroker.devices.host_memory import host_memory

GIB = 1 << 30


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "proc/meminfo", "MemTotal: 1 kB\nMemAvailable:    8388608 kB\n")
    write(tmp_path / "proc/7/cgroup", "0::/user.slice/kernel.scope\n")
    return tmp_path


def group(root: Path, path: str, limit: int | str, used: int, cache: int) -> None:
    write(root / "sys/fs/cgroup" / path / "memory.max", f"{limit}\n")
    write(root / "sys/fs/cgroup" / path / "memory.current", f"{used}\n")
    write(root / "sys/fs/cgroup" / path / "memory.stat", f"anon 5\ninactive_file {cache}\n")


def test_without_limits_it_is_what_the_machine_has(root):
    group(root, "user.slice/kernel.scope", "max", GIB, 0)
    assert host_memory(7, root) == HostMemory(8192, None)


def test_page_cache_counts_as_free(root):
    group(root, "user.slice/kernel.scope", 4 * GIB, 3 * GIB, 2 * GIB)
    assert host_memory(7, root) == HostMemory(8192, 3072)


def test_the_tightest_group_counts(root):
    group(root, "user.slice/kernel.scope", 4 * GIB, 1 * GIB, 0)
    group(root, "user.slice", 2 * GIB, 1 * GIB, 0)
    assert host_memory(7, root) == HostMemory(8192, 1024)


def test_the_memory_controller_of_version_1_is_read(root):
    write(root / "proc/7/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n")
    base = root / "sys/fs/cgroup/memory/job"
    write(base / "memory.limit_in_bytes", str(2 * GIB))
    write(base / "memory.usage_in_bytes", str(GIB))
    write(base / "memory.stat", "total_inactive_file 0\n")
    assert host_memory(7, root) == HostMemory(8192, 1024)


def test_this_machine_has_some():
    assert host_memory(os.getpid()).available_mib > 0
