"""One running batch job: a process group of its own, its end, and how it is stopped.

The leader stays unreaped until its whole group is gone, so that the group's number cannot become another's between a look
and a signal. A job has ended when no process of its group is left; then its device is free as far as we can tell.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping

from ..processes import processes
from .spool import JobSpec

LEFTOVER_GRACE_S = 5.0  # for processes the leader left running when it ended by itself
GROUP_LOOK_S = 0.05
COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126


class CannotStart(Exception):
    """The command could not be started; `exit_status` is what a shell would say, the message is for the owner."""

    def __init__(self, sentence: str, exit_status: int) -> None:
        super().__init__(sentence)
        self.exit_status = exit_status


class Child:
    """A started job. Make it with `start`; `ended()` waits for the end of the whole group."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._kill_at_s: float | None = None  # on the monotonic clock, once a stop was asked for
        self._leader_ended = asyncio.Event()
        self._killer: asyncio.TimerHandle | None = None
        self._pidfd = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._note_leader_end)

    @classmethod
    async def start(
        cls, spec: JobSpec, environment: Mapping[str, str], stdout: int, stderr: int
    ) -> Child:
        """Start the command in a session of its own. Raises CannotStart."""
        try:
            # In a thread, since its folder may lie on a file server that hangs.
            process = await asyncio.to_thread(
                subprocess.Popen,
                spec.argv,
                cwd=spec.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                umask=spec.umask,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _cannot_start(spec, error) from error
        return cls(process)

    @property
    def pid(self) -> int:
        """The leader, whose number is also the group's."""
        return self._process.pid

    def stop(self, grace_s: float) -> None:
        """TERM to the group now and KILL when the grace is over. Later calls may only shorten the grace."""
        kill_at_s = time.monotonic() + grace_s
        if self._kill_at_s is None:
            self._signal_group(signal.SIGTERM)
        elif kill_at_s >= self._kill_at_s:
            return
        self._kill_at_s = kill_at_s
        if self._killer is not None:
            self._killer.cancel()
        self._killer = asyncio.get_running_loop().call_later(
            grace_s, self._signal_group, signal.SIGKILL
        )

    async def ended(self) -> int:
        """Wait until nobody of the group is left; the leader's exit status, negative for a signal."""
        await self._leader_ended.wait()
        while others_in_group(self.pid):
            if self._kill_at_s is None:
                self.stop(LEFTOVER_GRACE_S)
            await asyncio.sleep(GROUP_LOOK_S)
        if self._killer is not None:
            self._killer.cancel()
        return self._process.wait()

    def _note_leader_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._leader_ended.set()

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return  # reaped: the number may be another's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def others_in_group(group: int) -> list[int]:
    """Living processes of a process group other than its leader."""
    return [each.pid for each in processes() if each.group == group and each.pid != group]


def _cannot_start(spec: JobSpec, error: OSError | ValueError) -> CannotStart:
    command = spec.argv[0]
    if isinstance(error, OSError) and error.filename == spec.cwd:
        sentence = (
            f"the folder {spec.cwd} it was submitted from cannot be entered ({error.strerror})"
        )
        return CannotStart(
            f"gpubroker: the job was not started: {sentence}. Submit it again from a folder that exists.",
            COMMAND_NOT_FOUND,
        )
    if isinstance(error, FileNotFoundError):
        return CannotStart(
            f"gpubroker: the job was not started: there is no command '{command}' on its PATH. "
            "Submit it again with the command's full path.",
            COMMAND_NOT_FOUND,
        )
    return CannotStart(
        f"gpubroker: the job was not started: '{command}' cannot be run ({error}). Is it an executable program?",
        COMMAND_NOT_EXECUTABLE,
    )
