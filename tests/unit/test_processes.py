"""What /proc says of a process: living ones only, and whose child they are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.processes import (
    descends,
    process_of,
    processes,
    start_ticks,
    uid_of,
)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_living_process_is_told_with_its_parent_group_and_session(child):
    found = process_of(child.pid)
    assert found is not None
    assert (found.parent, found.group, found.session) == (os.getpid(), child.pid, child.pid)
    assert found.start_ticks == start_ticks(child.pid)
    assert uid_of(child.pid) == os.geteuid()
    assert child.pid in {process.pid for process in processes()}


def test_a_zombie_is_nobody(child):
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_of(child.pid) is None
    assert start_ticks(child.pid) is None
    assert child.pid not in {process.pid for process in processes()}


def test_who_is_gone_has_no_start_and_no_owner(child):
    child.kill()
    child.wait()
    assert (start_ticks(child.pid), uid_of(child.pid)) == (None, None)


def test_what_cannot_be_read_just_now_is_not_gone(tmp_path: Path):
    (tmp_path / "7" / "stat").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        process_of(7, tmp_path)
    assert process_of(8, tmp_path) is None


def test_a_name_may_look_like_the_fields_that_follow_it(tmp_path: Path):
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "stat").write_text("7 (a) Z 1 (b) S 3" + 15 * " 0" + " 0 0 99")
    found = process_of(7, tmp_path)
    assert found is not None
    assert (found.parent, found.start_ticks) == (3, 99)


def test_a_grandchild_descends_and_a_stranger_does_not(child):
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        try:
            assert descends(grandchild, parent.pid)
            assert descends(grandchild, os.getpid())
            assert not descends(grandchild, child.pid)
        finally:
            os.kill(grandchild, 9)
