"""A world of its own for the demo: folders, environment, and the end of every process that was started in it.

Whoever was started here has the runtime folder's path in its environment; by that mark all are found in the end, also those
that were started by others (broker, runner, kernels, jobs). Processes are signalled through pidfds: never a reused pid.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples" / "single_node"
SHIPPED = ("train_digits.py", "policy.toml")
END_GRACE_S = 8.0
LOOK_S = 0.05
TEMPORARY_BYTES_MAX = 50


class DemoPlace:
    """Folders below one short temporary folder, and the environment that names them and nothing of the user's."""

    def __init__(self, simulate: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="gpubroker-demo-", dir=_short_folder()))
        self.work = self._folder("work")
        self._runtime = self._folder("run")
        self.environment = self._environment(simulate)
        self._children: list[subprocess.Popen[bytes]] = []
        config = self._folder("config/gpubroker")
        (config / "policy.toml").write_text(example("policy.toml"), encoding="utf-8")
        # A person would look for what happened between two looks of a second; the demo has not the time.
        (config / "config.py").write_text("c.BrokerApp.observe_every_s = 0.25\n", encoding="utf-8")
        (self.work / "train_digits.py").write_text(example("train_digits.py"), encoding="utf-8")

    def spawn(self, argv: list[str], extra: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process of the demo's own; it writes to `log` and ends with the place."""
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                env=self.environment | extra,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._children.append(process)
        return process

    def end(self) -> None:
        """End everything that lives here and remove the folders. Servers first: they would start a broker anew."""
        self._end_processes()
        for child in self._children:
            child.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def _end_processes(self) -> None:
        mark = os.fsencode(self._runtime)
        for is_meant in (_is_server, _is_any):
            deadline_s = time.monotonic() + END_GRACE_S
            number = signal.SIGTERM
            asked: set[int] = set()
            while left := {pid for pid in processes_with(mark) if is_meant(pid)}:
                if time.monotonic() > deadline_s:
                    number, asked = signal.SIGKILL, set()
                for pid in left - asked:
                    _signal(pid, mark, number)
                asked |= left
                time.sleep(LOOK_S)

    def _environment(self, simulate: str) -> dict[str, str]:
        from ...client.start import scrubbed

        environment = scrubbed(os.environ)
        environment["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
        )
        environment |= {
            "TMPDIR": str(self._folder("tmp")),
            "XDG_RUNTIME_DIR": str(self._runtime),
            "XDG_STATE_HOME": str(self._folder("state")),
            "XDG_CONFIG_HOME": str(self._folder("config")),
            "JUPYTER_CONFIG_DIR": str(self._folder("jupyter/config")),
            "JUPYTER_DATA_DIR": str(self._folder("jupyter/data")),
            "JUPYTER_RUNTIME_DIR": str(self._folder("jupyter/run")),
            "JUPYTER_NO_CONFIG": "1",  # the extensions of this environment would only cost time
            "IPYTHONDIR": str(self._folder("ipython")),
            "GPUBROKER_SIMULATE": simulate,
        }
        environment.pop("GPUBROKER_POLICY", None)
        return environment

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def example(name: str) -> str:
    """A file of examples/single_node: of the source tree, or as the wheel ships it beside this module."""
    assert name in SHIPPED
    in_tree = EXAMPLES / name
    if in_tree.exists():
        return in_tree.read_text(encoding="utf-8")
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def processes_with(mark: bytes) -> Iterator[int]:
    """Processes of ours, but this one, that have `mark` in their environment."""
    for entry in os.scandir("/proc"):
        if (
            entry.name.isdigit()
            and int(entry.name) != os.getpid()
            and mark in _read(entry.name, "environ")
        ):
            yield int(entry.name)


def _signal(pid: int, mark: bytes, number: signal.Signals) -> None:
    """Send a signal to the process that has the mark, not to one that has got its pid since."""
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            if mark in _read(str(pid), "environ"):
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def _is_server(pid: int) -> bool:
    return b"jupyter_server" in _read(str(pid), "cmdline")


def _is_any(_pid: int) -> bool:
    return True


def _read(pid: str, name: str) -> bytes:
    """A file of a process; nothing if it is gone or another user's. A zombie has an empty environment."""
    try:
        return Path("/proc", pid, name).read_bytes()
    except OSError:
        return b""


def _short_folder() -> str | None:
    """A socket's path must fit 107 bytes, which a long TMPDIR may not leave room for."""
    is_short = len(os.fsencode(tempfile.gettempdir())) <= TEMPORARY_BYTES_MAX
    return None if is_short else "/tmp"  # noqa: S108 - mkdtemp makes a folder of our own in it
