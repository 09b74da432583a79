"""What is fixed for as long as a broker process runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`incarnation` tells this process from the brokers before it; `uid` is who is served.

    `simulate` is the setting of that name, such as `auto:2xH200`.
    """

    uid: int
    scope: str
    incarnation: str
    started_s: float
    simulate: str
