"""The two kinds of errors: the caller's fault (with the next step) and ours.

`Refused` and its kinds carry a `Reason`; the core raises them, the API turns them into problem details, `core.explain`
into sentences. Everything that is not a `Refused` is a bug of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core.model import Reason


class Refused(Exception):
    """The caller asked for something that cannot be done; nothing was changed."""

    status = 422

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"{reason.code} {dict(reason.values)}")
        self.reason = reason


class NotFound(Refused):
    """There is no such thing, or it is not the caller's."""

    status = 404


class Conflict(Refused):
    """It is there, but in a state (or with a content) that does not allow this."""

    status = 409


class TooMany(Refused):
    """A limit of the caller's is reached."""

    status = 429


class Unusable(Refused):
    """The broker can show what it knows and do nothing with it."""

    status = 503


class InvalidTransition(AssertionError):
    """A state table has no such arc: a bug in the core, never the caller's fault."""
