"""A line of the log is one line, whatever people put into names."""

from __future__ import annotations

import logging
import subprocess
import sys

from jupyter_gpubroker.broker.logs import LINE_CHARACTERS_MAX, LineFormatter, log_to


def line(message: str, *arguments: object, **fields: object) -> str:
    return LineFormatter().format(
        logging.LogRecord("x", logging.INFO, "p", 1, message, arguments, fields.get("exc_info"))  # type: ignore[arg-type]
    )


def test_what_cannot_be_printed_is_escaped() -> None:
    told = line("opened name=%s", "a\nb\x1b[31m\u202e\u2028ñ")
    assert told.endswith("INFO x opened name=a\\nb\\x1b[31m\\u202e\\u2028ñ")


def test_no_codec_is_loaded_for_it_when_no_file_can_be_opened() -> None:
    program = (
        "import logging, sys\n"
        "from jupyter_gpubroker.broker.logs import LineFormatter\n"
        "LineFormatter().format(logging.LogRecord('x', logging.INFO, 'p', 1, 'a\\n', (), None))\n"
        "assert 'encodings.unicode_escape' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_traceback_stays_in_its_line() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        told = line("failed", exc_info=sys.exc_info())
    assert "\n" not in told
    assert told.endswith("ValueError: a\\nb")


def test_a_long_line_is_cut() -> None:
    assert len(line("x" * 100_000)) == LINE_CHARACTERS_MAX


def test_the_file_is_its_owners_alone(tmp_path) -> None:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    path = tmp_path / "broker.log"
    try:
        log_to(path, "INFO")
        logging.getLogger("x").info("hello n=%d", 1)
    finally:
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    assert path.read_text().endswith("INFO x hello n=1\n")
    assert path.stat().st_mode & 0o777 == 0o600
