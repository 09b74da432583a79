"""The broker's log: one line per event, bounded in length and in files, safe to print.

A line is a time, a level, a logger, a fixed event name and its fields. What users wrote may be in a field, so control and
formatting characters are shown escaped and long lines are cut. Tracebacks stay in their line.
"""

from __future__ import annotations

import logging
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

LINE_CHARACTERS_MAX = 4_000
FILE_BYTES_MAX = 2_000_000
OLD_FILES = 2


class LineFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"
        )

    def format(self, record: logging.LogRecord) -> str:
        line = "".join(
            character if character.isprintable() else ascii(character)[1:-1]
            for character in super().format(record)
        )
        return line if len(line) <= LINE_CHARACTERS_MAX else line[: LINE_CHARACTERS_MAX - 1] + "…"


def log_to(path: Path, level: int | str) -> None:
    """Send what the whole process logs to `path`, which only its owner can read."""
    handler = RotatingFileHandler(
        path,
        maxBytes=FILE_BYTES_MAX,
        backupCount=OLD_FILES,
        encoding="utf-8",
        errors="backslashreplace",
    )
    path.chmod(0o600)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
