"""How everything of ours reaches the broker: places, the HTTP client, and starting a user's broker when there is none.

    with BrokerClient(ensure_broker()) as broker:
        session = broker.call(routes.SESSION, session_id)
        for request in broker.watch(routes.REQUEST, request_id): ...

Must stay light: no tornado, no sqlalchemy, no jupyter_server. The broker itself imports `places` alone, hence the names
below are looked up when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..wire import routes
    from . import simulation
    from .errors import BrokerDown, BrokerError, PlaceRefused
    from .http import AsyncBrokerClient, BrokerClient
    from .places import Places, is_off
    from .start import ensure_broker, ensure_broker_async

_MODULES = {
    "AsyncBrokerClient": ".http",
    "BrokerClient": ".http",
    "BrokerDown": ".errors",
    "BrokerError": ".errors",
    "PlaceRefused": ".errors",
    "Places": ".places",
    "ensure_broker": ".start",
    "ensure_broker_async": ".start",
    "is_off": ".places",
}

__all__ = [
    "AsyncBrokerClient",
    "BrokerClient",
    "BrokerDown",
    "BrokerError",
    "PlaceRefused",
    "Places",
    "ensure_broker",
    "ensure_broker_async",
    "is_off",
    "routes",
    "simulation",
]


def __getattr__(name: str) -> Any:
    if name == "routes":
        return import_module("..wire.routes", __name__)
    if name == "simulation":
        return import_module(".simulation", __name__)
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
