"""Parking: by whom, in which order, and what happens when a step fails."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gpubroker
from gpubroker import callbacks, cuda_state, torch_parking
from gpubroker.main_thread import MainThread
from gpubroker.offer import Offers
from gpubroker.parkers import ParkFailed
from gpubroker.parking import VERIFIED, Parking


class SimulatedDouble(ModuleType):
    """The part of gpubroker.simulated that parking uses."""

    CONTEXT_MIB = 400

    class BusyError(Exception):
        pass

    class OutOfMemoryError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__(cuda_state.SIMULATED)
        self.contents = {1: "a", 2: "b"}
        self.log: list[str] = []
        self.fails: type[Exception] | None = None

    def is_initialized(self) -> bool:
        return True

    def is_poisoned(self) -> bool:
        return False

    def checksums(self) -> dict[int, str]:
        return dict(self.contents)

    def pause(self) -> int:
        self._do("pause")
        return 512

    def resume(self) -> int:
        self._do("resume")
        return 512

    def _do(self, what: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.log.append(what)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> SimulatedDouble:
    made = SimulatedDouble()
    monkeypatch.setitem(sys.modules, cuda_state.SIMULATED, made)
    return made


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    callbacks.forget()
    yield
    callbacks.forget()


@pytest.fixture
def parking(tmp_path: Path) -> Parking:
    return Parking(str(tmp_path))


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def code_of(raised: pytest.ExceptionInfo[ParkFailed]) -> str:
    return str(raised.value.reason["code"])


def test_memory_goes_and_comes_back(simulated: SimulatedDouble, parking: Parking) -> None:
    assert parking.refusal(is_simulated=True) is None
    assert parking.park(is_simulated=True, deadline_s=5) == 400
    parking.unpark(5)
    assert simulated.log == ["pause", "resume"]


def test_contents_that_changed_are_told_though_they_are_back(
    simulated: SimulatedDouble, parking: Parking
) -> None:
    parking.park(is_simulated=True, deadline_s=5)
    simulated.contents[2] = "other"
    with pytest.raises(ParkFailed) as raised:
        parking.unpark(5)
    assert (code_of(raised), raised.value.is_back) == ("contents_changed", True)
    parking.unpark(5)
    assert simulated.log == ["pause", "resume"]


def test_blocks_that_were_freed_meanwhile_are_not_missed(
    simulated: SimulatedDouble, parking: Parking
) -> None:
    parking.park(is_simulated=True, deadline_s=5)
    del simulated.contents[1]
    parking.unpark(5)


def test_without_room_the_return_can_be_tried_again(
    simulated: SimulatedDouble, parking: Parking
) -> None:
    parking.park(is_simulated=True, deadline_s=5)
    simulated.fails = simulated.OutOfMemoryError
    with pytest.raises(ParkFailed) as raised:
        parking.unpark(5)
    assert (code_of(raised), raised.value.is_back) == ("gpu_memory_short", False)
    simulated.fails = None
    parking.unpark(5)
    assert simulated.log == ["pause", "resume"]


def test_busy_memory_stays_where_it_is(simulated: SimulatedDouble, parking: Parking) -> None:
    simulated.fails = simulated.BusyError
    with pytest.raises(ParkFailed) as raised:
        parking.park(is_simulated=True, deadline_s=5)
    assert code_of(raised) == "gpu_busy"


def test_callbacks_go_first_and_return_last(simulated: SimulatedDouble, parking: Parking) -> None:
    gpubroker.on_park(lambda: simulated.log.append("leave"))

    @gpubroker.on_unpark
    async def come_back() -> None:
        await asyncio.sleep(0)
        simulated.log.append("come back")

    parking.park(is_simulated=True, deadline_s=5)
    parking.unpark(5)
    assert simulated.log == ["leave", "pause", "resume", "come back"]


def test_a_function_defined_anew_replaces_its_former_self() -> None:
    calls: list[int] = []
    for number in (1, 2):

        @gpubroker.on_park
        def leave(number: int = number) -> None:
            calls.append(number)

    for callback in callbacks.registered()[0]:
        callbacks.call(callback)
    assert calls == [2]


def test_a_step_that_fails_brings_back_what_had_left(
    simulated: SimulatedDouble, parking: Parking
) -> None:
    gpubroker.on_park(lambda: simulated.log.append("leave"))
    gpubroker.on_unpark(lambda: simulated.log.append("come back"))
    simulated.fails = simulated.BusyError
    with pytest.raises(ParkFailed):
        parking.park(is_simulated=True, deadline_s=5)
    assert simulated.log == ["leave", "come back"]


def test_a_callback_that_fails_is_told_and_undone(parking: Parking) -> None:
    returned = threading.Event()
    gpubroker.on_park(failing(ValueError("no room")))
    gpubroker.on_unpark(returned.set)
    with pytest.raises(ParkFailed) as raised:
        parking.park(is_simulated=True, deadline_s=5)
    assert raised.value.reason == {
        "code": "callback_failed",
        "values": {"error": "ValueError: no room"},
    }
    assert returned.is_set()


def test_a_callback_that_never_ends_is_not_waited_for_and_not_called_again(
    parking: Parking,
) -> None:
    stuck = threading.Event()
    gpubroker.on_park(stuck.wait)
    try:
        with pytest.raises(ParkFailed) as raised:
            parking.park(is_simulated=True, deadline_s=0.05)
        assert code_of(raised) == "callback_late"
        refusal = parking.refusal(is_simulated=True)
        assert refusal is not None
        assert refusal["code"] == "callback_late"
    finally:
        stuck.set()


def test_on_real_gpus_it_is_off_until_seen_to_work(tmp_path: Path, parking: Parking) -> None:
    gpubroker.on_park(print)
    refusal = parking.refusal(is_simulated=False)
    assert refusal is not None
    assert refusal["code"] == "unverified_hardware"
    (tmp_path / VERIFIED).write_text(json.dumps({"verified": True}))
    assert parking.refusal(is_simulated=False) is None
    (tmp_path / VERIFIED).write_text("not JSON")
    assert parking.refusal(is_simulated=False) is not None


def test_memory_that_nobody_can_move_is_refused(
    tmp_path: Path, parking: Parking, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / VERIFIED).write_text(json.dumps({"verified": True}))
    refusal = parking.refusal(is_simulated=False)
    assert refusal == {"code": "no_parker", "values": {}}
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    refusal = parking.refusal(is_simulated=False)
    assert refusal == {"code": "library_not_covered", "values": {"library": "cupy"}}
    gpubroker.on_park(print)
    assert parking.refusal(is_simulated=False) is None


# --- PyTorch -----------------------------------------------------------------------------------------------------------


PRELOADED = {
    "LD_PRELOAD": "/x/torch_memory_saver_hook_mode_preload_cu12.abi3.so",
    "TMS_INIT_ENABLE": "1",
    "TMS_INIT_ENABLE_CPU_BACKUP": "1",
}


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        (PRELOADED, None),
        ({}, "park_not_preloaded"),
        ({**PRELOADED, "TMS_INIT_ENABLE_CPU_BACKUP": "0"}, "park_not_preloaded"),
        (
            {**PRELOADED, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            "park_expandable_segments",
        ),
    ],
)
def test_pytorch_has_to_be_prepared_when_the_process_starts(
    environ: dict[str, str], code: str | None
) -> None:
    refusal = torch_parking._preload_refusal(environ)
    assert (refusal and refusal["code"]) == code


def test_another_thread_inside_of_a_gpu_library_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "worker.py").write_text(
        "def work(started, done):\n    started.set()\n    done.wait()\n"
    )
    namespace: dict[str, Any] = {}
    source = (folder / "worker.py").read_text()
    exec(compile(source, str(folder / "worker.py"), "exec"), namespace)  # noqa: S102
    started, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=namespace["work"], args=(started, done), name="loader")
    thread.start()
    started.wait(5)
    try:
        assert torch_parking._busy_threads() == ["loader"]
    finally:
        done.set()
        thread.join()
    assert torch_parking._busy_threads() == []


def test_host_memory_is_what_the_tightest_limit_leaves() -> None:
    assert 0 < torch_parking.host_memory_free_mib() <= torch_parking._available_mib() + 1_024


@pytest.mark.torch
def test_the_sums_tell_changed_moved_and_swapped_words(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch_parking, "CHUNK_WORDS", 4)
    words = torch.arange(1, 11, dtype=torch.int64) * (2**61 + 1)
    sums = torch_parking.weighted_sums(torch, words)
    assert len(sums) == 3
    assert torch_parking.weighted_sums(torch, words.clone()) == sums
    changed, swapped = words.clone(), words.clone()
    changed[9] += 1
    swapped[0], swapped[1] = words[1], words[0]
    for other in (changed, swapped, words.flip(0)):
        assert torch_parking.weighted_sums(torch, other) != sums


# --- what is offered ---------------------------------------------------------------------------------------------------


@pytest.fixture
def main() -> MainThread:
    return MainThread()


def offers(main: MainThread, parking: Parking, *, asks: bool = True) -> Offers:
    return Offers(main, parking, lambda: asks)


def test_without_a_context_the_gpu_simply_goes(main: MainThread, parking: Parking) -> None:
    body = offers(main, parking).body(is_simulated=True)
    assert body["kinds"] == ["empty"]
    assert body["refusals"]["parked"]["code"] == "nothing_to_park"


def test_with_a_context_it_is_parked_and_with_consent_restarted(
    main: MainThread, parking: Parking, simulated: SimulatedDouble
) -> None:
    made = offers(main, parking)
    assert made.body(is_simulated=True)["kinds"] == ["parked"]
    assert made.body(is_simulated=True)["refusals"]["restarted"]["code"] == "no_consent"
    made.consents = True
    assert made.body(is_simulated=True)["kinds"] == ["parked", "restarted"]
    assert made.body(is_simulated=False)["refusals"]["parked"]["code"] == "unverified_hardware"


def test_code_that_runs_keeps_its_gpu_unless_its_first_use_would_ask_anew(
    main: MainThread, parking: Parking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_state, "loaded_libraries", list)
    main.begins()
    assert offers(main, parking).hindrance("empty") is None
    assert offers(main, parking).hindrance("parked") is not None
    assert offers(main, parking, asks=False).hindrance("empty") is not None
    with main.waiting():
        assert offers(main, parking).hindrance("parked") is None
    monkeypatch.setattr(cuda_state, "loaded_libraries", lambda: ["torch"])
    assert offers(main, parking).hindrance("empty") is not None
    main.ends()
    assert offers(main, parking).hindrance("empty") is None


def test_memory_leaves_only_while_no_code_runs(main: MainThread) -> None:
    main.begins()
    assert not main.take_away("parked")
    with main.waiting():
        assert main.take_away("parked")
    assert main.away == "parked"
    stopped = MainThread(lambda: True)
    stopped.begins()
    assert stopped.take_away("parked")


def test_a_subshell_that_waits_does_not_hide_a_cell_that_runs(main: MainThread) -> None:
    main.begins()
    other = threading.Thread(target=main.begins)
    other.start()
    other.join()
    with main.waiting():
        assert main.is_busy
