"""A broker that crashes at every start is started less and less often."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpubroker.client import starts as starts_module
from jupyter_gpubroker.client.starts import Starts


class Moment:
    """The wall clock, held at the time of the file's writing, and moved by a test."""

    def __init__(self, path: Path) -> None:
        self.now_s = 1_000_000.0
        self._path = path

    def time(self) -> float:
        return self.now_s

    def start(self, starts: Starts) -> None:
        starts.add()
        os.utime(self._path, (self.now_s, self.now_s))


@pytest.fixture
def moment(tmp_path: Path, monkeypatch) -> Moment:
    made = Moment(tmp_path / "starts")
    monkeypatch.setattr(starts_module, "time", made)
    return made


@pytest.fixture
def starts(tmp_path: Path) -> Starts:
    return Starts(tmp_path / "starts")


def test_pauses_grow_up_to_half_a_minute(starts: Starts, moment: Moment) -> None:
    pauses: list[float] = []
    for _ in range(8):
        pauses.append(starts.pause_s)
        moment.now_s += starts.pause_s
        moment.start(starts)
    assert pauses == [0, 0, 0, 2, 4, 8, 16, 30]


def test_after_a_minute_they_count_no_more(starts: Starts, moment: Moment) -> None:
    for _ in range(4):
        moment.start(starts)
    assert starts.pause_s == 4
    moment.now_s += 1
    assert starts.pause_s == 3
    moment.now_s += 60
    assert (starts.in_vain, starts.pause_s) == (0, 0)
