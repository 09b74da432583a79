"""Batch jobs with everything real: submitted from a terminal, started by the runner, stopped when they must."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.runner.start import announced
from tests.conftest import Folders
from tests.support.broker import Holder, RunningBroker, running_broker
from tests.support.command_line import answer, argv, ended_runner, gpubroker, job_in, submit

POLICY = '[limits]\njob_grace = "1s"\n'
SHOWS = "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))"
SAVES = """
import signal, sys
def save(*_):
    print("saved", flush=True)
    sys.exit(12)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
signal.pause()
"""

IGNORES = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def broker_and_runner() -> Iterator[RunningBroker]:
    with running_broker("1xH200", policy=POLICY) as running, ended_runner(running):
        yield running


@pytest.fixture(scope="module")
def shared_broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with broker_and_runner() as running:
        yield running


@pytest.fixture
def broker(shared_broker: RunningBroker) -> RunningBroker:
    """The one broker, its slot free and nobody in line."""
    shared_broker.until_free(1)
    return shared_broker


@pytest.fixture
def own_broker(folders: Folders) -> Iterator[RunningBroker]:
    """Without a runner yet."""
    with broker_and_runner() as running:
        yield running


def output(broker: RunningBroker, job_id: str) -> str:
    return (broker.places.state / "jobs" / job_id / "stdout.log").read_text()


def test_a_job_runs_where_and_as_it_was_submitted_with_its_slot(broker: RunningBroker) -> None:
    marked = {"GPUBROKER_SESSION": "f" * 32, "GPUBROKER_FIRST_USE": "auto", "COLOUR": "blue"}
    job_id = submit(broker, "--name", "shows", "--", sys.executable, "-c", SHOWS, **marked)
    job = job_in(broker, job_id, "ended")
    assert (job.outcome, job.exit_status, job.name) == ("finished", 0, "shows")
    seen, folder = json.loads(output(broker, job_id))
    (gpu,) = broker.client.call(routes.GPUS).gpus
    assert folder == str(Path.cwd())
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["GPUBROKER_JOB"], seen["COLOUR"]) == (
        gpu.uuid,
        job_id,
        "blue",
    )
    assert "GPUBROKER_SESSION" not in seen
    assert list((broker.places.state / "spool").iterdir()) == []


def test_the_runner_has_no_mark_of_the_notebook_it_was_started_from(
    own_broker: RunningBroker,
) -> None:
    submit(
        own_broker,
        "--",
        "true",
        GPUBROKER_SESSION="f" * 32,
        CUDA_VISIBLE_DEVICES="GPU-x",
        COLOUR="blue",
    )
    runner = announced(own_broker.places.runtime)
    assert runner is not None
    environ = Path(f"/proc/{runner.pid}/environ").read_text()
    assert "GPUBROKER_SESSION" not in environ
    assert "CUDA_VISIBLE_DEVICES" not in environ
    assert "COLOUR" not in environ


def test_jobs_share_one_runner_and_wait_their_turn(broker: RunningBroker) -> None:
    first = submit(broker, "--", sys.executable, "-c", SAVES)
    job_in(broker, first, "running")
    runner = announced(broker.places.runtime)
    second = submit(broker, "--", "true")
    assert announced(broker.places.runtime) == runner
    assert job_in(broker, second, "queued").place == 1
    gpubroker(broker, "cancel", first)
    assert job_in(broker, second, "ended").outcome == "finished"


def test_a_cancelled_job_may_save_its_work(broker: RunningBroker) -> None:
    job_id = submit(broker, "--", sys.executable, "-c", SAVES)
    job_in(broker, job_id, "running")
    assert has_written(broker, "ready", job_id)
    assert answer(broker, "cancel", job_id[:8], "--json")["state"] in {"stopping", "ended"}
    job = job_in(broker, job_id, "ended")
    assert (job.outcome, job.exit_status) == ("cancelled", 12)
    assert output(broker, job_id) == "ready\nsaved\n"


def has_written(broker: RunningBroker, text: str, job_id: str) -> bool:
    """Wait until the job has written `text`; seen by `logs -f`, as a person would."""
    command = argv("logs", "-f", job_id)
    with subprocess.Popen(
        command, env=dict(broker.environ), stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        found = any(text in line for line in following.stdout)
        following.terminate()
    return found


def test_a_job_that_does_not_end_when_asked_is_killed_when_the_grace_is_over(
    broker: RunningBroker,
) -> None:
    job_id = submit(broker, "--", sys.executable, "-c", IGNORES)
    job_in(broker, job_id, "running")
    assert has_written(broker, "ready", job_id)
    asked_s = time.monotonic()
    gpubroker(broker, "cancel", job_id)
    job = job_in(broker, job_id, "ended")
    assert job.exit_status == -signal.SIGKILL
    assert time.monotonic() - asked_s >= 1.0


def test_a_time_limit_stops_the_job(broker: RunningBroker) -> None:
    job_id = submit(broker, "--time", "1s", "--", "sleep", "600")
    job = job_in(broker, job_id, "ended")
    assert (job.outcome, job.exit_status) == ("timed_out", -signal.SIGTERM)


def test_the_exit_status_is_kept_and_a_missing_command_is_said(broker: RunningBroker) -> None:
    ends = {"exit 0": ("finished", 0), "exit 3": ("failed", 3), "kill -SEGV $$": ("failed", -11)}
    submitted = {code: submit(broker, "--", "sh", "-c", code) for code in ends}
    missing = submit(broker, "--", "no-such-command")
    seen = {code: job_in(broker, job_id, "ended") for code, job_id in submitted.items()}
    assert {code: (job.outcome, job.exit_status) for code, job in seen.items()} == ends
    assert job_in(broker, missing, "ended").exit_status == 127
    assert "no command 'no-such-command'" in gpubroker(broker, "logs", missing).stderr


def test_logs_follow_the_job_to_its_end(broker: RunningBroker) -> None:
    code = "import sys; print('one'); print('two', file=sys.stderr); print('three')"
    job_id = submit(broker, "--", sys.executable, "-c", code)
    followed = gpubroker(broker, "logs", "-f", job_id)
    assert (followed.stdout, followed.stderr) == ("one\nthree\n", "two\n")
    lines = gpubroker(broker, "logs", "--json", job_id).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"stream": "stdout", "text": "one\nthree\n"},
        {"stream": "stderr", "text": "two\n"},
    ]


def test_a_job_lives_through_the_death_of_the_broker_and_its_end_is_told_to_the_next(
    broker: RunningBroker,
) -> None:
    job_id = submit(broker, "--", sys.executable, "-c", SAVES)
    running = job_in(broker, job_id, "running")
    assert has_written(broker, "ready", job_id)
    broker.kill()
    broker.start()
    again = job_in(broker, job_id, "running")
    assert (again.pid, again.attempt) == (running.pid, 1)
    assert again.lease is not None
    assert again.lease.state == "active"
    gpubroker(broker, "cancel", job_id)
    assert job_in(broker, job_id, "ended").exit_status == 12


def test_the_jobs_of_a_killed_runner_are_not_thought_to_run(broker: RunningBroker) -> None:
    running = submit(broker, "--", "sleep", "600")
    waiting = submit(broker, "--", "true")
    pid = job_in(broker, running, "running").pid
    runner = announced(broker.places.runtime)
    assert runner is not None
    assert pid is not None
    os.kill(runner.pid, signal.SIGKILL)
    assert job_in(broker, waiting, "ended").outcome != "finished"
    os.killpg(pid, signal.SIGKILL)
    assert job_in(broker, running, "ended").outcome == "lost"
    job = job_in(broker, submit(broker, "--", "true"), "ended")
    assert job.outcome == "finished"


def test_a_job_and_a_notebook_wait_in_one_line(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        holder.acquire()
        job_id = submit(broker, "--", "true")
        assert job_in(broker, job_id, "queued").place == 1
        holder.kill()
        assert job_in(broker, job_id, "ended").outcome == "finished"
