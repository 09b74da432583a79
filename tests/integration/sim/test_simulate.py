"""`gpubroker simulate` on recorded workloads, and its agreement with an independent simulator of the same model."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jupyter_gpubroker.cli.app import gpubroker
from jupyter_gpubroker.core.rules import Limits
from jupyter_gpubroker.sim.compare import NO_RULES, Rules, compare
from jupyter_gpubroker.sim.meter import Figures
from jupyter_gpubroker.sim.workload import read_mixed
from jupyter_gpubroker.sim.world import Model

ROOT = Path(__file__).parents[3]
SMALL = ROOT / "examples" / "traces" / "mix_16gpu_2d.csv"
LARGE = Path(os.environ.get("GPUBROKER_TRACES", ROOT.parent / "shared" / "traces"))
HOUR_MS = 3_600_000

KEYS = {
    "utilisation", "idle_leased_gpu_h", "wanted_idle_gpu_h", "first_wait_s", "release_wait_s", "batch_completion_s",
    "batch_done_share", "reclaims", "false_reclaim_share", "preemptions", "lost_gpu_h", "starvation_max_s", "jain",
    "estimate_error_p50",
}  # fmt: skip


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(gpubroker, ["simulate", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


@pytest.mark.timeout(300)
def test_every_regime_is_compared_on_one_workload_and_all_figures_are_there() -> None:
    data: dict[str, Any] = json.loads(run("--trace", str(SMALL), "--gpus", "16", "--json"))
    policies = data["policies"]
    assert {*policies} == {
        "hold", "cull-60m", "fixed-30m", "fixed-20m", "oracle", "gentle", "balanced",
    }  # fmt: skip
    for figures in policies.values():
        assert {*figures} == KEYS
    idle = {name: figures["idle_leased_gpu_h"] for name, figures in policies.items()}
    assert idle["oracle"] == 0
    assert idle["fixed-20m"] < idle["fixed-30m"] < idle["cull-60m"] < idle["hold"]
    assert policies["balanced"]["reclaims"] < policies["fixed-20m"]["reclaims"]
    assert policies["gentle"]["reclaims"] < policies["fixed-30m"]["reclaims"]


def test_a_table_for_people_names_only_what_was_asked_for() -> None:
    lines = run("--trace", str(SMALL), "--gpus", "16", "--only", "hold").splitlines()
    assert lines[0].startswith("REGIME")
    assert [line.split()[0] for line in lines[1:]] == ["hold"]


def test_a_sites_own_rules_are_a_regime(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[policies.ours]\nidle = "45m"\nnotice = "10m"\n')
    out = run(
        "--trace", str(SMALL), "--gpus", "16", "--policy", str(policy), "--only", "ours", "--json"
    )
    assert [*json.loads(out)["policies"]] == ["ours"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--trace", str(SMALL), "--days", "2"],
        ["--trace", str(SMALL), "--only", "fast"],
        ["--trace", __file__],
    ],
)
def test_wrong_usage_ends_with_a_sentence(arguments: list[str]) -> None:
    assert run("--gpus", "16", *arguments, exit_code=2)


def test_workloads_drawn_anew_are_a_list_and_repeatable(tmp_path: Path) -> None:
    interactive, batch = tmp_path / "i.csv", tmp_path / "b.csv"
    interactive.write_text(
        "submit_s,session,gpus,duration_s,think_s\n"
        + "".join(f"{n * 600},s{n},1,1200,\n{n * 600 + 9000},s{n},1,600,5400\n" for n in range(60))
    )
    batch.write_text(
        "submit_s,duration_s,gpus,group\n"
        + "".join(f"{n * 900},3000,1,g{n % 3}\n" for n in range(120))
    )
    drawn = [
        "--interactive", str(interactive), "--batch", str(batch), "--load", "0.2+0.4", "--gpus", "4",
        "--days", "1", "--redraws", "2", "--seed", "3", "--only", "balanced", "--json",
    ]  # fmt: skip
    first = json.loads(run(*drawn))
    assert len(first) == 2
    assert first == json.loads(run(*drawn))
    assert first[0] != first[1]


# --- agreement with an independent simulator ------------------------------------------------------------------------

large = pytest.mark.skipif(
    not (LARGE / "mix_128gpu_15d.csv").exists(),
    reason="needs mix_128gpu_15d.csv in the folder that GPUBROKER_TRACES names",
)


def on_128_gpus(name: str, rules: Rules = NO_RULES) -> Figures:
    workload = read_mixed(LARGE / "mix_128gpu_15d.csv")
    return compare([workload], 128, rules, model=Model(), only=[name])[0][name]


@large
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "idle_gpu_h"),
    [pytest.param("hold", 7_576, marks=pytest.mark.long), ("cull-60m", 1_561)],
)
def test_idle_time_agrees_with_the_independent_simulator(name: str, idle_gpu_h: float) -> None:
    figures = on_128_gpus(name)
    assert figures.idle_leased_gpu_h == pytest.approx(idle_gpu_h, rel=0.05)
    if name == "hold":
        assert figures.utilisation == pytest.approx(0.779, abs=0.015)


@large
@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_bound_agrees_where_jobs_may_be_overtaken_as_there() -> None:
    """There, jobs that fit pass the first in line for twelve hours; here nobody overtakes unless a limit says so."""
    first_fit = Rules(limits=replace(Limits(), overtaking_ms=12 * HOUR_MS))
    figures = on_128_gpus("oracle", first_fit)
    assert figures.utilisation == pytest.approx(0.792, abs=0.015)
    assert figures.batch_completion_s.p50 == pytest.approx(5_710, rel=0.10)
    assert figures.idle_leased_gpu_h == 0
