"""The Jupyter server extension: puts the parts together and ties them to the server's life.

With it loaded every kernel starts through our provisioner, is watched and reported, and orders of the broker are carried out.
No broker, no GPU, no permission: the server works all the same, and says so once in its log. GPUBROKER=off: nothing is
touched; kernels know `%gpu`, which says so.
"""

from __future__ import annotations

import os
import sys
import uuid
from functools import partial
from typing import Any

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_events import EventLogger
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from traitlets import Unicode

from ..client.places import Places, is_off
from ..wire import routes
from ..wire.views import LeaseView, SessionsView
from . import changes, checkpoint, hints, hosts, restart, settings
from .checkpoint import Checkpoints
from .desk import Desk
from .environment import is_inherited
from .handlers import HANDLERS
from .hosts import Launched
from .link import ServerLink
from .orders import Offers, Orders
from .provisioner import GPUBrokerProvisioner
from .restart import Restarts
from .tap import tapped

PROVISIONER = "gpubroker-provisioner"
_PLAIN_PROVISIONER = "local-provisioner"
RELEASED = "released"  # the reason of a lease that its own user gives back
_CONNECTION_CLASS = "kernel_websocket_connection_class"


class GPUBrokerExtension(ExtensionApp):
    """Lends GPUs to the kernels of this server."""

    name = "gpubroker"
    link: ServerLink | None = None
    desk: Desk | None = None

    broker_url = Unicode(
        "",
        config=True,
        help="The broker to talk to, as `unix:///absolute/path/broker.sock`; empty: $GPUBROKER_URL, "
        "else the machine's broker, else one of your own, which is started when needed.",
    )

    def initialize_settings(self) -> None:
        self._refuse_unknown_keys()
        if is_off():
            self.log.info("gpubroker_off")
            self._become_default_provisioner()
            return
        server = self._server
        assert server.event_logger is not None
        for schema in (changes.LEASE_SCHEMA, hints.CHANGED_SCHEMA):
            server.event_logger.register_event_schema(schema)
        places = Places.find(url=self.broker_url or None)
        self.link = ServerLink(
            places, uuid.uuid4().hex, self.log, self._sessions_seen, self._connected
        )
        emit = partial(_emit, server.event_logger, hints.CHANGED_SCHEMA_ID)
        self.desk = Desk(self.link, server.contents_manager, emit)
        self._checkpoints = Checkpoints(places)
        self._offers = Offers(self.link, self._checkpoints.offer, self.log)
        restarts = Restarts(
            places.state / "restore",
            self.link.has_order,
            partial(self.link.call, routes.ANSWER),
            self._kernel_restarted,
        )
        executors = {
            checkpoint.KIND: self._checkpoints.carry_out,
            restart.KIND: restarts.carry_out,
        }
        undoers = {checkpoint.KIND: self._checkpoints.undo}
        self._orders = Orders(self.link, executors, undoers, self.log)
        self._changes = changes.LeaseChanges(
            partial(_emit, server.event_logger, changes.LEASE_SCHEMA_ID)
        )
        hosts.register(server.kernel_manager, self.link)
        self._become_default_provisioner()
        # In `web_app.settings` it would be overwritten when this method returns.
        base = self.settings[_CONNECTION_CLASS]
        self.settings[_CONNECTION_CLASS] = tapped(base, self.link.watches.get)

    def initialize_handlers(self) -> None:
        for path, handler in HANDLERS.items():
            self.handlers.append((f"/{path}", handler, {"desk": self.desk}))

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:  # noqa: ARG002
        """The server's event loop runs."""
        if self.link is not None:
            self.link.start()
        if self.desk is not None:
            self.desk.start()

    async def stop_extension(self) -> None:
        if self.desk is not None:
            await self.desk.close()
        if self.link is not None:
            await self._offers.close()
            await self._orders.close()
            await self._checkpoints.close()
            await self.link.stop()

    def _refuse_unknown_keys(self) -> None:
        ours = (GPUBrokerExtension, GPUBrokerProvisioner)
        sentences = settings.unknown_keys({**self._server.config, **self.config}, ours)
        if sentences:
            # Without us every kernel would see every GPU: better no server than that.
            sys.exit("\n".join(sentences))

    def _become_default_provisioner(self) -> None:
        factory = KernelProvisionerFactory.instance(parent=self._server)
        if factory.default_provisioner_name in {_PLAIN_PROVISIONER, PROVISIONER}:
            factory.default_provisioner_name = PROVISIONER
        else:
            self.log.warning("other_default_provisioner name=%s", factory.default_provisioner_name)

    def _kernel_restarted(self, kernel: Launched, lease: LeaseView) -> None:
        assert self.link is not None
        watch = self.link.watches.get(str(kernel.body.kernel_id))
        is_asked_for = lease.reason is not None and lease.reason.code == RELEASED
        if watch is not None and not is_asked_for:
            watch.tell_of_restart()

    def _connected(self) -> None:
        """What is started from the server's own environment, such as a terminal, is to see no GPU either."""
        if self.link is not None and self.link.hides_devices and not is_inherited(os.environ):
            os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def _sessions_seen(self, sessions: SessionsView) -> None:
        self._orders.seen(sessions)
        self._offers.seen(sessions)
        self._changes.seen(sessions)

    @property
    def _server(self) -> ServerApp:
        assert self.serverapp is not None
        return self.serverapp


def _emit(logger: EventLogger, schema_id: str, facts: dict[str, Any]) -> None:
    logger.emit(schema_id=schema_id, data=facts)
