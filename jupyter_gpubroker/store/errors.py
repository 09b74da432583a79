"""What can go wrong with the database: it cannot be used here, or it failed under us."""

from __future__ import annotations


class StoreRefused(Exception):
    """The database cannot be opened as asked. The message says why and what to do; nothing was changed."""


class StoreFailed(Exception):
    """A transaction failed. Whether it is durable is unknown, so the process must end and start anew; never retry."""
