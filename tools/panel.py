"""Seals the built panel: notes in it which sources it was made from, so that a test can tell when it is stale.

The panel is committed in its built form (docs/decisions/0006-built-panel-is-committed.md). Usage: panel.py, after a build.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "labextension"
BUILT = ROOT / "jupyter_gpubroker" / "labextension"
SEAL = BUILT / "sources.sha256"
INPUTS = ("package.json", "schema", "src", "style", "tsconfig.json", "yarn.lock")


def sources() -> Iterator[Path]:
    """Every file that the build depends on, in a fixed order."""
    for name in INPUTS:
        path = SOURCES / name
        yield from sorted(path.rglob("*.*")) if path.is_dir() else [path]


def digest() -> str:
    sha256 = hashlib.sha256()
    for path in sources():
        content = path.read_bytes()
        sha256.update(f"{path.relative_to(SOURCES)} {len(content)}\n".encode())
        sha256.update(content)
    return sha256.hexdigest()


if __name__ == "__main__":
    SEAL.write_text(digest() + "\n")
