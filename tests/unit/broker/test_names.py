"""Names come from file names and may contain anything; what is shown of them is one line that reads as it is."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.broker.api.values import name_of


@pytest.mark.parametrize(
    "name",
    [
        "Untitled (1).ipynb",
        'it\'s "mine".ipynb',
        "\u05de\u05d7\u05d1\u05e8\u05ea.ipynb",
        "\U0001f469\u200d\U0001f52c.py",
    ],
)
def test_a_name_of_letters_quotes_and_spaces_stays(name: str) -> None:
    assert name_of(name) == name


@pytest.mark.parametrize("unfit", "\0\n\r\t\x1b\x7f\x9b\u2028\u2029\u202e\u2066\u2069")
def test_controls_and_turns_of_direction_are_replaced(unfit: str) -> None:
    assert name_of(f"a{unfit}b.ipynb") == "a\ufffdb.ipynb"
