"""The broker learns what the main thread of a kernel really does, whatever Jupyter's own state says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_gpubroker.server.tap import V1
from tests.conftest import Folders
from tests.integration.server.jupyter import JupyterServer, Kernel, running_server
from tests.support.broker import running_broker

CELL = "def f(n):\n    a = n\n    b = a + 1\n    return b\nf(1)\n"


@pytest.fixture(scope="module")
def server(module_folders: Folders) -> Iterator[JupyterServer]:
    """One for all tests here: they change nothing but their kernel."""
    plain = "--GPUBrokerProvisioner.first_use=none"
    with (
        running_broker("1xH200") as broker,
        running_server(broker, module_folders.root, plain) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def kernel(server: JupyterServer) -> Kernel:
    """One for the tests that leave it as they found it."""
    return server.start_kernel()


@pytest.fixture
def own_kernel(server: JupyterServer) -> Iterator[Kernel]:
    made = server.start_kernel()
    yield made
    made.delete()


@pytest.mark.parametrize("protocol", [V1, None], ids=["v1", "legacy"])
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("input('name? ')", "x"),
        ("import pdb\ndef f():\n    pdb.set_trace()\n    return 1\nf()", "c"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    import pdb; pdb.post_mortem()", "q"),
    ],
    ids=["input", "pdb", "post_mortem"],
)
def test_a_prompt_is_input_and_its_answer_ends_it(
    kernel: Kernel, code: str, answer: str, protocol: str | None
) -> None:
    with kernel.front_end(protocol) as page:
        page.execute(code)
        page.wait_for("input_request")
        kernel.until_activity("input")
        page.answer(answer)
        page.execute("import time; time.sleep(60)")
        kernel.until_activity("running")
        kernel.server.http.post(f"/api/kernels/{kernel.id}/interrupt").raise_for_status()
        kernel.until_activity("idle")


def test_the_magic_debug_waits_for_input(kernel: Kernel) -> None:
    with kernel.front_end() as page:
        page.wait_for("status", page.execute("1 / 0"), execution_state="idle")
        page.execute("%debug")
        page.wait_for("input_request")
        kernel.until_activity("input")
        page.answer("q")
        kernel.until_activity("idle")


def test_a_breakpoint_is_debugger_while_stepping_too(own_kernel: Kernel) -> None:
    with own_kernel.front_end() as page:
        page.debug("initialize", clientID="test", adapterID="", pathFormat="path")
        page.debug("attach")
        path = page.debug("dumpCell", code=CELL)["body"]["sourcePath"]
        page.debug("setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}])
        page.debug("configurationDone")
        own_kernel.until_activity("idle")

        request = page.execute(CELL)
        stopped = page.wait_for("debug_event", event="stopped")["content"]["body"]
        own_kernel.until_activity("debugger")
        page.debug("debugInfo")
        page.send("control", "debug_request", debug_request("next", stopped["threadId"]))
        page.wait_for("debug_event", event="stopped")
        own_kernel.until_activity("debugger")

        page.send("control", "debug_request", debug_request("continue", stopped["threadId"]))
        page.wait_for("status", request, execution_state="idle")
        own_kernel.until_activity("idle")


def debug_request(command: str, thread: int) -> dict[str, object]:
    return {"type": "request", "command": command, "seq": 9, "arguments": {"threadId": thread}}


def test_a_widget_that_moves_in_a_subshell_does_not_end_the_running_cell(
    own_kernel: Kernel,
) -> None:
    with own_kernel.front_end() as page:
        page.send("control", "create_subshell_request", {})
        subshell = page.wait_for("create_subshell_reply")["content"]["subshell_id"]
        page.execute("import time; time.sleep(60)")
        own_kernel.until_activity("running")
        moved = page.send("shell", "comm_info_request", {}, subshell_id=subshell)
        page.wait_for("status", moved, execution_state="idle")
        other = page.execute("1 + 1", subshell_id=subshell)
        page.wait_for("status", other, execution_state="idle")

        jupyter_says = own_kernel.server.http.get(f"/api/kernels/{own_kernel.id}").json()
        assert jupyter_says["execution_state"] == "idle", "the trap is still there"
        marker = page.execute("'after'")
        assert own_kernel.session().activity == "running"
        own_kernel.server.http.post(f"/api/kernels/{own_kernel.id}/interrupt").raise_for_status()
        page.wait_for("status", marker, execution_state="idle")
        own_kernel.until_activity("idle")


def test_input_that_is_reached_after_the_tab_was_closed_is_seen(own_kernel: Kernel) -> None:
    with own_kernel.front_end() as page:
        request = page.execute("import time; time.sleep(1)\ninput('anybody? ')")
        page.wait_for("status", request, execution_state="busy")
    own_kernel.until_activity("input")


def test_a_kernel_that_was_restarted_is_idle_though_jupyter_says_starting(
    own_kernel: Kernel,
) -> None:
    with own_kernel.front_end() as page:
        page.execute("import os; os._exit(1)")
    before = own_kernel.session().id
    own_kernel.session(other_than=before)
    own_kernel.until_activity("idle")
