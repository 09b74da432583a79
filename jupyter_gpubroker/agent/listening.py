"""Does a process tree wait for connections: TCP sockets that listen, but for those the notebook itself needs.

A kernel listens for its own messages (the ports of its connection file) and a debugger's adapter for its client; neither
makes it a server. Costs a look at each descriptor, so it is asked now and then, of quiet holders only. Blocking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from .processes import ProcessTable

_CONNECTION_FILE_MAX_BYTES = 64 * 1024


def listens(table: ProcessTable, pids: Sequence[int]) -> bool | None:
    """Whether any of these processes does; None where not all of them may be looked at."""
    is_all_seen = True
    for pid in pids:
        try:
            ports = table.listening_ports(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            is_all_seen = False
            continue
        if ports and not ports <= _own_ports(table.arguments(pid), ports):
            return True
    return False if is_all_seen else None


def _own_ports(arguments: Iterable[str], ports: set[int]) -> set[int]:
    """The ports that a kernel or a debugger's adapter needs for itself."""
    own: set[int] = set()
    for argument in arguments:
        if Path(argument).parts[-2:] == ("debugpy", "adapter"):
            return ports
        if argument.endswith(".json"):
            own |= _connection_ports(Path(argument))
    return own


def _connection_ports(path: Path) -> set[int]:
    """Of a Jupyter connection file; the kernel of any language gets it as an argument."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_CONNECTION_FILE_MAX_BYTES))
    except (OSError, ValueError):
        return set()
    if not isinstance(content, dict):
        return set()
    return {
        value
        for name, value in content.items()
        if name.endswith("_port") and isinstance(value, int)
    }
