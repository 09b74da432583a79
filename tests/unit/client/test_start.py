"""Why a broker could not start is told even where it could not be written down."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_gpubroker.client import BrokerDown, Places, ensure_broker, start


@pytest.fixture
def mute(folders, tmp_path: Path, monkeypatch) -> None:
    """In the broker's place: a program that ends without a word."""
    program = tmp_path / "mute"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))


@pytest.mark.usefixtures("mute")
def test_a_full_disk_is_named(monkeypatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=0, f_frsize=4096))
    with pytest.raises(BrokerDown, match=r"could not start: No space left on device: .*Free some"):
        ensure_broker()


@pytest.mark.usefixtures("mute")
def test_a_wish_whose_broker_could_not_start_is_brought_forward_again(monkeypatch) -> None:
    monkeypatch.setenv("GPUBROKER_SIMULATE", "1xA100")
    with pytest.raises(BrokerDown):
        ensure_broker()
    assert start._wish_of(Places.find(), os.environ) == "1xA100"


def test_a_broker_that_ends_before_it_is_told_to_has_made_way(monkeypatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ProcessLookupError

    health = SimpleNamespace(pid=1)
    client = SimpleNamespace(call=lambda *_: health)
    monkeypatch.setattr(start, "BrokerClient", lambda *_, **__: nullcontext(client))
    monkeypatch.setattr(start, "_serves", lambda *_: False)
    monkeypatch.setattr(os, "pidfd_open", gone)
    assert start._made_way("unix:///nowhere", "2xH200")


@pytest.mark.usefixtures("mute")
def test_who_says_nothing_with_room_to_say_it_has_a_log() -> None:
    with pytest.raises(BrokerDown, match="it said nothing") as down:
        ensure_broker()
    assert str(Places.find().log) in str(down.value)


@pytest.mark.usefixtures("mute")
def test_what_ends_badly_each_time_is_named_and_not_started_at_once_again() -> None:
    for _ in range(3):
        with pytest.raises(BrokerDown, match="could not start"):
            ensure_broker()
    Places.find().log.write_text("ValueError: a bug\n")
    with pytest.raises(BrokerDown, match=r"3 times and ended badly.*broker.log: ValueError: a bug"):
        ensure_broker()
