"""How much host memory a process may still take: the machine's, and its control groups' down to the tightest."""

from __future__ import annotations

from pathlib import Path

from .checkpoint_driver import HostMemory


def host_memory(pid: int, root: Path = Path("/")) -> HostMemory:
    """Raises `OSError` where /proc cannot be read."""
    return HostMemory(_available_mib(root), _cgroup_free_mib(pid, root))


def _available_mib(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def _cgroup_free_mib(pid: int, root: Path) -> int | None:
    """The least of all groups above the process, for cgroup v2 and the memory controller of v1."""
    limits = []
    for line in (root / f"proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = base / path.lstrip("/")
        while True:
            limits.append(_group_free_mib(group, names))
            if group == base or base not in group.parents:
                break
            group = group.parent
    return min((limit for limit in limits if limit is not None), default=None)


def _group_free_mib(group: Path, names: tuple[str, str, str]) -> int | None:
    """Free memory of one group; page cache that can be dropped counts as free."""
    limit_name, usage_name, cache_name = names
    try:
        limit = (group / limit_name).read_text().strip()
        if limit == "max" or int(limit) >= 1 << 60:
            return None
        usage_bytes = int((group / usage_name).read_text())
        lines = (group / "memory.stat").read_text().splitlines()
    except OSError:
        return None
    stat = dict(line.split() for line in lines)
    return max(0, int(limit) - usage_bytes + int(stat.get(cache_name, 0))) >> 20
