"""CUDA_VISIBLE_DEVICES as users write it, understood as what they mean by it.

A cell that sets the variable asks for GPUs if it holds none, chooses among its own if it holds some, or hides them. It never
shows a device that was not lent. `os.environ` keeps its identity and gets a class that looks at this one variable; other
processes, and what forked children set for themselves, are left alone as far as they ask for nothing.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional, Tuple

from .sentences import say
from .telling import tell

if TYPE_CHECKING:
    from os import _Environ

    Environ = _Environ[str]
else:
    Environ = type(os.environ)

NAME = "CUDA_VISIBLE_DEVICES"
NOTHING = ""  # hides all devices; an unset variable would show all

_INDEX = re.compile(r"[0-9]{1,4}")
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z/-]+")


class Wish(NamedTuple):
    """What a value means: `value` to set, `wants` GPUs to ask for first, or `refusal`, a sentence."""

    value: str = NOTHING
    wants: int = 0
    refusal: Optional[str] = None


def understand(value: str, lent: Tuple[str, ...]) -> Wish:
    """`lent` are the UUIDs of the slots this process holds."""
    entries = [entry.strip() for entry in value.split(",")]
    if value.strip().lower() in ("", "-1", "none", "nodevfiles"):
        return Wish(NOTHING)
    if not all(_INDEX.fullmatch(entry) or _UUID.fullmatch(entry) for entry in entries):
        return Wish(refusal=say("variable_unreadable", text=value))
    if not lent:
        if any(entry.startswith("MIG-") for entry in entries):
            return Wish(refusal=say("variable_slice"))
        return Wish(wants=len(entries))
    chosen: List[str] = []
    for entry in entries:
        uuid = _lent(entry, lent)
        if uuid is None:
            return Wish(refusal=say("variable_foreign", text=entry, count=len(lent)))
        chosen.append(uuid)
    return Wish(",".join(chosen))


def _lent(entry: str, lent: Tuple[str, ...]) -> Optional[str]:
    if _INDEX.fullmatch(entry):
        return lent[int(entry)] if int(entry) < len(lent) else None
    matches = [uuid for uuid in lent if uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None


class VisibleDevices:
    """The variable of this process. `asks` is called with a number of GPUs when a cell wants some; `tells` with sentences."""

    def __init__(
        self, asks: Callable[[int], None] = lambda _: None, tells: Callable[[str], None] = tell
    ) -> None:
        self.lent: Tuple[str, ...] = ()
        self.hidden_by_user = False
        self.asks = asks
        self.tells = tells

    def install(self) -> None:
        """Look at the variable from now on."""
        _Watched.devices = self
        os.environ.__class__ = _Watched

    def uninstall(self) -> None:
        os.environ.__class__ = Environ

    def show(self, visible_devices: str) -> None:
        """The slots of a lease. A user who hid devices sees them again only when asking."""
        self.lent = tuple(filter(None, visible_devices.split(",")))
        self.hidden_by_user = False
        _put(visible_devices)

    def hide(self) -> None:
        self.lent = ()
        _put(NOTHING)

    def wished(self, value: str) -> None:
        """Somebody set the variable."""
        wish = understand(value, self.lent)
        if wish.refusal is not None:
            self.tells(wish.refusal)
        elif wish.wants:
            self.asks(wish.wants)
        else:
            self.hidden_by_user = wish.value == NOTHING
            _put(wish.value)

    def removed(self) -> None:
        """Somebody deleted the variable, which would show every device: all that is lent is meant."""
        self.hidden_by_user = False
        _put(",".join(self.lent))


class _Watched(Environ):
    """`os.environ` while devices are lent by a broker."""

    devices = VisibleDevices()

    def __setitem__(self, key: str, value: str) -> None:
        if key == NAME and isinstance(value, str):
            self.devices.wished(value)
        else:
            super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        if key == NAME:
            self.devices.removed()
        else:
            super().__delitem__(key)

    def clear(self) -> None:
        """All but the one variable, which cannot go."""
        for key in [key for key in self if key != NAME]:
            super().__delitem__(key)


def _put(value: str) -> None:
    Environ.__setitem__(os.environ, NAME, value)
