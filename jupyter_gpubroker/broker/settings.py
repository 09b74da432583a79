"""What is fixed for as long as a broker process runs."""

from __future__ import annotations

from dataclasses import dataclass

from .identity import Served


@dataclass(frozen=True, slots=True)
class Settings:
    """`incarnation` tells this process from the brokers before it; `served` is who may call.

    `simulates` are the GPUs that are simulated, such as `2xH200`; empty where none are.
    """

    served: Served
    scope: str
    incarnation: str
    started_s: float
    simulates: str
