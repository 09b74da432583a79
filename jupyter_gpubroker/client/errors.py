"""What can go wrong between a client and the broker, each with a sentence for people.

`BrokerError`: the broker answered no. `BrokerDown`: nobody answered, so nothing is known. `PlaceRefused`: a folder or
socket is not fit for use, and the sentence says what to change.
"""

from __future__ import annotations

from ..wire.views import Problem


class BrokerError(Exception):
    """The broker refused; `problem.detail` says what happened, why and what to do."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def code(self) -> str:
        return self.problem.code


class BrokerDown(Exception):
    """No broker answers at the place where one should be, or what answers there is not to be trusted."""


class PlaceRefused(Exception):
    """A place cannot be used: too long, on a network file system, somebody else's or open to others."""
