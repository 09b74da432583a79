"""The REST API: one file per resource, each a table from route to endpoint; `base` is everything they have in common.

An endpoint parses, sends an event and formats; it decides nothing. Every route passes `base.Handler.prepare`, so none is
without identity, limits and problem details.
"""

from . import admin, admin_rules, jobs, leases, node, requests, sessions, usage, why
from .base import Endpoints

_RESOURCES = (node, sessions, requests, leases, jobs, why, usage, admin, admin_rules)


def endpoints() -> Endpoints:
    """Everything that is served."""
    reads = {route: read for resource in _RESOURCES for route, read in resource.READS.items()}
    actions = {
        route: action for resource in _RESOURCES for route, action in resource.ACTIONS.items()
    }
    return Endpoints(reads, actions)
