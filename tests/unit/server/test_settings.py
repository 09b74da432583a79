"""A misspelt configuration key is an error that names the nearest one."""

from __future__ import annotations

import pytest
from traitlets.config import Config

from jupyter_gpubroker.server.extension import GPUBrokerExtension
from jupyter_gpubroker.server.provisioner import GPUBrokerProvisioner
from jupyter_gpubroker.server.settings import unknown_keys

OURS = (GPUBrokerExtension, GPUBrokerProvisioner)


@pytest.mark.parametrize(
    ("section", "key", "nearest"),
    [
        ("GPUBrokerProvisioner", "firstuse", "c.GPUBrokerProvisioner.first_use"),
        ("GPUBrokerExtension", "broker_uri", "c.GPUBrokerExtension.broker_url"),
        ("GpuBrokerProvisioner", "first_use", "c.GPUBrokerProvisioner"),
    ],
)
def test_an_unknown_key_names_the_nearest(section: str, key: str, nearest: str) -> None:
    [sentence] = unknown_keys(Config({section: {key: 1}}), OURS)
    assert nearest in sentence


def test_known_keys_and_those_of_others_are_left_alone() -> None:
    config = Config(
        {
            "GPUBrokerProvisioner": {"first_use": "none", "park_torch": True},
            "GPUBrokerExtension": {"broker_url": "unix:///x", "log_level": 10},
            "ServerApp": {"nonsense": 1},
        }
    )
    assert unknown_keys(config, OURS) == []


def test_every_setting_says_what_it_does() -> None:
    for cls in OURS:
        for name, trait in cls.class_own_traits(config=True).items():
            assert len(trait.help) > 40, name
