"""A /proc of the test's own making."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jupyter_gpubroker.agent.processes import ProcessTable


class FakeProc:
    """Writes the files that `ProcessTable` reads. CPU is in clock ticks of 10 ms."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def process(
        self,
        pid: int,
        parent: int = 1,
        *,
        ticks: int = 100,
        group: int | None = None,
        session: int | None = None,
        uid: int = 1000,
        state: str = "S",
        name: str = "python",
        cpu: int = 0,
        marks: dict[str, str] | None = None,
        inner: tuple[int, ...] = (),
    ) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        fields = [
            state,
            parent,
            pid if group is None else group,
            pid if session is None else session,
        ]
        fields += [0] * 7 + [cpu, 0, 0, 0] + [0] * 4 + [ticks, 0, 0]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")
        pids = "\t".join(map(str, (pid, *inner)))
        (folder / "status").write_text(
            f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pids}\n"
        )
        environ = "".join(f"{key}={value}\0" for key, value in (marks or {}).items())
        (folder / "environ").write_text("HOME=/\0" + environ)
        (folder / "fd").mkdir(exist_ok=True)
        if not (folder / "io").exists():
            self.io(pid, read=0, written=0)

    def io(self, pid: int, read: int, written: int) -> None:
        (self.root / str(pid) / "io").write_text(f"rchar: {read}\nwchar: {written}\nsyscr: 1\n")

    def open_file(self, pid: int, target: str) -> None:
        (self.root / str(pid) / "fd" / "7").symlink_to(target)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    root = tmp_path / "proc"
    root.mkdir()
    return FakeProc(root)


@pytest.fixture
def table(proc: FakeProc) -> ProcessTable:
    return ProcessTable(proc.root, proc.root / "no-devices")
