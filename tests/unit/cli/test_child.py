"""The command of `gpubroker run`: its status is ours, signals reach it, limits end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jupyter_gpubroker.cli import child
from jupyter_gpubroker.cli.outcome import Ended

RUN = """
import sys
from jupyter_gpubroker.cli.child import run_child
import os
sys.exit(run_child(tuple(sys.argv[1:]), dict(os.environ), None))
"""
# Says that it is ready, then reports the signal that ends it.
TELLS = """
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: (print(signal.Signals(number).name, flush=True), sys.exit(7)))
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    ("code", "status"),
    [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -9 $$", 137)],
)
def test_its_exit_status_is_what_a_shell_would_say(code, status):
    assert child.run_child(("sh", "-c", code), os.environ, None) == status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_sent_to_us_alone_reaches_it(number):
    with subprocess.Popen(
        [sys.executable, "-c", RUN, sys.executable, "-c", TELLS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.name}\n"
        assert process.wait() == 7


def test_it_is_told_to_end_when_we_are_killed():
    with subprocess.Popen(
        [sys.executable, "-c", RUN, sys.executable, "-c", TELLS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.read() == "SIGTERM\n"


def test_signals_are_not_blocked_in_it():
    code = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    output = subprocess.run(
        [sys.executable, "-c", RUN, sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert output == "[]\n"


def test_when_the_time_is_over_it_is_asked_to_end():
    code = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); signal.pause()"
    )
    assert child.run_child((sys.executable, "-c", code), os.environ, 0.5) == 9


def test_one_that_does_not_end_when_asked_is_killed(monkeypatch):
    monkeypatch.setattr(child, "KILL_AFTER_S", 0.1)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    assert child.run_child((sys.executable, "-c", code), os.environ, 0.5) == 128 + signal.SIGKILL


def test_a_command_that_does_not_exist_is_said(tmp_path):
    with pytest.raises(Ended, match="no command 'no-such-thing'") as ended:
        child.run_child(("no-such-thing",), os.environ, None)
    assert ended.value.exit_code == 127


def test_a_file_that_is_no_program_is_said(tmp_path):
    (tmp_path / "data").write_text("no program")
    with pytest.raises(Ended, match="cannot be run") as ended:
        child.run_child((str(tmp_path / "data"),), os.environ, None)
    assert ended.value.exit_code == 126


def test_our_own_signals_are_as_they_were_afterwards():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    child.run_child(("true",), os.environ, None)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_ctrl_c_at_the_terminal_reaches_it_once():
    counts = (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "print('ready', flush=True)\n"
        "signal.sigwait([signal.SIGINT])\n"
        "print('twice' if signal.sigtimedwait([signal.SIGINT], 0.5) else 'once', flush=True)\n"
    )
    in_terminal = "import pty, sys; pty.spawn(sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        in_terminal,
        sys.executable,
        "-c",
        RUN,
        sys.executable,
        "-c",
        counts,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\r\n"
        process.stdin.write(b"\x03")
        process.stdin.flush()
        assert process.stdout.readline().removeprefix(b"^C") == b"once\r\n"
