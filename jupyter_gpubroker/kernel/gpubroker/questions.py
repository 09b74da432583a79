"""What `%gpu` answers when somebody only wants to know: what is held, why, who waits, and by which rules."""

from __future__ import annotations

from typing import Callable, Optional

from . import render
from .broker import View
from .sentences import say
from .session import Session


class Questions:
    """`require` answers the session as the broker has it now, and raises Unavailable where nobody can be asked.

    `last_request` is the id of what this process asked for last.
    """

    def __init__(
        self, session: Session, require: Callable[[], View], consents: Callable[[], bool]
    ) -> None:
        self._session = session
        self._require = require
        self._consents = consents
        self.last_request: Optional[str] = None

    def status(self) -> str:
        view = self._require()
        return render.status(view, self._session.lease, self._session.broker.queue())

    def why(self) -> str:
        """Of what is held; else of the newest that was asked for or held: it may have been refused, or have ended."""
        last = self._require().get("last_lease")
        lease, broker = self._session.lease or last, self._session.broker
        is_last = lease is last and self.last_request not in (None, last and last["id"])
        if is_last:
            return render.why(broker.why("requests", str(self.last_request)))
        if lease is not None:
            return render.why(broker.why("leases", lease["id"]))
        return say("nothing_to_explain")

    def queue(self) -> str:
        self._require()
        return render.queue(self._session.broker.queue())

    def policy(self) -> str:
        view, broker = self._require(), self._session.broker
        lease, rules, applies = self._session.lease, broker.policies(), view["policy"]
        if lease is not None:  # which may have come through another queue than usual
            applies = {each["name"]: each["policy"] for each in rules["queues"]}.get(lease["queue"])
        named = [rule for rule in rules["policies"] if rule["name"] == applies]
        consent = say("consents" if self._consents() else "consents_not")
        return render.policy(named, broker.health(), lease, consent)
