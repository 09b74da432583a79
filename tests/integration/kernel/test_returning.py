"""A kernel idles, its GPU goes to somebody who waits, and comes back before code of the user's goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jupyter_gpubroker.wire.views import LeaseView
from tests.integration.kernel.kernels import WAIT_S, Kernel, Rival, until
from tests.support.broker import RunningBroker

TAKE = """%gpu request
from gpubroker import simulated
block = simulated.allocate(512)
block.write(b"weights")
"""
USE = "print(block.read(), block.address)"


def hold_and_use(kernel: Kernel) -> LeaseView:
    ran = kernel.run(TAKE)
    assert ran.status == "ok", ran.error
    return kernel.until_lease("active")


def lends_to_a_rival(kernel: Kernel, answer: str = "c") -> Callable[[str], str]:
    """For a prompt: by the time it is answered somebody else had the GPU, and has given it back."""

    def lend(_prompt: str) -> str:
        with Rival(kernel.broker) as rival:
            rival.until_served()
            kernel.until_lease("parked")
        return answer

    return lend


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Kernel:
    """A kernel whose memory, if any, is on the device."""
    shared_kernel.run("import gpubroker.callbacks; gpubroker.callbacks.forget()")
    shared_kernel.forget_displays()
    return shared_kernel


def test_at_a_breakpoint_the_gpu_is_lent_on_and_is_back_when_the_code_goes_on(
    kernel: Kernel,
) -> None:
    lease = hold_and_use(kernel)
    before = kernel.run(USE).text
    ran = kernel.run(f"import pdb; pdb.set_trace()\n{USE}", [lends_to_a_rival(kernel), "c", "c"])
    assert ran.status == "ok", ran.error
    assert before.strip() in ran.text
    assert "GPU goes back in" in ran.displayed
    after = kernel.until_lease("active")
    assert (after.id, after.slots) == (lease.id, lease.slots)
    assert after.epochs > lease.epochs


def test_between_cells_the_gpu_is_lent_on_and_is_back_before_the_next(kernel: Kernel) -> None:
    hold_and_use(kernel)
    with Rival(kernel.broker) as rival:
        rival.until_served()
        kernel.until_lease("parked")
        cell = kernel.start(USE)
        until("a place in line", lambda: "Waiting for your GPU's return" in kernel.displayed())
        rival.gives_back()
        ran = kernel.finish(cell)
    assert "b'weights'" in ran.text
    assert "went to somebody who waited" in ran.text


def test_our_own_commands_run_while_the_memory_is_away(kernel: Kernel) -> None:
    hold_and_use(kernel)
    parked = kernel.run("%gpu park")
    assert "Parked" in parked.text
    assert "Parked" in kernel.run("%gpu\n%gpu why").text
    kernel.until_lease("parked")
    assert "is back" in kernel.run("%gpu unpark").text
    assert "b'weights'" in kernel.run(USE).text


def test_a_cell_may_run_without_the_gpu_and_is_kept_off_it(kernel: Kernel) -> None:
    hold_and_use(kernel)
    kernel.run("%gpu park")
    kernel.until_lease("parked")
    ran = kernel.run("%%gpu cpu\nx = 6 * 7\nx")
    assert (ran.text, ran.status) == ("42", "ok")
    kept_off = kernel.run("%%gpu cpu\nprint(block.read())")
    assert "GPUAway" in kept_off.error
    assert kernel.lease is not None
    assert kernel.lease.state == "parked"
    assert "b'weights'" in kernel.run(USE).text  # and was not harmed


def test_our_commands_work_at_a_prompt_while_the_gpu_is_away(kernel: Kernel) -> None:
    hold_and_use(kernel)
    prompt: list[str | Callable[[str], str]]
    prompt = [lends_to_a_rival(kernel, "%gpu cpu 6 * 7"), "%gpu", "%gpu cpu block.read()", "c", "c"]
    ran = kernel.run(f"import pdb; pdb.set_trace()\n{USE}", prompt)
    assert "42" in ran.text
    assert "Parked" in ran.text
    assert "GPUAway" in ran.text
    assert "b'weights'" in ran.text


def test_an_interrupted_return_keeps_the_cell_from_running(
    kernel: Kernel, broker: RunningBroker
) -> None:
    hold_and_use(kernel)
    kernel.run("%gpu park")
    with Rival(broker) as rival:
        rival.until_served()
        cell = kernel.start("print('ran anyway')")
        until("a place in line", lambda: "Waiting for your GPU's return" in kernel.displayed())
        kernel.interrupt()
        held = kernel.finish(cell)
        assert held.status == "error"
        assert held.error.startswith(("Interrupted", "You left the line"))
        assert "ran anyway" not in held.text
        silent = kernel.run("print(block.read())", silent=True)
        assert silent.status == "error"
        rival.gives_back()
    assert "b'weights'" in kernel.run(USE).text


def test_changed_contents_are_told_before_anything_runs(kernel: Kernel) -> None:
    hold_and_use(kernel)
    spoil = """
