"""A broker that is no broker, for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Folders
from tests.unit.kernel.double import DoubleBroker, listening


@pytest.fixture
def double(folders: Folders) -> Iterator[DoubleBroker]:
    with listening(DoubleBroker(folders.runtime / "b.sock")) as made:
        yield made


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
