"""Where user code is held while GPU memory is away."""

from __future__ import annotations

import ast
import bdb
import pdb  # noqa: T100 - whose prompt is looked at
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import InputRejected

from gpubroker import cells, simulated
from gpubroker.cpu_only import cpu_only
from gpubroker.errors import GPUAway, Interrupted, Refused
from gpubroker.gates import Gates
from gpubroker.main_thread import MainThread
from tests.unit.kernel.double import stand_in
from tests.unit.kernel.process import failing


class ArrivalDouble:
    """`is_needed` until `bring_back` works; `fails` says why it does not."""

    def __init__(self) -> None:
        self.is_needed = False
        self.fails: Exception | None = None
        self.brought = 0

    def bring_back(self) -> None:
        if self.is_needed:
            if self.fails is not None:
                raise self.fails
            self.brought += 1
            self.is_needed = False

    def begin(self, ended: Any) -> None:
        try:
            self.bring_back()
        except Refused as error:
            ended(str(error))
        else:
            ended(None)


class Kernel:
    """What gates wrap of a kernel."""

    def __init__(self) -> None:
        self.prompts = 0
        self.interrupts = False

    def _input_request(self, _prompt: str) -> str:
        self.prompts += 1
        if self.interrupts:
            raise KeyboardInterrupt
        return f"answer {self.prompts}"

    async def do_debug_request(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "command": message["command"]}


class Bench:
    def __init__(self) -> None:
        self.kernel: Any = Kernel()
        self.callbacks: dict[str, list[Any]] = {"pre_run_cell": [], "post_run_cell": []}
        events = SimpleNamespace(
            register=lambda name, callback: self.callbacks[name].append(callback),
            unregister=lambda name, callback: self.callbacks[name].remove(callback),
        )
        self.shell = SimpleNamespace(kernel=self.kernel, events=events, ast_transformers=[])
        self.main = MainThread()
        self.arrival = stand_in(ArrivalDouble())
        self.cells: list[bool] = []
        notices: Any = SimpleNamespace(take_lines=list)
        self.restarts = False
        self.gates = Gates(
            self.shell,
            self.main,
            self.arrival,
            notices,
            self.cells.append,
            lambda: self.restarts,
        )
        self.gates.install()

    def run(
        self, source: str, *, silent: bool = False, during: Callable[[], object] = lambda: None
    ) -> None:
        """As IPython runs a cell, whose code is `during`; raises what keeps it from running."""
        info = SimpleNamespace(raw_cell=source)
        if not silent and source.strip():
            for callback in self.callbacks["pre_run_cell"]:
                callback(info)
        try:
            for transformer in self.shell.ast_transformers:
                transformer.visit(ast.parse("pass" if source.startswith("%") else source))
            during()
        finally:
            if not silent:
                for callback in self.callbacks["post_run_cell"]:
                    callback(SimpleNamespace(info=info))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("source", "ours"),
    [
        ("%gpu", True),
        ("  %gpu request 2\n# a comment\n\n%gpu", True),
        ("gpubroker.keep()", True),
        ("import gpubroker", True),
        ("%gpus", False),
        ("x = 1\n%gpu", False),
        ("gpubroker.keep(model.cuda())", False),
        ("gpubroker.simulated.burn(1)", False),
        ("# %gpu\nmodel.train()", False),
    ],
)
def test_our_own_commands_are_told_from_code(source: str, ours: bool) -> None:
    assert cells.is_ours(source) is ours


def test_a_cell_waits_for_the_memory_and_then_runs(bench: Bench) -> None:
    bench.run("x = 1")
    bench.arrival.is_needed = True
    bench.run("x = 1")
    assert bench.arrival.brought == 1
    assert bench.cells == [True, False] * 2
    assert not bench.main.in_cell


def test_an_empty_cell_that_a_cell_runs_does_not_end_it(bench: Bench) -> None:
    ran = []

    def run_an_empty_one() -> None:
        bench.run(" \n")
        ran.append(bench.main.in_cell)

    bench.run("get_ipython().run_cell('')", during=run_an_empty_one)
    assert ran == [True]
    assert bench.cells == [True, False]
    assert not bench.main.in_cell


