"""What is printed for people: aligned, bounded, and safe for a terminal whatever a notebook is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpubroker.cli import render


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train.ipynb", "train.ipynb"),
        ("a\nb.ipynb", "a\\nb.ipynb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ('"<b>it\'s</b>".ipynb', '"<b>it\'s</b>".ipynb'),
        ("x" * 50 + "/end.ipynb", "..." + "x" * 27 + "/end.ipynb"),
    ],
)
def test_names_that_users_chose_stay_on_one_line_and_keep_their_end(text, shown):
    assert render.shortened(text) == shown


@given(st.text(max_size=200))
def test_no_name_reaches_the_terminal_with_a_control_character(text):
    shown = render.shortened(text)
    assert shown.isprintable()
    assert len(shown) <= 40


def test_a_table_is_aligned_and_ends_without_blanks(capsys):
    render.echo_table(("ID", "NAME"), [("1", "a"), ("1000", "long name")])
    assert capsys.readouterr().out == "ID    NAME\n1     a\n1000  long name\n"
