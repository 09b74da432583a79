"""The whole in a shell without a kernel: loading, `%gpu`, the Python names; and what it costs to have it."""

from __future__ import annotations

import atexit
import json
import os
import pdb  # noqa: T100 - whose prompt is looked at
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import gpubroker
from gpubroker import cuda_state, render, runtime
from gpubroker.errors import Interrupted, Refused, Unavailable
from tests.conftest import Folders
from tests.unit.kernel.double import SESSION, DoubleBroker, lease, reason, request, stand_in

KERNEL_PATH = str(Path(gpubroker.__file__).parents[1])


class Shell:
    """An IPython shell in this process, with our extension in it."""

    def __init__(self, ipython: InteractiveShell) -> None:
        self.ipython = ipython

    def run(self, cell: str) -> str:
        """What the cell printed; a cell that fails fails the test."""
        with capture_output() as captured:
            result = self.ipython.run_cell(cell)
        assert result.success, captured.stdout + captured.stderr
        return str(captured.stdout)

    def fail(self, cell: str) -> str:
        """What a cell that fails showed."""
        with capture_output() as captured:
            result = self.ipython.run_cell(cell)
        assert not result.success
        return str(captured.stdout + captured.stderr)


@pytest.fixture
def shell(
    double: DoubleBroker, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("GPUBROKER_SESSION", SESSION)
    monkeypatch.setenv("GPUBROKER_URL", double.url)
    monkeypatch.setenv("GPUBROKER_FIRST_USE", "auto")
    monkeypatch.delenv("GPUBROKER_HOLDER", raising=False)
    config = Config({"HistoryManager": {"enabled": False}})
    ipython = InteractiveShell.instance(config=config)
    extensions = stand_in(ipython.extension_manager)
    extensions.load_extension("gpubroker")
    link = runtime.current().link._thread
    yield Shell(ipython)
    extensions.unload_extension("gpubroker")
    with double.changed():
        double.leases = []
    link.join(10)
    atexit.unregister(ipython.atexit_operations)
    ipython.atexit_operations()
    InteractiveShell.clear_instance()
    del os.environ["GPUBROKER_HOLDER"]


def grants(double: DoubleBroker, **fields: Any) -> None:
    """Whoever asks gets it."""

    def grant(request_id: str) -> dict[str, Any]:
        double.leases = [lease(request_id, **fields)]
        double._version += 1
        granted = lease(request_id, state="granted", **fields)
        return request(request_id, state="granted", lease=granted)

    double.on_request = grant


def test_a_gpu_is_asked_for_and_released(shell: Shell, double: DoubleBroker) -> None:
    grants(double)
    said = shell.run("%gpu request 1 --model h200 --for 2h --wait 10m")
    assert said.startswith("H200 140 GiB (simulated) is yours.")
    asked = double.bodies(double.paths("PUT")[-1])[0]
    assert asked["spec"] == {"count": 1, "model": "h200"}
    assert (asked["wait_ms"], asked["duration_ms"]) == (600_000, 7_200_000)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert "went back" in shell.run("%gpu release")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_refusal_is_shown_as_its_sentence_alone(shell: Shell, double: DoubleBroker) -> None:
    double.refusal = (422, {"code": "x", "detail": "There is none. Ask for less."})
    assert shell.fail("%gpu request").strip() == "There is none. Ask for less."
    assert (
        shell.fail("import gpubroker; gpubroker.request()").strip()
        == "There is none. Ask for less."
    )


def test_an_interrupt_is_shown_as_its_sentence_alone(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise Interrupted("You left the line.")

    monkeypatch.setattr(runtime.current(), "request", interrupted)
    assert shell.fail("%gpu request").strip() == "You left the line."


def test_more_than_is_held_is_not_silently_less(shell: Shell, double: DoubleBroker) -> None:
    grants(double)
    shell.run("%gpu request")
    assert "hold" in shell.run("%gpu request")
    assert "less than you ask for" in shell.fail("%gpu request 2")


def test_a_with_block_keeps_what_was_held_before(shell: Shell, double: DoubleBroker) -> None:
    grants(double)
    shell.run("import gpubroker\n%gpu request")
    assert "H200" in shell.run("with gpubroker.lease() as held: print(held)")
    assert double.bodies(":release") == []
    with double.changed():
        double.leases = []
    shell.run("with gpubroker.lease() as got: pass")
    assert len(double.bodies(":release")) == 1


def test_a_live_context_is_asked_about(
    shell: Shell, double: DoubleBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants(double)
    shell.run("%gpu request")
    state = cuda_state.CudaState(cuda_state.CONTEXT, has_context=True)
    monkeypatch.setattr(cuda_state, "look", lambda: state)
    monkeypatch.setattr("builtins.input", lambda _prompt: "")
    said = shell.run("%gpu release")
    assert "--park" not in said
    assert "Not possible (parked, its memory waits on the host)" in said
    assert "Nothing was done" in said
    assert "CUDA keeps hold of the GPU" in shell.fail("import gpubroker; gpubroker.release()")
    assert double.bodies(":release") == []


def test_the_restart_tells_its_losses_and_asks(
    shell: Shell, double: DoubleBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants(double)
    shell.run("%gpu request\nimport threading\nlock = threading.Lock()\nx = 1")
    monkeypatch.setattr("builtins.input", lambda _prompt: "n")
    said = shell.run("%gpu release --restart")
    assert "keeps: x" in said
    assert "loses lock" in said
    assert "Nothing was done" in said
    assert "agree" in shell.run("%gpu policy --restart yes")
    assert runtime.current().offers.consents
    assert "by hand" in shell.fail("%gpu restart")


def test_the_user_may_ask_why(shell: Shell, double: DoubleBroker) -> None:
    assert "asked for none" in shell.run("%gpu why")


@pytest.mark.parametrize("debugger", ["pdb", "IPython.core.debugger"])
def test_the_magic_works_at_a_debuggers_prompt(
    shell: Shell, double: DoubleBroker, monkeypatch: pytest.MonkeyPatch, debugger: str
) -> None:
    grants(double)
    shell.run("%gpu request")
    typed = iter(["%gpu keep 30m", "%gpu kep", "here + 41", "c"])
    monkeypatch.setattr("builtins.input", lambda _prompt: next(typed))
    said = shell.run(
        f"import {debugger}\ndef stop(here):\n    {debugger}.Pdb().set_trace()\n    return here\nstop(1)"
    )
    assert "It is held." in said
    assert "did you mean keep?" in said
    assert "42" in said
    assert double.bodies(":keep") == [{"keep_ms": 1_800_000}]


def test_why_tells_of_what_was_refused_last(shell: Shell, double: DoubleBroker) -> None:
    double.refusal = (422, {"code": "no_gpu", "detail": "There is none."})
    shell.fail("%gpu request")
    asked = double.paths("PUT")[-1].rpartition("/")[2]
    double.refusal = None
    double.last_lease = lease(state="cleared", sentence="It went back.")
    assert "It is so." in shell.run("%gpu why")
    assert double.paths("GET")[-1] == f"/v1/requests/{asked}/why"


def test_a_kernel_is_told_what_became_of_its_predecessors_gpu(
    shell: Shell, double: DoubleBroker
) -> None:
    double.last_lease = lease(state="cleared", sentence="It went back.", ended_ago_ms=90_000)
    said = shell.run("%gpu")
    assert said.startswith("It went back. (1 min 30 s ago)\nThis kernel holds no GPU")
    shell.run("%gpu why")
    assert double.paths("GET")[-1] == f"/v1/leases/{'a' * 32}/why"


def test_the_rules_that_apply_are_told_with_their_numbers(
    shell: Shell, double: DoubleBroker
) -> None:
    said = shell.run("%gpu policy")
    assert said.startswith("The rules `gentle` apply: Idle for 30 min.")
    assert "balanced" not in said


def test_of_a_gpu_that_came_through_another_queue_its_own_rules_are_told(
    shell: Shell, double: DoubleBroker
) -> None:
    grants(double, queue="quickstart")
    shell.run("%gpu request 1 --queue quickstart")
    said = shell.run("%gpu policy")
    assert said.startswith("The rules `balanced` apply: Idle for 20 min.")
    assert "gentle" not in said


def test_where_nobody_could_be_asked_the_next_first_use_asks_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Exception] = [Unavailable("Nobody is there."), Refused("There is none.")]
    monkeypatch.setattr(
        runtime.current(), "request", lambda _: (_ for _ in ()).throw(answers.pop(0))
    )
    starts = runtime.current().first_use.library_starts
    monkeypatch.setattr(runtime.current().first_use, "in_cell", True)
    with capture_output() as captured:
        starts("torch")
        starts("jax")
        starts("cupy")
    assert "torch is imported without a GPU" in captured.stdout
    assert "jax is imported without a GPU" in captured.stdout
    assert "cupy" not in captured.stdout


def test_loading_twice_changes_nothing(shell: Shell) -> None:
    before = runtime.current()
    gpubroker.load_ipython_extension(shell.ipython)
    assert runtime.current() is before


def test_unloading_leaves_no_trace(shell: Shell) -> None:
    stand_in(shell.ipython.extension_manager).unload_extension("gpubroker")
    assert type(os.environ).__name__ == "_Environ"
    assert not [
        finder for finder in sys.meta_path if type(finder).__module__.startswith("gpubroker")
    ]
    assert shell.ipython.ast_transformers == []
    assert shell.ipython.find_line_magic("gpu") is None
    assert pdb.Pdb.default.__module__ == "pdb"
    stand_in(shell.ipython.extension_manager).load_extension("gpubroker")


def test_the_doctor_names_what_is_wrong(shell: Shell, double: DoubleBroker) -> None:
    shell.run("import gpubroker")
    runtime.current().devices.uninstall()
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    found = {check.name: check for check in __import__("gpubroker.checks").checks.checks()}
    assert not found["variable"].ok
    assert found["link"].ok
    assert not found["hooks"].ok  # a plain shell has no prompts to hold


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "borrows no GPUs"),
        ({"GPUBROKER": "off"}, "unset GPUBROKER"),
        ({"GPUBROKER_JOB": "1"}, "keeps the devices of the job"),
    ],
)
def test_importing_the_name_makes_the_magic_known_where_nobody_prepared_the_kernel(
    environ: dict[str, str], told: str
) -> None:
    script = (
        "from IPython.core.interactiveshell import InteractiveShell as Shell\n"
        "shell = Shell.instance()\n"
        "print(shell.run_cell('import gpubroker\\n%gpu request').success)\n"
        "print(shell.run_cell('%%gpu cpu\\n6 * 7').result)"
    )
    said = output_of(script, environ)
    assert told in said
    assert said.split()[-1] == "42"
    assert "False" not in said


