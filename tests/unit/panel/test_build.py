"""The built panel that is committed is the one that its sources give, small, and from nobody else's address."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from jupyter_gpubroker import __version__
from tools import panel, wire_types

COMPRESSED_BYTES_MAX = 150 * 1024
SCRIPTS = sorted((panel.BUILT / "static").glob("*.js"))
SOURCES = sorted(path for path in (panel.SOURCES / "src").rglob("*.ts*"))
# Text of others becomes text nodes; nothing of it may become markup or code.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|: any\b|<any>|as any\b"
)


def test_the_build_is_of_these_sources() -> None:
    assert panel.SEAL.read_text().strip() == panel.digest(), "run make panel and commit"


def test_the_panel_knows_the_api_as_it_is() -> None:
    assert (panel.SOURCES / "src" / "wire.ts").read_text() == wire_types.document(), (
        "run make panel and commit"
    )


def test_the_build_is_whole() -> None:
    package = json.loads((panel.BUILT / "package.json").read_bytes())
    build = package["jupyterlab"]["_build"]
    assert (panel.BUILT / build["load"]).is_file()
    assert (panel.BUILT / "schemas" / "jupyter_gpubroker" / "plugin.json").is_file()


def test_the_panel_has_the_packages_version() -> None:
    for folder in (panel.SOURCES, panel.BUILT):
        assert json.loads((folder / "package.json").read_bytes())["version"] == __version__


def test_the_build_is_small() -> None:
    assert SCRIPTS
    compressed = sum(len(gzip.compress(script.read_bytes())) for script in SCRIPTS)
    assert compressed <= COMPRESSED_BYTES_MAX


def test_every_word_is_there_in_both_languages() -> None:
    """The compiler sees to it as well, but only where it is installed."""
    words = {
        language: re.findall(
            r"^  (\w+):", (panel.SOURCES / "src" / language).read_text(), re.MULTILINE
        )
        for language in ("english.ts", "spanish.ts")
    }
    declared = re.findall(
        r"^  readonly (\w+):", (panel.SOURCES / "src" / "words.ts").read_text(), re.MULTILINE
    )
    said = [word for word in declared if not word.startswith("sentence")]
    assert words["english.ts"] == words["spanish.ts"] == said


def test_the_lock_file_names_no_addresses() -> None:
    assert "://" not in (panel.SOURCES / "yarn.lock").read_text()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: Path(path).name)
def test_no_text_can_become_markup(source: Path) -> None:
    assert FORBIDDEN.search(source.read_text()) is None
