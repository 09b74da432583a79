"""Starts kernels without a GPU, keeps a lease over a requested restart, and tells the broker who lives and who was ended.

The default provisioner of every kernel of the server. Around it, `KernelManager` calls, in this order:
start:            pre_launch, launch_kernel, post_launch
user restart:     shutdown_requested(restart=True), cleanup(restart=True), pre_launch, ...
death, restarted: kill(restart=False), cleanup(restart=True), pre_launch, ...
shutdown:         shutdown_requested(restart=False), cleanup(restart=False)
too many deaths:  nothing at all but the restarter's "dead" callback
So only `cleanup(restart=False)` and that callback are final, and only an announced restart carries a lease on. A start never
waits for the broker. With GPUBROKER=off this is a plain LocalProvisioner, but that `%gpu` exists and says so.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Bool, CaselessStrEnum

from ..client.places import is_off
from ..wire.bodies import SessionBody
from ..wire.views import SessionView
from . import preload
from .environment import (
    Carried,
    Terms,
    inherited,
    ipykernel_python,
    is_inherited,
    managed,
    switched_off,
    with_magic,
)
from .hosts import Host, Launched, host_of, simulated_state

NAME_MAX = 1024
_HELD = frozenset({"granted", "active"})


class GPUBrokerProvisioner(LocalProvisioner):
    """A LocalProvisioner whose kernels get GPUs from the broker."""

    first_use = CaselessStrEnum(
        ["auto", "hint", "none"],
        default_value="auto",
        config=True,
        help="What happens when a kernel without a GPU imports a library that uses GPUs: "
        "ask for one first (auto), name `%gpu request` (hint), nothing (none).",
    )
    park_torch = Bool(
        False,
        config=True,
        help="Preload torch-memory-saver into kernels whose environment has it, so that PyTorch's "
        "GPU memory can be parked (extra `park`).",
    )

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.session_id: str | None = None
        self._session_name = ""
        self._host: Host | None = None
        self._announced: SessionView | None = None
        self._predecessor: str | None = None
        self._hears_of_death = False

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        kwargs = await super().pre_launch(**kwargs)
        env: dict[str, str] = kwargs["env"]
        argv: list[str] = kwargs["cmd"]
        announced, self._announced = self._announced, None
        self._predecessor, self.session_id = self.session_id, None
        if is_off(env):
            env = switched_off(env)
        elif is_inherited(env):
            env = inherited(env)
        else:
            self.session_id = uuid.uuid4().hex
            self._session_name = self._name(env)
            env = await self._managed(env, argv, carried_by(announced or self._restarts_itself()))
        if ipykernel_python(argv) is not None:
            argv, env = with_magic(argv, env)
        return {**kwargs, "env": env, "cmd": argv}

    async def post_launch(self, **kwargs: Any) -> None:
        await super().post_launch(**kwargs)
        if self.session_id is None or self._host is None or self.pid is None:
            return
        body = SessionBody(
            kind="kernel",
            name=self._session_name,
            pid=self.pid,
            kernel_id=self.kernel_id,
            server_id=self._host.server_id,
            predecessor=self._predecessor,
            headless=self._host.server_id is None,
        )
        self._host.launched(Launched(self.session_id, body, self.parent))
        self._hear_of_death()

    async def shutdown_requested(self, restart: bool = False) -> None:
        await super().shutdown_requested(restart=restart)
        if restart and self.session_id is not None and self._host is not None:
            self._announced = await self._host.restarting(self.session_id)

    async def cleanup(self, restart: bool = False) -> None:
        await super().cleanup(restart=restart)
        if not restart:
            await self._end()

    async def _managed(
        self, env: Mapping[str, str], argv: Sequence[str], carried: Carried | None
    ) -> dict[str, str]:
        assert self.session_id is not None
        if self._host is None:
            self._host = host_of(self.parent, self.log)
        simulated = simulated_state(self._host, env)
        terms = Terms(
            url=self._host.places.url,
            session_id=self.session_id,
            first_use=self.first_use,
            simulated_state=simulated,
            hides_devices=self._host.hides_devices,
            carried=carried,
        )
        prepared = managed(env, terms)
        # Simulated memory is parked by the simulation itself; a headless run is never parked.
        if self.park_torch and simulated is None and self._host.server_id is not None:
            found = await preload.prepare(argv, prepared, self._host.places.state)
            if found.refusal is not None:
                self.log.info(
                    "torch_parking_off kernel=%s reason=%s", self.kernel_id, found.refusal
                )
            prepared.update(found.environment)
        return prepared

    def _restarts_itself(self) -> SessionView | None:
        """The session before, if its kernel announced a restart to the broker and then ended by itself (`%gpu restart`)."""
        if self._predecessor is None or self._host is None:
            return None
        before = self._host.seen(self._predecessor)
        return before if before is not None and before.state == "restarting" else None

    def _name(self, env: Mapping[str, str]) -> str:
        """The notebook's path where the server told it, else the kernel's display name."""
        name = env.get("JPY_SESSION_NAME") or getattr(self.kernel_spec, "display_name", "")
        return str(name or self.kernel_id or "kernel")[:NAME_MAX]

    def _hear_of_death(self) -> None:
        """After too many deaths in a row nothing of ours is called: only the restarter says so."""
        add_callback = getattr(self.parent, "add_restart_callback", None)
        if add_callback is not None and not self._hears_of_death:
            self._hears_of_death = True
            add_callback(self._given_up, "dead")

    def _given_up(self) -> None:
        if self.session_id is not None and self._host is not None:
            self._host.given_up(self.session_id)
            self.session_id = None

    async def _end(self) -> None:
        if self.session_id is not None and self._host is not None:
            session_id, self.session_id = self.session_id, None
            await self._host.ended(session_id)


def carried_by(session: SessionView | None) -> Carried | None:
    """The lease that a session about to be replaced hands to its successor."""
    held = [lease for lease in session.leases if lease.state in _HELD] if session else []
    if not held:
        return None
    return Carried(held[0].id, ",".join(lease.visible_devices for lease in held))