def test_names_that_do_not_exist_are_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'requst'"):
        _ = gpubroker.requst
    assert "request" in dir(gpubroker)
    for name in gpubroker.__all__:
        assert getattr(gpubroker, name) is not None


# --- text ------------------------------------------------------------------------------------------


def test_what_a_lease_is_of() -> None:
    assert render.what(lease()) == "H200 140 GiB (simulated)"
    several = lease(models=["A100", "A100"], memory_mib=163_840, simulated=False)
    assert render.what(several) == "2 x A100 80 GiB"
    assert render.granted(several).startswith("2 x A100 80 GiB are yours. They stay yours ")
    part = lease(profiles=["1g.18gb"], memory_mib=18_432, simulated=False)
    assert render.what(part) == "1g.18gb of H200 18 GiB"


def test_why_gives_the_sentence_the_numbers_and_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    step = {"at": "2030-01-01T10:00:00.123Z", "event": "LeaseGranted", "reason": reason("g")}
    view = {
        "sentence": "It is held.",
        "numbers": {"held_for_ms": 61_000, "keeps_left": 2, "verdict": "idle", "limit_ms": None},
        "story": [step, step, {**step, "reason": reason("r", "Somebody waited.")}],
    }
    lines = render.why(view).splitlines()
    assert lines[:2] == ["It is held.", "In numbers: held for 1 min 1 s, 2 more keeps possible."]
    assert [line.split("  ", 2)[2] for line in lines[2:]] == ["So it is.", "Somebody waited."]


