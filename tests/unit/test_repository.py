"""The style of this repository, as far as it can be measured, is a test.

The measures are outer bounds: code that reaches them should long have been split. Who may import whom is import-linter's
business (pyproject.toml); what it and ruff cannot say stands here.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jupyter_gpubroker"
CORE = PACKAGE / "core"
KERNEL = PACKAGE / "kernel" / "gpubroker"
MIGRATIONS = PACKAGE / "store" / "migrations"

FILE_LINES_MAX = 500
FILE_KIB_MAX = 600
CORE_FUNCTION_LINES_MAX = 50
FUNCTION_LINES_MAX = 70

# What cannot touch the world: no clock, no randomness, no input or output, no threads.
CORE_MAY_IMPORT = frozenset(
    {"__future__", "abc", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib"}
    | {"heapq", "itertools", "json", "math", "operator", "re", "types", "typing"}
)
# The standard library of Python 3.8, as far as this Python knows it.
PYTHON_38_LIBRARY = sys.stdlib_module_names - {"graphlib", "tomllib", "zoneinfo"}

# Written so that they do not match themselves.
PROMISES = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K|N[o]tImplementedError)\b|mark\.ski[p]\b")
# Where a distribution's module has another name.
MODULES = {"nvidia-ml-py": "pynvml"}
OPTIONAL = {"cuda"}  # the extra `checkpoint`
LINKS = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
ADDRESSES = re.compile(r"inde[x][-_]url|fin[d][-_]links|resolve[d]\W+https?:", re.IGNORECASE)
LOCK_FILES = ("*.lock", "package-lock.json", ".npmrc", ".yarnrc*", "pip.conf", "uv.toml")


def test_no_file_is_longer_than_one_can_keep_in_mind() -> None:
    long = {
        name(path): count for path in python_files() if (count := lines_of(path)) > FILE_LINES_MAX
    }
    assert not long, f"more than {FILE_LINES_MAX} lines"


def test_no_function_is_longer_than_one_can_keep_in_mind() -> None:
    long = {
        f"{name(path)}:{function.lineno} {function.name}": length
        for path in python_files(PACKAGE)
        if MIGRATIONS not in path.parents  # lists of columns
        for function in functions_of(path)
        if (length := body_lines(function)) > function_lines_max(path)
    }
    assert not long


def test_every_module_of_the_package_says_what_it_is_for() -> None:
    assert not [
        name(path) for path in python_files(PACKAGE) if not ast.get_docstring(tree_of(path))
    ]


def test_nothing_is_promised_for_later() -> None:
    assert not matches(PROMISES.search)


def test_the_run_time_dependencies_are_what_the_package_imports() -> None:
    listed = re.search(
        r"^dependencies = \[\n(.*?)^\]", text_of(ROOT / "pyproject.toml"), re.MULTILINE | re.DOTALL
    )
    assert listed is not None
    names = re.findall(r'^  "([\w-]+)', listed[1], re.MULTILINE)
    imported = {
        module
        for path in python_files(PACKAGE)
        if KERNEL not in path.parents
        for module in imports_among(everywhere(tree_of(path)))
    }
    ours = {"jupyter_gpubroker", *OPTIONAL, *sys.stdlib_module_names}
    assert {MODULES.get(name, name.replace("-", "_")) for name in names} == imported - ours


def test_every_link_of_the_documents_leads_to_a_file() -> None:
    assert not [
        f"{name(path)}: {target}"
        for path in files()
        if path.suffix == ".md"
        for target in LINKS.findall(text_of(path))
        if not (path.parent / target).exists()
    ]


def test_no_file_names_the_address_of_a_package_registry() -> None:
    assert not matches(ADDRESSES.search)
    assert not [
        name(path)
        for path in files()
        if any(map(path.match, LOCK_FILES)) and "://" in text_of(path)
    ]


def test_no_file_names_the_place_it_was_written_at() -> None:
    assert not matches(lambda line: str(ROOT) in line)


def test_no_file_is_large() -> None:
    assert not [name(path) for path in files() if path.stat().st_size > FILE_KIB_MAX * 1024]


def test_core_imports_only_what_cannot_touch_the_world() -> None:
    assert not foreign_imports(CORE, everywhere, CORE_MAY_IMPORT)


@pytest.mark.parametrize("path", sorted(KERNEL.glob("**/*.py")), ids=lambda path: path.name)
def test_what_kernels_import_parses_as_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), filename=str(path), feature_version=(3, 8))


def test_what_kernels_import_needs_the_standard_library_alone() -> None:
    assert not foreign_imports(KERNEL, at_the_top, PYTHON_38_LIBRARY)


def test_importing_the_package_imports_nothing_but_the_standard_library() -> None:
    script = "import sys; import jupyter_gpubroker; print(*{name.partition('.')[0] for name in sys.modules})"
    printed = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert set(printed.stdout.split()) <= {
        *sys.stdlib_module_names,
        "__main__",
        "jupyter_gpubroker",
    }


# --- how the files are read ----------------------------------------------------------------------------------------------


@cache
def files() -> tuple[Path, ...]:
    """Every file of the repository, those not yet added included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(
        path for entry in listed.stdout.split("\0") if entry and (path := ROOT / entry).is_file()
    )


def python_files(below: Path = ROOT) -> Iterator[Path]:
    return (path for path in files() if path.suffix == ".py" and below in path.parents)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    """The text of a file; nothing where it is none."""
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path), filename=str(path))


def lines_of(path: Path) -> int:
    return len(text_of(path).splitlines())


def matches(is_wrong: Callable[[str], object]) -> list[str]:
    return [
        f"{name(path)}:{number}: {line.strip()}"
        for path in files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if is_wrong(line)
    ]


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def function_lines_max(path: Path) -> int:
    return CORE_FUNCTION_LINES_MAX if CORE in path.parents else FUNCTION_LINES_MAX


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring_lines = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring_lines


def everywhere(tree: ast.Module) -> Iterable[ast.AST]:
    return ast.walk(tree)


def at_the_top(tree: ast.Module) -> Iterable[ast.AST]:
    """What a module cannot do without: it stands inside of no function, `try` or `if`."""
    return tree.body


def foreign_imports(
    below: Path, nodes_of: Callable[[ast.Module], Iterable[ast.AST]], allowed: frozenset[str]
) -> set[str]:
    return {
        f"{name(path)}: {module}"
        for path in python_files(below)
        for module in imports_among(nodes_of(tree_of(path)))
        if module not in allowed
    }


def imports_among(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """First names of the modules that are imported from outside the package."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
