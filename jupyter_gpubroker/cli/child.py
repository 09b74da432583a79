"""The command of `gpubroker run` as a child: signals are passed on, its exit status becomes ours.

Signals are waited for, not handled: so it is known who sent one. The terminal sends Ctrl-C to the whole foreground group,
and the child must not get it a second time from us.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping

from .outcome import Ended

PASSED_ON = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
BY_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
SENT_BY_KERNEL = 0x80  # si_code SI_KERNEL
KILL_AFTER_S = 30.0
PR_SET_PDEATHSIG = 1
COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126


def run_child(
    command: tuple[str, ...], environment: Mapping[str, str], limit_s: float | None
) -> int:
    """Run `command` and return its exit status as a shell would; after `limit_s` it is ended, with time to save its work."""
    waited_for = PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        child = _spawn(command, environment, before)
        return _wait(child, waited_for, limit_s)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_command(command: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Raise Ended, as its start would, for a command that is not there or is no program, before anybody waits for a GPU."""
    path = environment.get("PATH", os.defpath)
    if shutil.which(command[0], path=path) is None:
        is_there = shutil.which(command[0], os.F_OK, path) is not None
        raise (
            _not_executable(command, "it may not be executed") if is_there else _not_found(command)
        )


def _spawn(
    command: tuple[str, ...], environment: Mapping[str, str], mask: set[int | signal.Signals]
) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        # The lease ends with us: a child that went on without us would be on somebody else's GPU.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        # We have one thread, so code between fork and exec is safe.
        return subprocess.Popen(command, env=environment, preexec_fn=prepare)  # noqa: PLW1509
    except FileNotFoundError as error:
        raise _not_found(command) from error
    except (OSError, ValueError) as error:
        raise _not_executable(command, str(error)) from error


def _not_found(command: tuple[str, ...]) -> Ended:
    detail = f"there is no command '{command[0]}'. Check its name, or give its full path."
    return Ended(COMMAND_NOT_FOUND, "command_not_found", detail)


def _not_executable(command: tuple[str, ...], why: str) -> Ended:
    detail = f"'{command[0]}' cannot be run ({why}). Is it an executable program?"
    return Ended(COMMAND_NOT_EXECUTABLE, "command_not_executable", detail)


def _wait(
    child: subprocess.Popen[bytes], waited_for: frozenset[signal.Signals], limit_s: float | None
) -> int:
    """Until the child has ended. The limit sends TERM first, then KILL after a grace."""
    next_limit_s = None if limit_s is None else time.monotonic() + limit_s
    next_signal = signal.SIGTERM
    while True:
        code = child.poll()
        if code is not None:
            return code if code >= 0 else 128 - code
        received = _next_signal(waited_for, next_limit_s)
        if received is None:
            child.send_signal(next_signal)
            next_signal, next_limit_s = signal.SIGKILL, time.monotonic() + KILL_AFTER_S
        elif received.si_signo != signal.SIGCHLD and not _child_has_it(received):
            child.send_signal(received.si_signo)


def _next_signal(
    waited_for: frozenset[signal.Signals], until_s: float | None
) -> signal.struct_siginfo | None:
    """The next signal, or None when the time is over."""
    if until_s is None:
        return signal.sigwaitinfo(waited_for)
    return signal.sigtimedwait(waited_for, max(0.0, until_s - time.monotonic()))


def _child_has_it(received: signal.struct_siginfo) -> bool:
    return received.si_signo in BY_TERMINAL and received.si_code == SENT_BY_KERNEL
