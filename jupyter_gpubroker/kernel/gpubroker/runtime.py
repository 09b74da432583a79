"""This process as a borrower of GPUs: all parts put together, and the acts behind `%gpu`.

There is one in a kernel that the broker lends to, made when the extension is loaded; everywhere else `current` says why not.
Acts answer with sentences. They wait where the main thread has to wait, and an interrupt always ends that.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any, Callable, ContextManager, Optional

from . import cuda_state, render, saving
from .arguments import Wanted
from .arrival import Arrival
from .broker import View
from .cpu_only import cpu_only
from .environment import NAME, NOTHING, VisibleDevices
from .errors import GPUBrokerError, Reason, Refused, Unavailable
from .first_use import FirstUse
from .gates import Gates
from .give_back import GiveBack
from .holder import Holder
from .link import Link
from .main_thread import MainThread, debugger_stopped, when_ready
from .notices import Notices
from .offer import Offers
from .parking import Parking
from .quantities import duration_text
from .questions import Questions
from .sentences import of_view, say
from .session import Session, why_not_lent
from .telling import tell
from .waiting import Wait

START_S = 6.0  # a broker that is being started answers by then
RETRY_S = 1.0
GIVE_BACK_S = 90.0
NAP_S = 0.25


class Runtime:
    """`enforces` is False where the broker only looks on: the environment is then left alone until a lease is asked for."""

    def __init__(self, session: Session, shell: Any, first_use: str, enforces: bool) -> None:
        self.session = session
        self.shell = shell
        self.enforces = enforces
        kernel = getattr(shell, "kernel", None)
        self.main = MainThread(lambda: debugger_stopped(kernel))
        self.devices = VisibleDevices(self._variable_asks, tell)
        self.first_use = FirstUse(first_use, self._library_asks, self._hint, self._may_ask)
        parking = Parking(state_folder())
        self.offers = Offers(self.main, parking, lambda: self.first_use.asks_anew)
        self.notices = Notices(session.broker, lambda: self.main.rests_at)
        folder = os.path.join(state_folder(), "restore", saving.kernel_key(shell) or session.id)
        self.saver = saving.Saver(folder, shell)
        give_back = GiveBack(
            self.main, self.devices, parking, self.offers, self.first_use.rearm, self._damaged
        )
        self.holder = Holder(
            session,
            self.main,
            self.devices,
            self.offers,
            give_back,
            self.notices,
            self.saver,
            self._lost,
        )
        self.link = Link(session, self.holder.look)
        self.arrival = Arrival(session, self.main, self.link)
        self.gates = Gates(
            shell, self.main, self.arrival, self.notices, self._cell_runs, self.holder.restarts
        )
        self.questions = Questions(session, self._require, lambda: self.offers.consents)
        self._started = time.monotonic()

    def start(self, lease_id: Optional[str] = None) -> None:
        """Listen to the broker from now on. `lease_id` is the lease the process was started with."""
        if lease_id:
            self.holder.started_with(lease_id, os.environ.get(NAME, NOTHING))
        if self.enforces:
            self.devices.install()
            self.first_use.install()
        self.gates.install()
        if self.saver.manifest() is not None:
            self.notices.say_before_next_cell(say("restore_ready"))
        when_ready(self.shell, self.link.start)

    def stop(self) -> None:
        self.link.stop()
        self.gates.uninstall()
        self.first_use.uninstall()
        self.devices.uninstall()

    def held(self) -> Optional[View]:
        """The lease that is here or parked, asked for anew. Raises Unavailable."""
        self._require()
        lease = self.session.lease
        return lease if lease is not None and lease["state"] != "draining" else None

    # --- getting one -------------------------------------------------------------------------------

    def request(self, wanted: Wanted) -> View:
        """Wait until granted; the lease, its devices shown. Raises Refused, Unavailable or Interrupted."""
        held = self._held_instead(wanted.spec["count"])
        if held is None:
            with self.main.waiting():
                held = self._wait(wanted).here()["lease"]
            self._arrived(held)
        return held

    async def arequest(self, wanted: Wanted) -> View:
        """The same while the event loop runs on."""
        held = self._held_instead(wanted.spec["count"])
        if held is None:
            with self.main.waiting():
                held = (await self._wait(wanted).asynchronously())["lease"]
            self._arrived(held)
        return held

    def _wait(self, wanted: Wanted) -> Wait:
        body = {
            "session_id": self.session.id,
            "spec": wanted.spec,
            "queue": wanted.queue,
            "wait_ms": wanted.wait_ms,
            "duration_ms": wanted.duration_ms,
        }
        broker = self.session.broker

        def put(request_id: str) -> View:
            self.questions.last_request = request_id
            return broker.put_request(request_id, body)

        return Wait(broker, put, say("goal_gpu"), self.holder.hand_back)

    def _held_instead(self, count: int) -> Optional[View]:
        held = self.held()
        lease = self.session.lease
        if lease is not None and held is None and lease["order"] is not None:
            raise Refused(say("going_back_now"), "going_back")
        if held is None:
            return None
        if len(held["models"]) < count:
            raise Refused(say("held_fewer", what=render.what(held)), "held_fewer")
        if held["state"] == "parked":
            self.arrival.bring_back()
            tell(say("is_back", what=render.what(held)))
        else:
            tell(say("held_already", what=render.what(held)))
        return held

    def _arrived(self, lease: View) -> None:
        self.holder.apply(lease)
        self.session.refresh()
        tell(render.granted(lease))
        state = cuda_state.look()
        if state.kind == cuda_state.BLIND:
            tell(say("cuda_blind", library=state.by))
        elif state.kind == cuda_state.UNSURE:
            tell(say("cuda_unsure", library=state.by))

    # --- asked for by code -------------------------------------------------------------------------

    def _cell_runs(self, is_running: bool) -> None:
        self.first_use.in_cell = is_running

    def _may_ask(self) -> bool:
        return (
            self.session.is_own and self.session.lease is None and not self.devices.hidden_by_user
        )

    def _library_asks(self, library: str) -> None:
        tell(say("first_use_asks", library=library))
        self._try_to_get(Wanted({"count": 1}), say("first_use_cpu", library=library))

    def _variable_asks(self, count: int) -> None:
        """A cell set CUDA_VISIBLE_DEVICES although nothing is lent."""
        if not self.session.is_own or threading.current_thread() is not threading.main_thread():
            return
        self.devices.hidden_by_user = False
        if self.first_use.mode == "auto" and self.first_use.in_cell:
            self._try_to_get(Wanted({"count": count}), say("variable_unset"))
        else:
            tell(say("variable_hint", count=count))

    def _try_to_get(self, wanted: Wanted, otherwise: str) -> None:
        try:
            self.request(wanted)
        except (GPUBrokerError, KeyboardInterrupt) as error:
            self.first_use.done()
            if isinstance(error, Unavailable):
                # Nobody has said no: the next first use asks again.
                self.first_use.rearm()
            tell(str(error) or say("interrupted"), otherwise)

    def _hint(self, library: str) -> None:
        tell(say("first_use_hint", library=library))

    # --- holding and giving back -------------------------------------------------------------------

    def keep(self, keep_ms: Optional[int]) -> str:
        lease = self.session.broker.keep(self._lease()["id"], keep_ms)
        kept_ms = lease["kept_for_ms"]
        return say("kept", time=duration_text(kept_ms)) if kept_ms is not None else of_view(lease)

    def release(self, kind: Optional[str]) -> str:
        """By `kind`, or by whatever destroys nothing. Raises Refused with the ways there are when there is none."""
        lease = self._lease()
        if kind in (None, "empty"):
            if lease["state"] == "parked":
                raise Refused(say("parked_release"), "parked")
            if cuda_state.look().has_context:
                raise Refused(self.choices(lease), "context_alive")
            self.holder.hand_back(lease)
            return say("released", what=render.what(lease))
        if kind == "parked" and lease["state"] == "parked":
            return say("parked_already")
        why_not = self._why_not(str(kind), lease)
        if why_not is not None:
            sentence = say("no_choice", kind=say(f"kind_{kind}"), why=why_not)
            raise Refused(sentence, "cannot_give_back")
        if kind != "restarted":
            return self._give_back(lease, str(kind))
        return self._restart_without(lease)

    def choices(self, lease: View) -> str:
        """Why a plain release does not work, and what does."""
        lines = [say("context_alive_release")]
        for kind in ("parked", "checkpointed", "restarted"):
            why_not = self._why_not(kind, lease)
            lines.append(
                say("choice_" + kind)
                if why_not is None
                else say("no_choice", kind=say("kind_" + kind), why=why_not)
            )
        return "\n  ".join(lines)

    def _why_not(self, kind: str, lease: View) -> Optional[str]:
        """A sentence, None when `kind` would work; asking for a restart is consent enough."""
        if kind == "parked":
            why = self.offers.refusal(kind, lease["simulated"])
            return None if why is None else render.reason(why)
        if kind == "checkpointed":
            why = lease["refusals"].get(kind)
            if kind not in lease["give_backs"]:
                return of_view(why).rstrip(".") if why else say("reason_not_offered")
        return None

    def _give_back(self, lease: View, kind: str) -> str:
        """Ask for the order, and wait until it was carried out; how it ended."""
        with self.main.waiting():
            self._order(lease, kind)
            return self._given_back(lease["id"])

    def _restart_without(self, lease: View) -> str:
        """The cell ends before the kernel does: the order is out, or was carried out as far as is done here."""
        if lease["state"] == "parked":
            return self._restart_parked(lease)
        consented = self.offers.consents
        with self.main.waiting():
            try:
                # Consent to this restart is for this time only.
                self.offers.consents = True
                self._order(lease, "restarted")
                return self._given_back(lease["id"], or_else=self.holder.restarts)
            except KeyboardInterrupt:
                if not self.holder.restarts():
                    raise
            finally:
                self.offers.consents = consented
        return say("restarting_without")

    def _restart_parked(self, lease: View) -> str:
        """Nothing has to be freed, so nobody orders anything: what lies on the host is given up with the process."""
        self._require_server()
        with self._memory_untouched():
            self.saver.save(lease["id"])
        self.session.broker.release(lease["id"], "restarted")
        self._restart()
        return say("restarting_without")

    def _order(self, lease: View, kind: str) -> None:
        # What is possible may have changed since the listening thread told it.
        self.holder.offer(lease)
        if kind == "parked":
            self.session.broker.park(lease["id"])
        else:
            self.session.broker.release(lease["id"], kind)

    def _given_back(self, lease_id: str, or_else: Callable[[], bool] = lambda: False) -> str:
        due = time.monotonic() + GIVE_BACK_S
        while time.monotonic() < due:
            time.sleep(NAP_S)
            if or_else():
                return say("restarting_without")
            lease = self.session.broker.lease(lease_id)
            if lease["state"] in ("parked", "cleared"):
                return of_view(lease)
            if lease["state"] == "active" and lease["order"] is None:
                raise Refused(of_view(lease), "still_held")
        raise Refused(say("not_given_back"), "still_held")

    def unpark(self) -> str:
        lease = self._lease()
        if lease["state"] != "parked" and not self.arrival.is_needed:
            return say("not_parked")
        self.arrival.bring_back()
        return say("is_back", what=render.what(lease))

    # --- restarts ----------------------------------------------------------------------------------

    def consent_restart(self, consent: bool) -> str:
        """Say what would be lost, and remember the answer."""
        self.offers.consents = consent
        self.link.nudge()
        return f"{self.losses()} {say('consents')}" if consent else say("consents_not")

    def losses(self) -> str:
        """What a restart would keep and what not."""
        with self._memory_untouched():
            return render.losses(self.saver.check())

    def restart(self) -> str:
        """Restart this kernel with its lease. The Jupyter server starts it again when it sees it end."""
        self._lease()
        self._require_server()
        self._restart()
        return say("restarting")

    def restore(self) -> str:
        """Onto the CPU: loading what was saved imports libraries again, which must not ask for a GPU."""
        with self.first_use.silent():
            return render.restored(self.saver.load())

    def _require_server(self) -> None:
        view = self.session.view
        if getattr(self.shell, "kernel", None) is None or not view or not view["server_id"]:
            raise Refused(say("restart_by_hand"), "no_server")

    def _restart(self) -> None:
        self.session.broker.announce_restart(self.session.id)
        self.shell.exit_now = True

    def _memory_untouched(self) -> ContextManager[None]:
        """While memory is away, what lies on the GPU can neither be looked at nor saved."""
        if self.main.away is None:
            return contextlib.nullcontext()
        return cpu_only(say("saving_away"))

    # --- inside ------------------------------------------------------------------------------------

    def _require(self) -> View:
        """The session as the broker has it now. Raises Unavailable; waits where the broker may just be starting."""
        session = self.session
        if not session.is_own:
            raise Unavailable(say("child_process"))
        due = max(self._started + START_S, time.monotonic() + RETRY_S)
        while session.view is None and time.monotonic() < due:
            self.link.nudge()
            session.wait_until(lambda: session.view is not None, NAP_S)
        if session.view is None:
            raise Unavailable(session.problem or say("no_broker"))
        return session.refresh()

    def _lease(self) -> View:
        self._require()
        lease = self.session.lease
        if lease is None:
            raise Refused(say("no_lease"), "no_lease")
        return lease

    def _damaged(self, why: Reason) -> None:
        self.arrival.damaged(render.reason(why))

    def _lost(self) -> None:
        self.notices.say_before_next_cell(say("lease_over"))
        self.first_use.rearm()


def state_folder() -> str:
    """Where the broker of this user keeps its state."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "state"
    )
    return os.path.join(base, "gpubroker")


class _Current:
    """The runtime of this process, if it has one."""

    runtime: Optional[Runtime] = None


def current() -> Runtime:
    """The runtime of this process. Raises Unavailable with the reason where there is none."""
    if _Current.runtime is None:
        raise Unavailable(say(why_not_lent(os.environ) or "not_managed"))
    return _Current.runtime


def set_current(runtime: Optional[Runtime]) -> None:
    _Current.runtime = runtime


def is_running() -> bool:
    return _Current.runtime is not None


def stop() -> None:
    """End what runs here."""
    if _Current.runtime is not None:
        _Current.runtime.stop()
        set_current(None)
