"""The group of all commands. Each is imported only when it is called or its help is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click

from .. import __version__
from .outcome import EXIT_CODES

# Where each command is, and what the list of commands says of it, so that the list imports none of them.
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "status": (".look:status", "What you hold and wait for, and what is free."),
        "gpus": (".look:gpus", "All GPUs and their slots."),
        "queue": (".look:queue", "Who waits, in order."),
        "run": (".run:run", "Wait for a GPU, run a command with it, give it back."),
        "submit": (".batch:submit", "Queue a command as a batch job and print its id."),
        "jobs": (".look:jobs", "Your batch jobs."),
        "logs": (".batch:logs", "What a batch job wrote."),
        "cancel": (".batch:cancel", "Stop a batch job, or leave the line."),
        "keep": (".hold:keep", "Keep an idle lease for a while."),
        "release": (".hold:release", "Give a lease back."),
        "policies": (".look:policies", "The rules: when an idle GPU may go."),
        "why": (".look:why", "Why a lease, a request or a job is as it is."),
        "doctor": (".doctor:doctor", "Check what can go wrong, and say what to do."),
        "probe": (".probe:probe", "Read the devices, past the broker."),
        "simulate": (".simulate:simulate", "Replay a recorded workload and compare the rules."),
        "broker": (
            ".local:broker",
            "Run the broker in the foreground, or --stop the one that runs.",
        ),
        "off": (".local:off", "Keep the broker out of everything you start."),
        "on": (".local:on", "Take `off` back."),
        "usage": (
            ".usage:usage",
            "GPU time by person, and what the rules took or would have taken.",
        ),
        "admin": (".admin:admin", "Modes, GPUs, rules, everybody's leases, the audit."),
        "demo": (".demo:demo", "Play the whole story by itself, on simulated GPUs."),
    }
)


class LazyGroup(click.Group):
    """Commands in the order of the table; `COMMANDS` says where each is found."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Every command there is."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module, __package__), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def gpubroker() -> None:
    """Lends GPUs and MIG slices to notebooks and batch jobs, and takes idle ones back without destroying work.

    Ids may be shortened as long as they name one thing.
    """
