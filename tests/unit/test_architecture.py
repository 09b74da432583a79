"""docs/architecture.md shows what the code does: its diagrams come from the state tables."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def diagrams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagrams", DOCS / "diagrams.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_diagrams_are_those_of_the_state_tables(diagrams: ModuleType) -> None:
    text = (DOCS / "architecture.md").read_text()
    assert diagrams.with_diagrams(text) == text, "run `make docs`"


def test_a_stale_diagram_is_drawn_anew_and_the_rest_of_the_file_kept(diagrams: ModuleType) -> None:
    stale = f"before\n{diagrams.BEGIN}\nforgotten\n{diagrams.END}\nafter\n"
    drawn = diagrams.with_diagrams(stale)
    assert drawn.startswith(f"before\n{diagrams.BEGIN}\n")
    assert drawn.endswith(f"{diagrams.END}\nafter\n")
    assert "forgotten" not in drawn
    assert "free --> leased: granted" in drawn


def test_a_file_without_markers_is_refused(diagrams: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"architecture\.md needs the lines"):
        diagrams.with_diagrams("no markers here")
