"""The command line as a whole: fast to start, complete in its help, and with one sentence for each failure."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner, Result

from jupyter_gpubroker.cli.app import COMMANDS, gpubroker
from jupyter_gpubroker.cli.outcome import Command, Ended, Exit
from jupyter_gpubroker.client import BrokerDown, BrokerError, PlaceRefused
from jupyter_gpubroker.runner.start import RunnerDown
from jupyter_gpubroker.wire.views import Problem


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(gpubroker, arguments)


def test_the_help_imports_no_command_and_nothing_heavy():
    code = (
        "import sys\n"
        "from jupyter_gpubroker.cli import main\n"
        "sys.argv = ['gpubroker', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('httpx', 'msgspec', 'rich', 'asyncio', 'jupyter_gpubroker.cli.run') if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines()[-1] == "[]"


def test_the_help_names_every_command_and_the_exit_codes():
    result = invoke("--help")
    assert result.exit_code == Exit.OK
    assert all(f"  {name} " in result.output for name in COMMANDS)
    assert "waited in vain" in result.output


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"broker", "admin"}])
def test_every_command_has_json_and_tells_the_exit_codes(name):
    result = invoke(name, "--help")
    assert result.exit_code == Exit.OK
    assert "--json" in result.output
    assert "Exit codes" in result.output


def test_an_unknown_command_is_wrong_usage():
    result = invoke("dance")
    assert result.exit_code == Exit.USAGE
    assert "No such command 'dance'" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--for", "-1h", "--", "true"), "negative"),
        (("run", "--wait", "10", "--", "true"), "no unit"),
        (("run", "--gpus", "0", "--", "true"), "from 1 to 1024"),
        (("run", "--slice", "big", "--", "true"), "gpubroker gpus"),
        (("run", "--slice", "1g.18gb", "--memory", "20G", "--", "true"), "exclude each other"),
        (("run", "--wait", "1m", "--no-wait", "--", "true"), "exclude each other"),
        (("submit", "--time", "0s", "--", "true"), "not between 1 s"),
        (("submit", "--memory", "20", "--", "true"), "no unit"),
        (("run",), "Missing argument"),
    ],
)
def test_bad_input_gets_one_sentence_and_reaches_nobody(arguments, said, folders):
    result = invoke(*arguments)
    assert result.exit_code == Exit.USAGE
    assert said in result.output
    assert list(folders.runtime.iterdir()) == []


def failing_with(error: Exception) -> click.Command:
    @click.command(cls=Command)
    @click.option("--json", "as_json", is_flag=True)
    def command(as_json: bool) -> None:
        raise error

    return command


def problem(status: int) -> Problem:
    return Problem(
        status, "no_such_slice", "No such slice", "There is no such slice. Ask for another.", "", {}
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokerError(problem(422)), Exit.REFUSED),
        (BrokerError(problem(500)), Exit.FAILED),
        (BrokerDown("No broker answers."), Exit.BROKER_DOWN),
        (RunnerDown("No runner."), Exit.BROKER_DOWN),
        (PlaceRefused("Too long."), Exit.BROKER_DOWN),
        (Ended(Exit.WAITED_IN_VAIN, "expired", "Nothing came free."), Exit.WAITED_IN_VAIN),
    ],
)
def test_each_failure_has_its_exit_code_and_one_sentence(error, code):
    result = CliRunner().invoke(failing_with(error), [])
    assert result.exit_code == code
    assert result.stderr == f"gpubroker: {error}\n"
    assert result.stdout == ""


def test_with_json_a_failure_is_an_object_on_standard_output():
    result = CliRunner().invoke(failing_with(BrokerError(problem(422))), ["--json"])
    assert json.loads(result.stdout) == {
        "error": {"code": "no_such_slice", "detail": "There is no such slice. Ask for another."}
    }


def test_a_bug_of_ours_is_not_taken_for_a_refusal():
    result = CliRunner().invoke(failing_with(ZeroDivisionError("bug")), [])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize("command", ["run", "submit"])
@pytest.mark.parametrize("option", ["--time", "--for"])
def test_how_long_is_said_in_the_same_words_to_run_and_submit(command, option):
    result = invoke(command, option, "soon", "--", "true")
    assert result.exit_code == Exit.USAGE
    assert "Invalid value for '--time' / '--for'" in result.stderr


@pytest.mark.usefixtures("folders")
def test_what_the_variable_switched_off_is_not_said_to_be_on(monkeypatch):
    invoke("off")
    monkeypatch.setenv("GPUBROKER", "off")
    told = invoke("on")
    assert told.exit_code == 0
    assert "unset GPUBROKER" in told.stdout
    assert json.loads(invoke("on", "--json").stdout) == {"off": True}
    monkeypatch.delenv("GPUBROKER")
    assert invoke("on").stdout == "gpubroker is on for what you start from now on.\n"
