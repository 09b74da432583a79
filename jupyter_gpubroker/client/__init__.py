"""How everything of ours reaches the broker: places, the HTTP client, and starting a user's broker when there is none.

    with BrokerClient(ensure_broker()) as broker:
        session = broker.call(routes.SESSION, session_id)
        for request in broker.watch(routes.REQUEST, request_id): ...

Imported by Jupyter servers and commands, so it must stay light: no tornado, no sqlalchemy, no jupyter_server.
"""

from ..wire import routes
from .errors import BrokerDown, BrokerError, PlaceRefused
from .http import AsyncBrokerClient, BrokerClient
from .places import Places, is_off
from .start import ensure_broker, ensure_broker_async

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
]