def test_what_withholds_the_gpu_does_so_again_after_another_within_it() -> None:
    with simulated.withheld(GPUAway("outer")):
        with simulated.withheld(GPUAway("inner")):
            pass
        with pytest.raises(GPUAway, match="outer"):
            simulated.device_count()


def test_our_own_commands_do_not_wait(bench: Bench) -> None:
    bench.arrival.is_needed = True
    bench.run("%gpu status")
    assert bench.arrival.brought == 0


def test_a_cell_whose_memory_is_not_back_does_not_run(bench: Bench) -> None:
    bench.arrival.is_needed = True
    bench.arrival.fails = Refused("Not yet.")
    with pytest.raises(InputRejected, match="Not yet") as held:
        bench.run("x = 1")
    assert stand_in(held.value)._render_traceback_() == ["Not yet."]
    bench.arrival.fails = None
    bench.run("x = 1")


def test_code_that_the_front_end_runs_by_itself_is_held(bench: Bench) -> None:
    bench.arrival.is_needed = True
    with pytest.raises(InputRejected, match="waits for your next cell"):
        bench.run("repr(tensor)", silent=True)
    bench.run("import debugpy;debugpy.listen(1)", silent=True)
    assert bench.arrival.brought == 0


def test_an_answer_goes_on_only_when_the_memory_is_back(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.kernel._input_request("?") == "answer 1"
    bench.arrival.is_needed = True
    bench.arrival.fails = Refused("Not yet.")
    asks = bench.arrival.bring_back

    def works_the_second_time() -> None:
        try:
            asks()
        finally:
            bench.arrival.fails = None

    bench.arrival.bring_back = works_the_second_time
    assert bench.kernel._input_request("?") == "answer 3"
    assert capsys.readouterr().out == "Not yet.\n"


def test_our_own_commands_at_a_debuggers_prompt_do_not_wait(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.arrival.is_needed = True
    monkeypatch.setattr(bench.kernel, "_input_request", lambda _prompt: "%gpu keep")
    bench.gates._undo.clear()
    bench.gates.install()
    ask = bench.kernel._input_request

    class Debugger(pdb.Pdb):
        def preloop(self) -> None:
            """Nothing is stopped."""

        def onecmd(self, _line: str) -> bool:
            return True

    monkeypatch.setattr("builtins.input", ask)
    Debugger().cmdloop()
    assert bench.arrival.brought == 0
    assert ask("?") == "%gpu keep"  # an answer like any other where no debugger asks
    assert bench.arrival.brought == 1


def test_an_interrupt_at_the_prompt_brings_the_memory_back_for_its_handlers(bench: Bench) -> None:
    bench.arrival.is_needed = True
    bench.kernel.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        bench.kernel._input_request("?")
    assert bench.arrival.brought == 1


def test_a_restart_to_give_the_gpu_back_ends_the_cell_with_a_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.kernel.interrupts = bench.restarts = True
    with pytest.raises(Interrupted, match="as you agreed"):
        bench.kernel._input_request("?")

    class Debugger(pdb.Pdb):
        def preloop(self) -> None:
            """Nothing is stopped."""

    monkeypatch.setattr("builtins.input", bench.kernel._input_request)
    with pytest.raises(bdb.BdbQuit):
        Debugger().cmdloop()
    assert capsys.readouterr().out.startswith("This cell was ended")
    assert bench.arrival.brought == 0


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("%%gpu cpu\nx = 1", True),
        ("\n%%gpu  cpu \nx = 1", True),
        ("%%gpu cpus\nx = 1", False),
        ("x = 1\n%%gpu cpu", False),
        ("# %%gpu cpu", False),
    ],
)
def test_a_cell_says_in_its_first_line_that_it_needs_no_gpu(source: str, told: bool) -> None:
    assert cells.is_cpu_only(source) is told
    lines = source.splitlines(keepends=True)
    read = cells.without_first_line(lines)
    assert len(read) == len(lines)
    assert (read != lines) is told
    assert "".join(read).lstrip() == ("x = 1" if told else source)


