"""Where things are: the folders and the socket of the broker, and which broker a client should talk to.

Rules: folders belong to their user and are closed to others (0700); the socket and the database lie on a local file
system; a socket path fits the 107 bytes that Linux allows. A place that breaks a rule is refused with a sentence, never
repaired. Nothing here talks to a broker (`http`) or starts one (`start`).
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..filesystem import network_file_system
from .errors import PlaceRefused

SIMULATE = "GPUBROKER_SIMULATE"
AUTO = "auto:"
MACHINE_SOCKET = Path("/run/gpubroker/broker.sock")
SOCKET_PATH_BYTES_MAX = 107


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one user's broker on this host. `prepare` makes them; nothing else creates or changes any."""

    runtime: Path
    state: Path
    config: Path
    configured_url: str | None = None

    @classmethod
    def find(cls, environ: Mapping[str, str] | None = None, *, url: str | None = None) -> Places:
        """The places by the environment; `url` is an explicit configuration and wins over GPUBROKER_URL."""
        environ = os.environ if environ is None else environ
        home = Path(environ.get("HOME") or Path("~").expanduser())
        return cls(
            runtime=_runtime_folder(environ),
            state=_absolute(environ, "XDG_STATE_HOME", home / ".local" / "state") / "gpubroker",
            config=_absolute(environ, "XDG_CONFIG_HOME", home / ".config") / "gpubroker",
            configured_url=url or environ.get("GPUBROKER_URL") or None,
        )

    @property
    def socket(self) -> Path:
        return self.runtime / "broker.sock"

    @property
    def lock(self) -> Path:
        return self.runtime / "broker.lock"

    @property
    def starts(self) -> Path:
        """Counts starts in vain (`client.starts`)."""
        return self.runtime / "broker.starts"

    @property
    def simulated(self) -> Path:
        return simulated_beside(self.user_url)

    @property
    def database(self) -> Path:
        return self.state / "broker.db"

    @property
    def log(self) -> Path:
        return self.state / "broker.log"

    @property
    def sources(self) -> Path:
        """Exporters that tell what the driver does not (`gpubroker admin sources`)."""
        return self.state / "sources.json"

    @property
    def runner_log(self) -> Path:
        return self.state / "runner.log"

    @property
    def policy(self) -> Path:
        return self.config / "policy.toml"

    @property
    def simulation(self) -> Path:
        """Remembers which GPUs were simulated last, for a broker that is started by somebody who does not say."""
        return self.state / "simulate"

    def remembered_simulation(self) -> str:
        """As `GPUBROKER_SIMULATE`; always for use only where there is no NVIDIA device at all. Empty for none."""
        try:
            found = self.simulation.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return found and AUTO + found.removeprefix(AUTO)

    def remember_simulation(self, setting: str) -> None:
        """Until another is remembered; an empty one says that nothing is to be simulated."""
        if setting:
            self.simulation.write_text(AUTO + setting.removeprefix(AUTO) + "\n", encoding="utf-8")
        else:
            self.simulation.unlink(missing_ok=True)

    @property
    def off_marker(self) -> Path:
        """`gpubroker off` leaves this file, `gpubroker on` takes it away."""
        return self.config / "off"

    @property
    def user_url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def url(self) -> str:
        """The broker to talk to: the configured one, else the machine's if there is one, else the user's own."""
        if self.configured_url is not None:
            return self.configured_url
        return f"unix://{MACHINE_SOCKET}" if MACHINE_SOCKET.exists() else self.user_url

    @property
    def may_start(self) -> bool:
        """Only the user's own broker is started by clients; one that is configured or the machine's is not."""
        return self.url == self.user_url

    def prepare(self, *, is_open: bool = False) -> None:
        """Make the folders of runtime and state and check them. Raises PlaceRefused.

        `is_open`: everybody may come to the socket (and nobody else may put one there).
        """
        check_length(self.socket)
        _own_folder(self.runtime, 0o755 if is_open else 0o700)
        _own_folder(self.state, 0o700)
        network = network_file_system(self.runtime)
        if network is not None:
            raise PlaceRefused(
                f"{self.runtime} lies on a network file system ({network}), where a socket and its lock are not safe. "
                f"Set XDG_RUNTIME_DIR to a folder of yours on a local disk of this machine."
            )


def is_off(environ: Mapping[str, str] | None = None) -> bool:
    """Has the user said that the broker shall stay out of everything?"""
    environ = os.environ if environ is None else environ
    return is_off_by_variable(environ) or Places.find(environ).off_marker.exists()


def is_off_by_variable(environ: Mapping[str, str]) -> bool:
    """Is it GPUBROKER that says so, which `gpubroker on` cannot take back?"""
    return environ.get("GPUBROKER", "").lower() == "off"


def simulated_beside(url: str) -> Path:
    """Where the simulated GPUs of the broker at `url` keep their state: beside its socket."""
    return Path(url.removeprefix("unix://")).parent / "simulated"


def check_length(socket: Path) -> None:
    """Raises PlaceRefused when the path is too long to bind."""
    length = len(os.fsencode(socket))
    if length > SOCKET_PATH_BYTES_MAX:
        raise PlaceRefused(
            f"The socket path {socket} has {length} bytes; Linux allows {SOCKET_PATH_BYTES_MAX}. "
            "Set XDG_RUNTIME_DIR to a folder with a shorter name."
        )


def _absolute(environ: Mapping[str, str], name: str, default: Path) -> Path:
    # A relative path is invalid and is to be ignored (XDG Base Directory Specification).
    value = Path(environ.get(name) or default)
    return value if value.is_absolute() else default


def _runtime_folder(environ: Mapping[str, str]) -> Path:
    given = environ.get("XDG_RUNTIME_DIR", "")
    # After `su` or `sudo -E` the variable may name another user's folder, or one that does not exist.
    if given.startswith("/") and _is_own_folder(Path(given)):
        return Path(given) / "gpubroker"
    return Path(tempfile.gettempdir()) / f"gpubroker-{os.getuid()}"


def _is_own_folder(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _own_folder(path: Path, mode: int) -> None:
    """A folder of ours, made if it is not there, that nobody has more rights to than `mode` says."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir()
            path.chmod(mode)
        found = path.lstat()
    except OSError as error:
        raise PlaceRefused(
            f"The folder {path} cannot be used: {error.strerror}. Make it, or name another place."
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PlaceRefused(
            f"{path} is not a folder of yours. Remove it, or set XDG_RUNTIME_DIR or TMPDIR."
        )
    if found.st_mode & 0o777 & ~mode:
        raise PlaceRefused(f"The folder {path} is open to others. Close it: chmod {mode:o} {path}")
