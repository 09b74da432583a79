"""From wire bodies to values of the core."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.model import MiB, Reason, SlotSpec
from ...errors import Refused
from ...wire.bodies import ReasonBody, SpecBody

# Controls and what turns the direction of writing: they would change how the text around a name reads.
_UNFIT_IN_NAMES = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]")

_WHOLE = re.compile("[0-9]{1,9}")


def name_of(text: str) -> str:
    """A name in one line that shows as it is. A notebook may be called anything, so nothing is refused for its name."""
    return _UNFIT_IN_NAMES.sub("\ufffd", text)


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """A number of at most nine digits in the query. Raises Refused."""
    text = query.get(name)
    if text is None:
        return default
    if not _WHOLE.fullmatch(text):
        raise Refused(Reason.of("bad_number", name=name, given=text))
    return int(text)


def spec_of(body: SpecBody) -> SlotSpec:
    memory = None if body.memory_mib_min is None else MiB(body.memory_mib_min)
    return SlotSpec(body.count, body.model, memory, body.profile)


def reason_of(body: ReasonBody) -> Reason:
    return Reason(body.code, tuple(sorted(body.values.items())))
