"""The command line as people use it, and the runner it starts, which a test must not leave behind.

with ended_runner(broker):
    job = submit(broker, "python", "train.py")
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from click.testing import CliRunner

from jupyter_gpubroker.cli import app
from jupyter_gpubroker.client import routes
from jupyter_gpubroker.runner.start import announced
from jupyter_gpubroker.wire.views import JobView
from tests.support.broker import RunningBroker

RUNNER_ENDS_S = 45


def argv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "jupyter_gpubroker.cli", *arguments]


def gpubroker(
    broker: RunningBroker, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in this process: an interpreter takes longer to start than most commands do to end."""
    result = CliRunner(env={**broker.environ, **environ}).invoke(
        app.gpubroker, arguments, prog_name="gpubroker"
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def gpubroker_process(
    broker: RunningBroker, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, for commands that start others and end as those do."""
    return subprocess.run(
        argv(*arguments),
        env={**broker.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def answer(broker: RunningBroker, *arguments: str) -> Any:
    """What a command that must succeed prints as JSON."""
    result = gpubroker(broker, *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def submit(broker: RunningBroker, *arguments: str, **environ: str) -> str:
    """Submit a job; its id."""
    result = gpubroker(broker, "submit", *arguments, **environ)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def job_in(broker: RunningBroker, job_id: str, *states: str) -> JobView:
    """The job, as soon as it is in one of the states."""
    for job in broker.client.watch(routes.JOB, job_id):
        if job.state in states:
            return job
    raise AssertionError("a watch never ends")


@contextlib.contextmanager
def ended_runner(broker: RunningBroker) -> Iterator[None]:
    """Afterwards the runner of this test has ended; what it ran was asked to end first."""
    try:
        yield
    finally:
        runner = announced(broker.places.runtime)
        if runner is not None:
            end(runner.pid)


def end(pid: int) -> None:
    """Ask a process that is not our child to end, and see it gone."""
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        assert select.select([pidfd], [], [], RUNNER_ENDS_S)[0], f"process {pid} does not end"
        os.close(pidfd)
