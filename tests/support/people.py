"""Several people on one machine: a broker of its scope under a uid of its own, and clients that really are others.

Only root can become somebody else, and every uid must be able to run our Python: `NOT_SEVERAL` says what is missing.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
SYSTEM_PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
BROKER_UID = 64_001
ADMINS_GID = 64_100
START_S = 30.0


@dataclass(frozen=True)
class Person:
    """A uid that need not be in any list of users, with the groups of its login."""

    uid: int
    groups: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """As the broker names who has no login name."""
        return "root" if self.uid == 0 else f"uid:{self.uid}"


ADA, BOB = Person(64_002), Person(64_003)
ADMIN = Person(64_004, (ADMINS_GID,))
ROOT = Person(0)


def _base() -> str | None:
    """An interpreter of our version that everybody may run."""
    for python in (os.path.realpath(sys.executable), SYSTEM_PYTHON):
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                [python, "-c", ""], user=BROKER_UID, group=BROKER_UID, extra_groups=[], check=True
            )
            return python
    return None


BASE = _base() if os.getuid() == 0 else None
NOT_SEVERAL = (
    None
    if BASE is not None
    else "only root can become somebody else"
    if os.getuid()
    else "no Python that every user may run"
)


@cache
def python() -> str:
    """One for everybody that finds this package and all it needs, without a word of the environment."""
    assert BASE is not None
    folder = Path(tempfile.mkdtemp(prefix="gbp-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    subprocess.run([BASE, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    paths = [str(REPOSITORY), sysconfig.get_paths()["purelib"]]
    (packages / "everybody.pth").write_text("\n".join(paths) + "\n")
    return str(folder / "bin" / "python")


def start(
    who: Person,
    arguments: Sequence[str],
    environ: Mapping[str, str],
    within: Sequence[str] = (),
    **options: Any,
) -> subprocess.Popen[Any]:
    """Our Python as `who`, with nothing inherited but what is given; `within` is a command that runs it."""
    return subprocess.Popen(
        [*within, python(), *arguments],
        user=who.uid,
        group=who.uid,
        extra_groups=list(who.groups),
        env={"PATH": os.environ["PATH"], **environ},
        cwd="/",
        **options,
    )


@dataclass(frozen=True)
class Machine:
    """The broker of a machine. `root` is where its folders and those of the people are."""

    root: Path
    process: subprocess.Popen[Any]

    @property
    def url(self) -> str:
        return f"unix://{self.root}/run/broker.sock"

    def environ(self, who: Person) -> dict[str, str]:
        home = str(self.root / f"home-{who.uid}")
        return {
            "HOME": home,
            "GPUBROKER_URL": self.url,
            "XDG_CONFIG_HOME": home,
            "XDG_RUNTIME_DIR": home,
            "XDG_STATE_HOME": home,
        }

    def acts(self, who: Person, code: str, *arguments: str) -> Any:
        """What `code` prints, as JSON, when `who` runs it."""
        child = start(who, ["-c", code, *arguments], self.environ(who), stdout=subprocess.PIPE)
        output, _ = child.communicate(timeout=60)
        assert child.returncode == 0
        return json.loads(output)

    def says(self, who: Person, *arguments: str) -> tuple[int, str]:
        """The exit status and all output of the command line of `who`."""
        child = start(
            who,
            ["-m", "jupyter_gpubroker.cli", *arguments],
            self.environ(who),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = child.communicate(timeout=60)
        return child.returncode, output.decode()


@contextmanager
def machine_broker(
    *arguments: str, people: Sequence[Person] = (ADA, BOB, ADMIN)
) -> Iterator[Machine]:
    """A broker of machine scope with simulated GPUs, that listens; its admins are who is in ADMINS_GID."""
    root = Path(tempfile.mkdtemp(prefix="gbm-", dir="/tmp"))
    root.chmod(0o755)
    for name, uid, mode in [
        ("run", BROKER_UID, 0o755),
        ("state", BROKER_UID, 0o700),
        ("config", BROKER_UID, 0o755),
        *((f"home-{who.uid}", who.uid, 0o700) for who in people),
    ]:
        folder = root / name
        folder.mkdir(mode=mode)
        os.chown(folder, uid, uid)
    told, tells = os.pipe()
    process = start(
        Person(BROKER_UID),
        [
            *(
                "-m",
                "jupyter_gpubroker.broker",
                "--scope=machine",
                f"--admin-group=gid:{ADMINS_GID}",
            ),
            *("--simulate=2xH200", "--observe-every-s=0.1", f"--ready-fd={tells}", *arguments),
        ],
        {
            "HOME": str(root / "state"),
            "RUNTIME_DIRECTORY": str(root / "run"),
            "STATE_DIRECTORY": str(root / "state"),
            "CONFIGURATION_DIRECTORY": str(root / "config"),
        },
        pass_fds=[tells],
    )
    os.close(tells)
    try:
        with os.fdopen(told, "rb", buffering=0) as pipe:
            assert select.select([pipe], [], [], START_S)[0]
            assert pipe.read(1), "the broker ended: see its standard error"
        yield Machine(root, process)
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(root, ignore_errors=True)
