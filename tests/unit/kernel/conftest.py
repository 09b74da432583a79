"""A broker that is no broker, for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubroker import board
from tests.conftest import Folders
from tests.unit.kernel.double import DoubleBroker, listening
from tests.unit.kernel.process import Process, Shown


@pytest.fixture
def double(folders: Folders) -> Iterator[DoubleBroker]:
    with listening(DoubleBroker(folders.runtime / "b.sock")) as made:
        yield made


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")


@pytest.fixture
def process(double: DoubleBroker, tmp_path: Path) -> Process:
    return Process(double, tmp_path)


@pytest.fixture
def heard(process: Process) -> Iterator[Process]:
    """The same with its link running."""
    process.link.start()
    yield process
    process.link.stop()
    with process.double.changed():
        process.double.leases = []
    process.link._thread.join(10)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    made = Shown()
    monkeypatch.setattr(board, "_in_notebook", lambda: True)
    monkeypatch.setattr(board, "_publish", made)
    return made
