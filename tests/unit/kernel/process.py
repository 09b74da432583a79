"""All parts of a kernel that hold a lease, without the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubroker import cuda_state
from gpubroker.arrival import Arrival
from gpubroker.give_back import GiveBack
from gpubroker.holder import Holder
from gpubroker.link import Link
from gpubroker.main_thread import MainThread
from gpubroker.notices import Notices
from gpubroker.offer import Offers
from gpubroker.parkers import ParkFailed
from gpubroker.saving import Saver
from gpubroker.session import Session
from tests.unit.kernel.double import (
    SESSION,
    DoubleBroker,
    stand_in,
)

LEASE = "a" * 32


class Devices:
    """Stands for the variable of this process."""

    def __init__(self) -> None:
        self.lent: tuple[str, ...] = ()

    def show(self, visible_devices: str) -> None:
        self.lent = tuple(visible_devices.split(","))

    def hide(self) -> None:
        self.lent = ()


class ParkingDouble:
    """Parks by a note. `fails` is raised once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: ParkFailed | None = None

    def refusal(self, is_simulated: bool) -> None:
        """It always works."""

    def park(self, *_: object) -> int:
        self._do("park")
        return 400

    def unpark(self, _deadline_s: float) -> None:
        self._do("unpark")

    def _do(self, what: str) -> None:
        fails, self.fails = self.fails, None
        if fails is not None:
            raise fails
        self.log.append(what)


class Process:
    """All parts of a kernel that hold, without the kernel."""

    def __init__(self, double: DoubleBroker, folder: Path) -> None:
        self.double = double
        self.session = Session(SESSION, double.client, "test.ipynb")
        self.main = MainThread()
        self.devices = stand_in(Devices())
        self.parking = stand_in(ParkingDouble())
        self.offers = Offers(self.main, self.parking, lambda: False)
        self.notices = Notices(double.client, lambda: self.main.rests_at)
        self.saver = Saver(str(folder / "restore" / "k"), SimpleNamespace(user_ns={"x": 1}))
        self.events: list[str] = []
        self.arrival: Arrival
        give_back = GiveBack(
            self.main,
            self.devices,
            self.parking,
            self.offers,
            lambda: self.events.append("gave up devices"),
            lambda why: self.arrival.damaged(why["code"]),
        )
        self.holder = Holder(
            self.session,
            self.main,
            self.devices,
            self.offers,
            give_back,
            self.notices,
            self.saver,
            lambda: self.events.append("lost"),
        )
        self.link = Link(self.session, self.holder.look)
        self.arrival = Arrival(self.session, self.main, self.link)

    def away(self) -> str | None:
        return self.main.away

    def look(self, *leases: dict[str, Any]) -> int:
        """One look of the link at a broker that answers these leases."""
        with self.double.changed():
            self.double.leases = list(leases)
        self.session.refresh()
        return self.holder.look()

    def has_context(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = cuda_state.CudaState(cuda_state.CONTEXT, has_context=True)
        monkeypatch.setattr(cuda_state, "look", lambda: state)


class Shown:
    """What boards would show in a notebook."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str, _display_id: str, **_: bool) -> None:
        self.texts.append(text)


def answers(double: DoubleBroker) -> list[dict[str, Any]]:
    return double.bodies(":answer")


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise error

    return fail
