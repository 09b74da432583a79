"""The environment a kernel starts in: no GPU without a lease, exactly its slots with one, and the user's own values kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.server.environment import (
    KERNEL_PATH,
    Carried,
    Terms,
    inherited,
    ipykernel_python,
    is_inherited,
    managed,
    with_magic,
)

TERMS = Terms("unix:///run/broker.sock", "a" * 32, "auto")


def test_a_kernel_without_a_lease_sees_no_gpu() -> None:
    env = managed({"HOME": "/home/u", "CUDA_VISIBLE_DEVICES": "0,1"}, TERMS)
    assert env == {
        "HOME": "/home/u",
        "CUDA_VISIBLE_DEVICES": "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "GPUBROKER_URL": "unix:///run/broker.sock",
        "GPUBROKER_SESSION": "a" * 32,
        "GPUBROKER_FIRST_USE": "auto",
    }


def test_a_kernel_that_restarts_with_its_lease_sees_its_slots() -> None:
    terms = Terms("u", "s", "hint", carried=Carried("lease", "GPU-1,GPU-2"))
    env = managed({}, terms)
    assert (env["CUDA_VISIBLE_DEVICES"], env["GPUBROKER_LEASE"]) == ("GPU-1,GPU-2", "lease")


def test_marks_of_the_kernel_before_are_not_passed_on() -> None:
    old = {"GPUBROKER_LEASE": "old", "GPUBROKER_SESSION": "old", "GPUBROKER_SIMULATED_STATE": "old"}
    env = managed(old, TERMS)
    assert "old" not in env.values()
    assert "GPUBROKER_LEASE" not in env


def test_what_the_user_set_is_kept() -> None:
    mine = {
        "CUDA_DEVICE_ORDER": "FASTEST_FIRST",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "0",
        "GPUBROKER_FIRST_USE": "none",
    }
    assert managed(mine, TERMS).items() >= mine.items()


def test_a_broker_that_only_looks_on_changes_no_devices() -> None:
    terms = Terms("u", "s", "auto", hides_devices=False)
    assert managed({"CUDA_VISIBLE_DEVICES": "3"}, terms)["CUDA_VISIBLE_DEVICES"] == "3"
    env = managed({}, terms)
    assert env.keys() == {"GPUBROKER_URL", "GPUBROKER_SESSION", "GPUBROKER_FIRST_USE"}
    assert env["GPUBROKER_FIRST_USE"] == "none"


def test_simulated_gpus_are_named_where_there_are_any() -> None:
    terms = Terms("u", "s", "auto", simulated_state=Path("/run/sim"))
    assert managed({}, terms)["GPUBROKER_SIMULATED_STATE"] == "/run/sim"


@pytest.mark.parametrize(
    "mark",
    [
        "GPUBROKER_JOB",
        "GPUBROKER_INHERITED",
        "SLURM_JOB_ID",
        "PBS_JOBID",
        "LSB_JOBID",
        "FLUX_JOB_ID",
    ],
)
def test_an_allocation_from_above_is_recognised_and_its_devices_left_alone(mark: str) -> None:
    environ = {mark: "1", "CUDA_VISIBLE_DEVICES": "GPU-1"}
    assert is_inherited(environ)
    assert inherited(environ) == {
        **environ,
        "GPUBROKER_INHERITED": environ.get("GPUBROKER_INHERITED", "1"),
    } | {"GPUBROKER_INHERITED": "1"}


@pytest.mark.parametrize(
    "environ",
    [{}, {"CUDA_VISIBLE_DEVICES": "0"}, {"SLURM_JOB_ID": ""}, {"GPUBROKER_SESSION": "a" * 32}],
)
def test_a_bare_device_variable_or_a_session_is_no_allocation(environ: dict[str, str]) -> None:
    assert not is_inherited(environ)


@pytest.mark.parametrize(
    ("argv", "python"),
    [
        ("python -m ipykernel_launcher -f c.json", "python"),
        (
            "/bin/python3 -Xfrozen_modules=off -m ipykernel -f c",
            "/bin/python3 -Xfrozen_modules=off",
        ),
        ("conda run -n e python -m ipykernel_launcher -f c", "conda run -n e python"),
        ("python -I -m ipykernel_launcher -f c.json", None),
        ("python -E -m ipykernel_launcher -f c.json", None),
        ("python -m bash_kernel -f c.json", None),
        ("R --slave -e IRkernel::main() --args c.json", None),
        ("python -m", None),
        ("", None),
    ],
)
def test_only_an_ipykernel_is_given_the_magic(argv: str, python: str | None) -> None:
    assert ipykernel_python(argv.split()) == (None if python is None else tuple(python.split()))


@pytest.mark.parametrize(
    ("before", "behind"),
    [(None, ""), ("", ""), (":", ""), ("/mine", ":/mine"), (":/mine::/more:", ":/mine:/more")],
)
def test_our_folder_comes_first_and_no_element_of_the_path_is_empty(
    before: str | None, behind: str
) -> None:
    environ = {} if before is None else {"PYTHONPATH": before}
    argv, env = with_magic(["python", "-m", "ipykernel"], environ)
    assert argv == ["python", "-m", "ipykernel", "--ext=gpubroker"]
    assert env["PYTHONPATH"] == f"{KERNEL_PATH}{behind}"


def test_the_folder_holds_what_kernels_import_and_nothing_else() -> None:
    importable = {path.name for path in KERNEL_PATH.iterdir()} - {"__pycache__"}
    assert importable == {"gpubroker"}
