"""`python -m jupyter_gpubroker.broker`: reads the configuration, puts the parts together, serves until it is not needed.

A user's broker ends by itself when nothing is held, queued or connected for `idle_exit_s`; any does when its socket was
taken away, or on TERM and INT.
Exit status: 0 done, 1 a bug of ours, 2 configuration or place unfit, 3 another broker is there, 4 the store failed.
Whoever started it hears over `--ready-fd` that it listens.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, cast

from traitlets import Bool, Enum, Float, Integer, List, Unicode, default
from traitlets.config import Application, Config
from traitlets.traitlets import TraitError

from ..client.errors import PlaceRefused
from ..client.places import SIMULATE
from ..core.model import NodeId
from .logs import log_to
from .options import Unfit, check_arguments, check_config
from .place import AnotherBroker, Place
from .scope import ADMINS, MACHINE, USER, scope_of

if TYPE_CHECKING:
    from ..core.events import Event
    from ..core.model import State
    from .service import Agent

EXIT_UNFIT = 2
EXIT_ANOTHER_BROKER = 3

log = logging.getLogger(__name__)


class BrokerApp(Application):
    """Settings of the process. Rules for people (limits, queues) are rows, set by the policy file or the API."""

    name = Unicode("gpubroker-broker")
    description = Unicode("Lends this host's GPUs to your notebooks and batch jobs.")

    scope = Enum(
        [USER, MACHINE],
        USER,
        help="Whom the broker serves: `user`, the one who runs it; `machine`, everybody on this host, "
        "as a service with a system user of its own. Given on the command line alone.",
    ).tag(config=True)
    admin_group = Unicode(
        ADMINS,
        help="The group of people who administer the machine's broker. Root is no admin by itself.",
    ).tag(config=True)
    simulate = Unicode(
        help="GPUs to simulate, such as 2xH200 or 1xA100:3g.40gb+4g.40gb; with auto: in front only "
        "where there is no NVIDIA device. GPUBROKER_SIMULATE goes before a configuration file; without "
        "either it is what was simulated last, only where there is no NVIDIA device."
    ).tag(config=True)
    policy_file = Unicode(
        help="TOML file with policies, queues and limits. Default: GPUBROKER_POLICY, or policy.toml "
        "in the configuration folder if it is there."
    ).tag(config=True)
    idle_exit_s = Float(
        600.0,
        min=0.1,
        max=86_400.0,
        help="Seconds without anything held, queued or connected after which the broker ends (0.1 to 86400).",
    ).tag(config=True)
    observe_every_s = Float(
        1.0, min=0.05, max=60.0, help="Seconds between two looks at the devices (0.05 to 60)."
    ).tag(config=True)
    allowed_users = List(
        Unicode(),
        help="Users who may use any GPU without a lease: never told of nor stopped. Their use keeps a GPU from being lent.",
    ).tag(config=True)
    fence = Bool(
        False,
        help="Let the kernel refuse to open GPUs that were not lent, by a cgroup for each notebook and job. "
        "Needs the rights that docs/threat-model.md names.",
    ).tag(config=True)
    attend_grace_s = Float(
        10.0,
        min=0.1,
        max=600.0,
        help="Seconds after which a request that nobody waits for leaves the line (0.1 to 600).",
    ).tag(config=True)
    config_file = Unicode(
        help="Configuration to read instead of config.py or config.json in the configuration folder."
    ).tag(config=True)
    detach = Bool(False, help="Go on in the background, without parent and terminal.").tag(
        config=True
    )
    ready_fd = Integer(-1, help="File descriptor that gets a line once the broker listens.").tag(
        config=True
    )

    aliases = {  # noqa: RUF012 - traitlets' way
        "scope": "BrokerApp.scope",
        "admin-group": "BrokerApp.admin_group",
        "simulate": "BrokerApp.simulate",
        "policy": "BrokerApp.policy_file",
        "config": "BrokerApp.config_file",
        "idle-exit-s": "BrokerApp.idle_exit_s",
        "observe-every-s": "BrokerApp.observe_every_s",
        "attend-grace-s": "BrokerApp.attend_grace_s",
        "log-level": "BrokerApp.log_level",
        "ready-fd": "BrokerApp.ready_fd",
    }
    flags = {"detach": ({"BrokerApp": {"detach": True}}, str(detach.help))}  # noqa: RUF012

    @default("log_level")
    def _default_log_level(self) -> int:
        return logging.INFO

    @default("simulate")
    def _default_simulate(self) -> str:
        return self.places.remembered_simulation()

    @default("policy_file")
    def _default_policy_file(self) -> str:
        named = os.environ.get("GPUBROKER_POLICY", "")
        usual = self.places.policy
        return named or (str(usual) if usual.exists() else "")

    def initialize(self, argv: Sequence[str] | None = None) -> None:
        """Read options and configuration. Raises Unfit or TraitError."""
        arguments = list(sys.argv[1:] if argv is None else argv)
        check_arguments(arguments, type(self))
        self.parse_command_line(arguments)
        scope = self.scope
        self.places = scope_of(scope, self.admin_group).places
        given = deepcopy(self.config)
        self._load(Path(self.config_file) if self.config_file else None)
        check_config(self.config, type(self))
        asked = os.environ.get(SIMULATE)
        if asked is not None:
            self.update_config(Config(BrokerApp=Config(simulate=asked)))
        self.update_config(given)  # the command line has the last word
        if self.scope != scope:
            raise Unfit(
                "The scope is said on the command line, since it decides which configuration is read: --scope=machine"
            )
        self._scope = scope_of(scope, self.admin_group)
        self._is_simulation_asked = asked is not None or "simulate" in given.get("BrokerApp", {})

    def _load(self, named: Path | None) -> None:
        """Read the configuration that was named, else config.py or config.json where they are."""
        if named is not None and not named.exists():
            raise Unfit(f"The configuration {named} does not exist.")
        path = (named or self.places.config / "config.{py,json}").absolute()
        self.raise_config_file_errors = True
        try:
            self.load_config_file(path.stem, [str(path.parent)])
        except TraitError:
            raise
        except Exception as error:  # the file may be a program, which may fail in any way
            what = f"{type(error).__name__}: {error}"
            raise Unfit(f"The configuration {path} cannot be read ({what}).") from error

    def start(self) -> None:
        """Serve until not needed; ends the process."""
        if self.detach:
            _detach()
        os.umask(0o077)
        self.places.prepare(is_open=self._scope.is_open_to_all)
        place = Place(self.places.lock, self.places.socket, is_open=self._scope.is_open_to_all)
        log_to(self.places.log, cast("int | str", self.log_level))
        sys.exit(asyncio.run(self._serve(place)))

    async def _serve(self, place: Place) -> int:
        # Slow imports, for the one broker that will serve. They make no garbage; looking for it costs a tenth of them.
        gc.disable()
        from .service import EXIT_DONE, Service

        gc.freeze()
        gc.enable()
        service = Service(
            database=self.places.database,
            policy_file=self.policy_file,
            place=place,
            make_agent=self._make_agent,
            idle_exit_s=self.idle_exit_s if self._scope.ends_unused else math.inf,
            attend_grace_s=self.attend_grace_s,
            scope=self._scope,
            simulates=self._simulates(),
            ready=self._tell_ready,
        )
        status = await service.run()
        if status == EXIT_DONE:
            self.places.starts.unlink(missing_ok=True)  # this one was not started in vain
        return status

    def _simulates(self) -> str:
        """What is simulated here, apart from how those GPUs fare; empty where nothing is."""
        from ..agent.local import simulated_spec

        try:
            return simulated_spec(self.simulate, self.places.simulated)
        except ValueError as error:
            raise Unfit(str(error)) from error

    def _make_agent(self, state: Callable[[], State], emit: Callable[[Event], None]) -> Agent:
        """The agent of this host, in this process; its probe is a child."""
        from ..agent.local import local_agent

        node_id = NodeId(platform.node())
        folder = self.places.simulated
        try:
            agent = local_agent(
                node_id,
                self.simulate,
                folder,
                state,
                emit,
                self.observe_every_s,
                self.places.sources,
                self.allowed_users,
                self.fence,
            )
        except ValueError as error:  # what was asked for cannot be here
            raise Unfit(str(error)) from error
        if self._is_simulation_asked:
            self.places.remember_simulation(self.simulate)
        return agent

    def _tell_ready(self) -> None:
        if self.ready_fd >= 0:
            os.write(self.ready_fd, b"+")
            os.close(self.ready_fd)


def main(argv: Sequence[str] | None = None) -> None:
    app = BrokerApp.instance()
    try:
        app.initialize(argv)
        app.start()
    except (Unfit, TraitError, PlaceRefused) as error:
        _end(str(error), EXIT_UNFIT)
    except AnotherBroker as error:
        _end(str(error), EXIT_ANOTHER_BROKER)


def _end(why: str, status: int) -> None:
    sys.stderr.write(f"gpubroker: {why}\n")
    sys.exit(status)


def _detach() -> None:
    """Leave parent and terminal: the starter's child ends at once, its child is nobody's zombie."""
    if os.fork():
        os._exit(0)
