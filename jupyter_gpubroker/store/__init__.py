"""Keeps the broker's state: one SQLite file, one writer, one transaction per batch of decisions.

Nothing here decides. `Store.open` finds (or makes) the database, `load_state` gives the state as last committed, `commit`
writes the changes of a batch with their audit rows. Only this package imports SQLAlchemy, and no object of it leaves.
Read on in `store` (the transaction), `codec` (entities and rows), `audit` (the chain) and `schema` (versions).
"""

from .archive import Archive, Sought
from .errors import StoreFailed, StoreRefused
from .records import AuditRow, ClockMark, Committed, UsageRow
from .store import Store

__all__ = [
    "Archive",
    "AuditRow",
    "ClockMark",
    "Committed",
    "Sought",
    "Store",
    "StoreFailed",
    "StoreRefused",
    "UsageRow",
]
