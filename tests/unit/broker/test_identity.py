"""What a caller is called: by name as soon as the machine knows one."""

from __future__ import annotations

import grp
import pwd
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpubroker.broker import identity

NOBODYS = 3_999_999_901


def unknown(_number: int) -> Any:
    raise KeyError


def test_a_name_that_was_not_found_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(grp, "getgrgid", unknown)
    names = identity.owner_name(NOBODYS), identity._group_name(NOBODYS)
    assert names == (f"uid:{NOBODYS}", f"gid:{NOBODYS}")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="ana"))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="lab"))
    assert (identity.owner_name(NOBODYS), identity._group_name(NOBODYS)) == ("ana", "lab")
    identity._found_user.cache_clear()
    identity._found_group.cache_clear()