def test_the_line_shows_no_names_of_others() -> None:
    mine = {"place": 1, "mine": True, "name": "a.ipynb", "what": "1 GPU", "waited_ms": 60_000}
    other = {**mine, "place": 2, "mine": False, "name": None}
    text = render.queue({"waiting": [mine, other], "free_slots": 0, "slots": 2})
    assert (
        text
        == "1. you: a.ipynb 1 GPU, waiting 1 min\n2. somebody: 1 GPU, waiting 1 min\n0 of 2 are free."
    )


# --- what it costs ---------------------------------------------------------------------------------


def output_of(script: str, environ: dict[str, str] | None = None) -> str:
    """What a new process with our name on its path prints."""
    home = {"IPYTHONDIR": os.environ["IPYTHONDIR"], "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": KERNEL_PATH, **home, **(environ or {})},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def modules_after(statement: str) -> set[str]:
    script = f"import json, sys; before = set(sys.modules); {statement}; print(json.dumps(sorted(set(sys.modules) - before)))"
    return set(json.loads(output_of(script)))


def test_importing_the_name_loads_next_to_nothing() -> None:
    loaded = modules_after("import gpubroker")
    ours = {name for name in loaded if name.startswith("gpubroker")}
    assert ours == {"gpubroker", "gpubroker.callbacks", "gpubroker.errors"}
    assert loaded.isdisjoint({"asyncio", "http.client", "IPython", "ssl", "ctypes", "logging"})


def test_what_a_kernel_loads_is_what_it_has_anyway() -> None:
    """ipykernel has loaded these long before; nothing else may slow a kernel's start."""
    loaded = modules_after(
        "import asyncio, ctypes, pickle, difflib, shlex, html, calendar, shutil, subprocess, tempfile, pdb;"
        "import __future__; before = set(sys.modules); import gpubroker.extension"
    )
    allowed = {name for name in loaded if name.startswith("gpubroker")}
    assert loaded == allowed
    assert "gpubroker.simulated" not in loaded
    assert "gpubroker.spanish" not in loaded


def test_refusals_are_ordinary_exceptions() -> None:
    error = Refused("No.", "code", {"a": 1}, 409)
    assert (str(error), error.code, error.values, error.status) == ("No.", "code", {"a": 1}, 409)
