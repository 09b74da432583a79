"""What the broker says of processes that use a GPU they were not lent."""

from __future__ import annotations

from typing import Any

from gpubroker import render

from .process import Process

WARNING = {"sentence": "Process 7 is on a GPU.", "sentence_es": "El proceso 7 está en una GPU."}


def view(*warnings: dict[str, str]) -> dict[str, Any]:
    return {"leases": [], "requests": [], "warnings": list(warnings)}


def test_a_warning_is_told_once_before_the_next_cell_and_again_when_it_comes_back(
    process: Process,
) -> None:
    told = []
    for warnings in ([WARNING], [WARNING], [], [WARNING]):
        process.session.saw(view(*warnings))
        process.holder.look()
        told.append(process.notices.take_lines())
    assert told == [["Process 7 is on a GPU."], [], [], ["Process 7 is on a GPU."]]


def test_the_status_names_it_as_long_as_it_lasts() -> None:
    queue = {"free_slots": 0, "slots": 1}
    assert "Process 7 is on a GPU." in render.status(view(WARNING), None, queue)
    assert "Process 7" not in render.status(view(), None, queue)