def test_a_cell_without_the_gpu_runs_at_once_and_is_kept_off_it(bench: Bench) -> None:
    bench.arrival.is_needed = True
    with pytest.raises(GPUAway, match="%gpu cpu"):
        bench.run("%%gpu cpu\nx = 1", during=simulated.device_count)
    assert bench.arrival.brought == 0
    assert bench.kernel._input_request("?") == "answer 1"
    bench.run("x = 1")
    assert bench.arrival.brought == 1
    bench.run(
        "%%gpu cpu\nx = 1", during=simulated.device_count
    )  # the GPU is here: a cell like any other


def test_a_cell_that_a_cell_runs_is_part_of_it(bench: Bench) -> None:
    bench.arrival.is_needed = True

    def inner() -> None:
        bench.run("x = 1", during=lambda: None)
        assert bench.main.in_cell
        with pytest.raises(GPUAway):
            simulated.device_count()

    bench.run("%%gpu cpu\n%%capture\nx = 1", during=inner)
    assert bench.arrival.brought == 0
    assert not bench.main.in_cell
    assert cells.without_first_line(["%%gpu cpu\n", "%%time\n", "x\n"]) == ["%%time\n", "x\n"]


def test_where_a_cell_cannot_be_kept_off_the_gpu_it_waits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubroker.gates.cpu_only", failing(ImportError("another PyTorch")))
    bench.arrival.is_needed = True
    bench.run("%%gpu cpu\nx = 1")
    assert bench.arrival.brought == 1


def test_the_prompt_is_a_rest(bench: Bench) -> None:
    seen: list[bool] = []
    bench.gates.uninstall()
    bench.kernel._input_request = lambda _prompt: seen.append(bench.main.is_busy)
    bench.gates.install()
    bench.main.begins()
    bench.kernel._input_request("?")
    assert seen == [False]
    assert bench.main.is_busy


@pytest.mark.asyncio
async def test_the_debugger_goes_on_when_the_memory_is_back(bench: Bench) -> None:
    bench.arrival.is_needed = True
    looked = await bench.kernel.do_debug_request({"command": "threads"})
    assert looked["success"]
    assert bench.arrival.brought == 0
    assert (await bench.kernel.do_debug_request({"command": "next"}))["success"]
    assert bench.arrival.brought == 1


@pytest.mark.asyncio
async def test_a_debugger_command_that_would_wait_long_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.arrival.is_needed = True
    bench.arrival.fails = Refused("Not yet.")
    refused = await bench.kernel.do_debug_request({"command": "continue", "seq": 7})
    assert (refused["success"], refused["message"]) == (False, "Not yet.")
    assert (refused["type"], refused["request_seq"]) == ("response", 7)
    monkeypatch.setattr("gpubroker.gates.DEBUGGER_WAIT_S", 0.01)
    bench.arrival.begin = lambda _ended: None
    refused = await bench.kernel.do_debug_request({"command": "evaluate", "seq": 8})
    assert "waited for" in refused["message"]


def test_an_unknown_ipykernel_is_left_alone_and_named() -> None:
    bench = Bench()
    bench.gates.uninstall()
    assert bench.shell.ast_transformers == []
    assert "_input_request" not in vars(bench.kernel)
    bench.shell.kernel = SimpleNamespace()
    notices: Any = SimpleNamespace()
    gates = Gates(bench.shell, bench.main, bench.arrival, notices, print, lambda: False)
    gates.install()
    assert gates.missing == ["_input_request", "do_debug_request"]


@pytest.mark.torch
def test_what_pytorch_would_do_on_the_gpu_is_seen_before_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no GPU in a test; PyTorch's `meta` device stands for it, whose operations take the same way."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("gpubroker.cpu_only._GPU", "meta")
    away, here = torch.ones(2, 2, device="meta"), torch.ones(2, 2, requires_grad=True)
    with cpu_only("It is away."):
        (here @ here).sum().backward()
        assert here.grad.sum().item() == 16.0
        uses: tuple[Callable[[], object], ...] = (
            lambda: away + 1,
            lambda: repr(away + 1),
            lambda: torch.cat([away, away]),
            lambda: here.to("meta"),
            lambda: torch.zeros(2, device="meta"),
            lambda: away.add_(1),
        )
        for use in uses:
            with pytest.raises(GPUAway, match="It is away"):
                use()
    assert (away + 1).shape == (2, 2)
