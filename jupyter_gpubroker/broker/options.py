"""Refuses options and configuration keys that do not exist, naming the nearest that does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traitlets.config import Application, Config

from ..suggestion import nearest


class Unfit(Exception):
    """The broker cannot start as it was told to; the message is for people."""


def check_arguments(arguments: Sequence[str], app: type[Application]) -> None:
    """Every `--name` of the command line is an alias, a flag or Class.trait of `app`. Raises Unfit."""
    known = {
        *(_first(name) for name in (*app.aliases, *app.flags)),
        "help",
        "help-all",
        *_traits(app),
    }
    for argument in arguments:
        if argument.startswith("--"):
            name = argument[2:].partition("=")[0]
            if name not in known:
                raise Unfit(f"There is no option --{name[:80]}. {_nearest(name, known, '--')}")


def check_config(config: Config, app: type[Application]) -> None:
    """Every key of the loaded configuration is a trait of `app`. Raises Unfit."""
    known = set(_traits(app))
    for section, values in config.items():
        keys = [f"{section}.{key}" for key in values] if isinstance(values, Config) else [section]
        for key in keys:
            if key not in known:
                raise Unfit(
                    f"There is no configuration key c.{key[:80]}. {_nearest(key, known, 'c.')}"
                )


def _traits(app: type[Application]) -> Iterable[str]:
    return (f"{app.__name__}.{name}" for name in app.class_traits(config=True))


def _first(name: str | tuple[str, ...]) -> str:
    return name if isinstance(name, str) else max(name, key=len)


def _nearest(word: str, known: Iterable[str], prefix: str) -> str:
    meant = nearest(word, known)
    return "See --help-all." if meant is None else f"Did you mean {prefix}{meant}?"