import threading, time
def spoil():
    while block.location != "paused":
        time.sleep(0.001)
    block._data = b"other"
thread = threading.Thread(target=spoil, daemon=True); thread.start()
"""
    kernel.run(spoil)
    kernel.run("%gpu park")
    kernel.until_lease("parked")
    told = kernel.run(USE)
    assert told.status == "error"
    assert "checksums differ" in told.error
    assert kernel.run(USE).status == "ok"


def test_a_keep_withdraws_the_notice(kernel: Kernel) -> None:
    hold_and_use(kernel)
    with Rival(kernel.broker):
        until("a notice", lambda: "GPU goes back in" in kernel.displayed())
        assert "Kept for" in kernel.run("%gpu keep").text
        until("its end", lambda: "stays yours" in kernel.displayed())
        lease = kernel.until_lease("active")
        assert lease.notice is None


def test_registered_functions_move_memory_and_bring_it_back(kernel: Kernel) -> None:
    kernel.run(TAKE)
    kernel.run(
        """import gpubroker, asyncio
moves = []
@gpubroker.on_park
def leave():
    block.to_host(); moves.append("left")
@gpubroker.on_unpark
async def come_back():
    await asyncio.sleep(0)
    block.to_device(); moves.append("back")
"""
    )
    kernel.run("%gpu park")
    ran = kernel.run(f"{USE}\nprint(moves, block.location)")
    assert "b'weights'" in ran.text
    assert "['left', 'back'] device" in ran.text


# --- JupyterLab's debugger -----------------------------------------------------------------------------------------------

CODE = "value = 1\nvalue = 2\nprint('value', value, block.read())\n"


class Debugger:
    """What JupyterLab's debugger sends, over the control channel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._sequence = 0

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._sequence += 1
        content = {
            "type": "request",
            "seq": self._sequence,
            "command": command,
            "arguments": arguments,
        }
        client = self._kernel.client
        message = client.session.msg("debug_request", content)
        client.control_channel.send(message)
        while True:
            reply = client.get_control_msg(timeout=WAIT_S)
            if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
                found: dict[str, Any] = reply["content"]
                return found

    def stop_at(self, code: str, line: int) -> None:
        self.ask(
            "initialize",
            clientID="test",
            adapterID="",
            linesStartAt1=True,
            columnsStartAt1=True,
            pathFormat="path",
        )
        self.ask("attach")
        path = self.ask("dumpCell", code=code)["body"]["sourcePath"]
        self.ask("setBreakpoints", breakpoints=[{"line": line}], source={"path": path})
        self.ask("configurationDone")


def test_the_debuggers_continue_waits_for_the_gpu(kernel: Kernel) -> None:
    hold_and_use(kernel)
    debugger = Debugger(kernel)
    debugger.stop_at(CODE, 3)
    cell = kernel.start(CODE)
    until("the stop", lambda: debugger.ask("debugInfo")["body"]["stoppedThreads"])
    kernel.report("debugger")
    thread = debugger.ask("debugInfo")["body"]["stoppedThreads"][0]
    with Rival(kernel.broker) as rival:
        rival.until_served()
        kernel.until_lease("parked")
        refused = debugger.ask("continue", threadId=thread)
        assert refused["success"] is False
        assert "parked and waited for" in refused["message"]
        rival.gives_back()
        kernel.until_lease("active")
    assert debugger.ask("continue", threadId=thread)["success"] is True
    ran = kernel.finish(cell)
    assert ran.status == "ok", ran.error
    assert "value 2 b'weights'" in ran.text
