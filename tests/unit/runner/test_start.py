"""One runner per user: who may start, who is found, and that none ends while somebody submits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jupyter_gpubroker.runner import start
from jupyter_gpubroker.runner.start import Announcement, RunnerDown, RunnerLock

RUNNER = Announcement("a" * 32, os.getpid(), "unix:///run/broker.sock")


def test_only_one_runner_has_the_lock(folders):
    lock = RunnerLock.take(folders.runtime)
    assert lock is not None
    assert RunnerLock.take(folders.runtime) is None
    lock.release()
    again = RunnerLock.take(folders.runtime)
    assert again is not None
    again.release()


def test_a_runner_is_found_once_it_says_who_it_is_and_until_it_is_gone(folders):
    assert start.announced(folders.runtime) is None
    lock = RunnerLock.take(folders.runtime)
    assert lock is not None
    assert start.announced(folders.runtime) is None
    lock.announce(RUNNER)
    assert start.announced(folders.runtime) == RUNNER
    assert start.take_or_find(folders.runtime) == RUNNER
    lock.release()
    assert start.announced(folders.runtime) is None


def test_what_a_killed_runner_left_behind_is_not_believed(folders):
    code = (
        "import os, sys, pathlib\n"
        "from jupyter_gpubroker.runner.start import Announcement, RunnerLock\n"
        "lock = RunnerLock.take(pathlib.Path(sys.argv[1]))\n"
        "lock.announce(Announcement('b' * 32, os.getpid(), 'unix:///x'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folders.runtime)], check=False)
    assert (folders.runtime / "runner.lock").read_bytes() != b""
    assert start.announced(folders.runtime) is None
    lock = start.take_or_find(folders.runtime)
    assert isinstance(lock, RunnerLock)
    lock.release()


def test_a_runner_does_not_end_while_somebody_submits(folders):
    with (
        start.submitting(folders.runtime),
        start.submitting(folders.runtime),
        start.nobody_submits(folders.runtime) as is_alone,
    ):
        assert not is_alone
    with start.nobody_submits(folders.runtime) as is_alone:
        assert is_alone


def test_the_runner_of_another_broker_is_not_given_jobs(folders):
    lock = RunnerLock.take(folders.runtime)
    assert lock is not None
    lock.announce(RUNNER)
    assert (
        start.ensure_runner(folders.runtime, folders.state / "log", RUNNER.url, {})
        == RUNNER.session_id
    )
    with pytest.raises(RunnerDown, match="same GPUBROKER_URL"):
        start.ensure_runner(folders.runtime, folders.state / "log", "unix:///other.sock", {})
    lock.release()


def test_a_runner_that_does_not_start_is_told_with_where_its_reasons_are(folders):
    log = folders.state / "runner.log"
    environment = {
        "PATH": os.environ["PATH"],
        "XDG_RUNTIME_DIR": str(folders.runtime),
        "XDG_STATE_HOME": str(folders.state),
    }
    with pytest.raises(RunnerDown, match=str(log)):
        start.ensure_runner(folders.runtime, log, "unix:///no/such/broker.sock", environment)
    assert "does not answer" in log.read_text()
