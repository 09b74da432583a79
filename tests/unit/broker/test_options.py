"""Misspelt options and keys end the start, naming the right one."""

from __future__ import annotations

import pytest
from traitlets.config import Config

from jupyter_gpubroker.broker.app import BrokerApp
from jupyter_gpubroker.broker.options import Unfit, check_arguments, check_config


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--simulate=2xH200"],
        ["--detach"],
        ["--BrokerApp.idle_exit_s=5"],
        ["--help"],
        ["--policy", "x"],
    ],
)
def test_what_exists_is_accepted(arguments: list[str]) -> None:
    check_arguments(arguments, BrokerApp)


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [
        ("--simulat=2xH200", "--simulate"),
        ("--BrokerApp.idle_exit=5", "--BrokerApp.idle_exit_s"),
        ("--zzzz", "--help-all"),
    ],
)
def test_an_unknown_option_names_the_nearest(argument: str, nearest: str) -> None:
    with pytest.raises(Unfit, match=nearest):
        check_arguments([argument], BrokerApp)


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(Unfit, match=r"Did you mean c.BrokerApp.simulate\?"):
        check_config(Config({"BrokerApp": {"simulated": "x"}}), BrokerApp)
    with pytest.raises(Unfit, match=r"Did you mean c.BrokerApp.simulate\?"):
        check_config(Config({"BrokrApp": {"simulate": "x"}}), BrokerApp)
    check_config(Config({"BrokerApp": {"simulate": "x"}}), BrokerApp)


def test_every_trait_says_what_it_is_and_has_bounds() -> None:
    for name, trait in BrokerApp.class_own_traits(config=True).items():
        assert len(str(trait.help)) > 20, name
        if name.endswith("_s"):
            assert getattr(trait, "min", None) is not None, name
            assert getattr(trait, "max", None) is not None, name
            assert "Seconds" in str(trait.help), name
