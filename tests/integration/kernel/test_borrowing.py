"""Asking for a GPU in a real kernel: at once, in line, by an import, by a variable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.wire.bodies import RequestBody
from tests.integration.kernel.kernels import WAIT_S, Kernel, Rival, running_kernel, until
from tests.support.broker import RunningBroker, new_id

FORGET = """
import sys
for name in ("jax", "cupy"):
    sys.modules.pop(name, None)
get_ipython().extension_manager.reload_extension("gpubroker")
"""
SHOW = "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))"


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Iterator[Kernel]:
    """A kernel that holds nothing."""
    shared_kernel.forget_displays()
    yield shared_kernel
    shared_kernel.ends_up_without_a_gpu()


@pytest.fixture
def eager(shared_eager: Kernel) -> Iterator[Kernel]:
    """A kernel that asks for a GPU at the first use of a library, and has seen none yet."""
    shared_eager.run(FORGET)
    shared_eager.forget_displays()
    yield shared_eager
    shared_eager.ends_up_without_a_gpu()


def test_a_gpu_is_asked_for_explained_and_given_back(kernel: Kernel) -> None:
    assert "holds no GPU" in kernel.run("%gpu").text
    asked = kernel.run("%gpu request")
    assert "(simulated) is yours" in asked.text
    lease = kernel.until_lease("active")
    assert kernel.run(SHOW).text.strip() == repr(lease.visible_devices)
    assert "is yours" not in kernel.run("%gpu request").text
    for verb in ("", "status", "why", "queue", "policy", "doctor", "help", "keep 30m", "unpark"):
        ran = kernel.run(f"%gpu {verb}")
        assert (ran.status, ran.error) == ("ok", ""), verb
        assert ran.text.strip(), verb
    assert "BAD" not in kernel.run("%gpu doctor").text
    assert "went back" in kernel.run("%gpu release").text
    assert kernel.run(SHOW).text.strip() == "''"
    until("the lease's end", lambda: kernel.lease is None)


BAD_INPUT = {
    "%gpu request 3": "Available",
    "%gpu request --slice 9g.900gb": "Available",
    "%gpu request --for -1h": "'-1h'",
    "%gpu keep 30": "unit",
    "%gpu request --memory 20": "unit",
    "%gpu reqest": "request",
    "%gpu request --modl h200": "--model",
    "%gpu request 'a": "quotation",
    "%gpu release": "holds no GPU",
    "import gpubroker; gpubroker.request(0)": "'0'",
}


def test_bad_input_gets_one_sentence_and_stops_the_cell(kernel: Kernel) -> None:
    for cell, said in BAD_INPUT.items():
        ran = kernel.run(cell)
        assert ran.status == "error", cell
        assert said in ran.error, cell
        assert "Traceback" not in ran.error, cell
        assert "Traceback" not in ran.error + ran.text, cell
    assert kernel.lease is None


def test_the_wait_shows_its_place_and_an_interrupt_leaves_the_line(
    kernel: Kernel, broker: RunningBroker
) -> None:
    with Rival(broker) as rival:
        rival.until_served()
        cell = kernel.start("%gpu request")
        until("a place in line", lambda: "place 1 of 1" in kernel.displayed())
        assert len(broker.client.call(routes.QUEUE).waiting) == 1
        kernel.interrupt()
        interrupted = time.monotonic()
        ran = kernel.finish(cell)
        assert time.monotonic() - interrupted < 2.0
    assert ran.status == "error"
    assert ran.error.startswith("You left the line")
    assert broker.client.call(routes.QUEUE).waiting == ()


def test_the_turn_comes_while_the_cell_waits(kernel: Kernel, broker: RunningBroker) -> None:
    with Rival(broker) as rival:
        rival.until_served()
        cell = kernel.start("%gpu request")
        until("a place in line", lambda: "place 1 of 1" in kernel.displayed())
        rival.gives_back()
        assert "is yours" in kernel.finish(cell).text


def test_the_wait_outlives_the_broker(kernel: Kernel, broker: RunningBroker) -> None:
    with Rival(broker) as rival:
        rival.until_served()
        cell = kernel.start("%gpu request")
        until("a place in line", lambda: "place 1 of 1" in kernel.displayed())
        broker.kill()
        until("a word about it", lambda: "away" in kernel.displayed())
        broker.start()
        rival.gives_back()
        assert "is yours" in kernel.finish(cell).text


def test_without_waiting_a_sentence_says_that_nothing_is_free(
    kernel: Kernel, broker: RunningBroker
) -> None:
    with Rival(broker) as rival:
        rival.until_served()
        ran = kernel.run("%gpu request --no-wait")
    assert ran.status == "error"
    assert "Ask again" in ran.error


def test_an_awaited_request_can_be_interrupted_too(kernel: Kernel, broker: RunningBroker) -> None:
    with Rival(broker) as rival:
        rival.until_served()
        cell = kernel.start("import gpubroker\nawait gpubroker.arequest()")
        until("a place in line", lambda: "place 1 of 1" in kernel.displayed())
        kernel.interrupt()
        ran = kernel.finish(cell)
        assert ran.status == "error"
        assert ran.error.startswith("You left the line")
        assert broker.client.call(routes.QUEUE).waiting == ()
        rival.gives_back()
        assert "is yours" in kernel.run("lease = await gpubroker.arequest()").text


def test_a_with_block_gives_back_what_it_got(kernel: Kernel) -> None:
    ran = kernel.run(f"import gpubroker\nwith gpubroker.lease() as lease:\n    {SHOW}\n{SHOW}")
    assert ran.status == "ok", ran.error
    lines = [line for line in ran.text.splitlines() if line.startswith("'")]
    assert lines[0].startswith("'GPU-")
    assert lines[1] == "''"


def test_a_panel_may_ask_on_behalf_of_the_kernel(kernel: Kernel, broker: RunningBroker) -> None:
    broker.client.call(routes.PUT_REQUEST, new_id(), RequestBody(kernel.id))
    lease = kernel.until_lease("active")
    assert kernel.run(SHOW).text.strip() == repr(lease.visible_devices)


def test_without_a_context_the_gpu_simply_goes(kernel: Kernel) -> None:
    kernel.run("%gpu request")

    def lend(_prompt: str) -> str:
        with Rival(kernel.broker) as rival:
            rival.until_served()
            assert kernel.lease is None
        return "done"

    ran = kernel.run(
        "answer = input('? ')\nimport os; print(answer, repr(os.environ['CUDA_VISIBLE_DEVICES']))",
        [lend],
    )
    assert ran.text.strip() == "done ''"
    again = kernel.run("%gpu request")
    assert "went to somebody who waited" in again.text
    assert "is yours" in again.text


# --- by an import ------------------------------------------------------------------------------------------------------


def fake_library(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text("import os\nSEEN = os.environ['CUDA_VISIBLE_DEVICES']\n")


def test_an_import_asks_before_the_librarys_code_runs(eager: Kernel, home: Path) -> None:
    fake_library(home, "jax")
    looked = eager.run("import importlib.util; importlib.util.find_spec('jax')")
    assert "asking" not in looked.text
    assert eager.lease is None
    ran = eager.run("import jax; print(jax.SEEN, type(jax.__loader__).__name__)")
    assert "asking for one before it is imported" in ran.text
    assert ran.text.split()[-2:] == [
        eager.until_lease("active").visible_devices,
        "SourceFileLoader",
    ]


def test_an_interrupted_import_runs_without_a_gpu_and_never_asks_again(
    eager: Kernel, broker: RunningBroker, home: Path
) -> None:
    fake_library(home, "jax")
    fake_library(home, "cupy")
    with Rival(broker) as rival:
        rival.until_served()
        cell = eager.start("import jax\nprint('went on', repr(jax.SEEN))")
        until("a place in line", lambda: "place 1 of 1" in eager.displayed())
        eager.interrupt()
        ran = eager.finish(cell)
        assert ran.status == "ok"
        assert "runs on the CPU" in ran.text
        assert "went on ''" in ran.text
        assert eager.run("import cupy").text == ""


def test_a_hint_names_the_request_once(broker: RunningBroker, home: Path) -> None:
    fake_library(home, "jax")
    fake_library(home, "cupy")
    with running_kernel(broker, home, first_use="hint") as kernel:
        assert "%gpu request" in kernel.run("import jax").text
        assert kernel.run("import cupy").text == ""
        assert kernel.lease is None


# --- by the variable -----------------------------------------------------------------------------------------------------


def test_a_cell_that_sets_the_variable_means_a_request(eager: Kernel) -> None:
    ran = eager.run("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'")
    assert "is yours" in ran.text
    lease = eager.until_lease("active")
    assert eager.run(SHOW).text.strip() == repr(lease.visible_devices)
    assert "stays as it was" in eager.run("%env CUDA_VISIBLE_DEVICES=1").text
    assert eager.run(SHOW).text.strip() == repr(lease.visible_devices)
    eager.run("os.environ['CUDA_VISIBLE_DEVICES'] = ''")
    assert eager.run(SHOW).text.strip() == "''"
    eager.run("del os.environ['CUDA_VISIBLE_DEVICES']")
    assert eager.run(SHOW).text.strip() == repr(lease.visible_devices)


def test_a_user_who_hides_the_gpu_is_not_asked_to_take_one(eager: Kernel, home: Path) -> None:
    fake_library(home, "jax")
    eager.run("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'")
    assert eager.run("import jax").text == ""
    assert eager.lease is None


def test_without_first_use_the_variable_gets_a_sentence(kernel: Kernel) -> None:
    ran = kernel.run("import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'")
    assert "%gpu request 2" in ran.text
    assert kernel.run(SHOW).text.strip() == "''"


# --- processes that cannot be used again -----------------------------------------------------------------------------


def test_simulated_gpus_are_a_library_like_others(broker: RunningBroker, home: Path) -> None:
    with running_kernel(broker, home, first_use="auto") as eager:
        ran = eager.run("import gpubroker\ngpubroker.simulated.burn(0.05)")
        assert ran.status == "ok", ran.error
        assert "is yours" in ran.text


def test_a_process_that_looked_for_a_gpu_too_early_is_told_so(
    broker: RunningBroker, home: Path
) -> None:
    with running_kernel(broker, home) as kernel:
        kernel.run("from gpubroker import simulated; simulated.device_count()")
        ran = kernel.run("%gpu request")
        assert "%gpu restart" in ran.text
        kernel.until_lease("active")
        assert "BAD  cuda" in kernel.run("%gpu doctor").text
        assert "lease is kept" in kernel.run("%gpu restart").text
        assert kernel.process.wait(WAIT_S) == 0
        assert kernel.session().state == "restarting"
