"""`gpubroker simulate`: what each way of taking GPUs back would have meant for a recorded workload. Needs no broker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from .options import json_option
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..sim.compare import Comparison, Rules
    from ..sim.meter import Figures
    from ..sim.workload import Workload

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LOAD = re.compile(r"(0(?:\.\d{1,2})?|1(?:\.0{1,2})?)\+(\d(?:\.\d{1,2})?)")


@click.command(cls=Command)
@click.option("--trace", type=_FILE, help="A workload of both kinds (CSV; see docs/simulator.md).")
@click.option("--interactive", type=_FILE, help="Sessions to draw workloads from, with --batch.")
@click.option("--batch", type=_FILE, help="Batch jobs to draw workloads from.")
@click.option(
    "--load", metavar="I+B", help="Shares of capacity drawn for both kinds, such as 0.15+0.65."
)
@click.option("--days", type=click.IntRange(1, 366), help="Length of the drawn workloads.")
@click.option(
    "--redraws", type=click.IntRange(1, 1_000), default=1, show_default=True, help="How many draws."
)
@click.option("--gpus", type=click.IntRange(1, 100_000), required=True, help="GPUs of the pool.")
@click.option("--policy", type=click.File("rb"), help="Rules to try, as in policy.toml.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the first draw.")
@click.option("--only", multiple=True, metavar="NAME", help="This regime only; may be repeated.")
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Run in so many."
)
@json_option
def simulate(
    trace: Path | None,
    interactive: Path | None,
    batch: Path | None,
    load: str | None,
    days: int | None,
    redraws: int,
    gpus: int,
    policy: BinaryIO | None,
    seed: int,
    only: tuple[str, ...],
    processes: int,
    as_json: bool,
) -> None:
    """Replay a recorded workload under the presets, under --policy and under the baselines, and compare.

    Either --trace, or --interactive, --batch, --load and --days for workloads drawn anew from recordings.
    """
    from ..sim.compare import as_data, compare
    from ..sim.workload import BadTrace, read_mixed
    from ..sim.world import Model
    from . import render

    drawing = [each is not None for each in (interactive, batch, load, days)]
    if any(drawing) if trace is not None else not all(drawing):
        raise click.UsageError(
            "Give either --trace, or all of --interactive, --batch, --load and --days."
        )
    try:
        if trace is not None:
            workloads = [read_mixed(trace)]
        else:
            assert interactive is not None
            assert batch is not None
            assert load is not None
            assert days is not None
            workloads = _draws(interactive, batch, load, gpus, days, range(seed, seed + redraws))
        comparisons = compare(
            workloads, gpus, _rules(policy), model=Model(), only=only, processes=processes
        )
    except BadTrace as error:
        raise Ended(Exit.USAGE, "bad_trace", str(error)) from error
    except KeyError as error:
        raise click.UsageError(f"There is no regime {error.args[0]!r}.") from error
    if as_json:
        data = [as_data(comparison) for comparison in comparisons]
        render.echo_json(data[0] if trace is not None else data)
        return
    for number, comparison in enumerate(comparisons):
        if trace is None:
            click.echo(f"Draw {seed + number}")
        _echo(comparison)


def _draws(
    interactive: Path, batch: Path, load: str, gpus: int, days: int, seeds: range
) -> list[Workload]:
    from ..sim.redraw import Load, redrawn
    from ..sim.workload import read_batch, read_interactive

    match = _LOAD.fullmatch(load)
    if match is None:
        raise click.UsageError("--load is two shares of capacity, such as 0.15+0.65.")
    shares = Load(*(round(float(share) * 100) for share in match.groups()))
    notebooks, jobs = read_interactive(interactive), read_batch(batch)
    return [
        redrawn(notebooks, jobs, load=shares, gpus=gpus, days=days, seed=seed) for seed in seeds
    ]


def _rules(policy: BinaryIO | None) -> Rules:
    from ..broker.policy_file import PolicyRefused, parse_policy
    from ..sim.compare import NO_RULES, shipped_rules

    if policy is None:
        return NO_RULES
    try:
        return parse_policy(policy.read().decode(), shipped_rules())
    except (PolicyRefused, UnicodeDecodeError) as error:
        raise Ended(Exit.USAGE, "bad_policy", str(error)) from error


def _echo(comparison: Comparison) -> None:
    from . import render

    headings = (
        "REGIME", "USED", "IDLE", "WANTED", "FIRST P95", "AGAIN P99", "BATCH P50", "BATCH P95", "DONE",
        "RECLAIMS", "FALSE", "PREEMPTED", "LOST", "LONGEST WAIT",
    )  # fmt: skip
    render.echo_table(headings, [_row(name, each) for name, each in comparison.items()])


def _row(name: str, figures: Figures) -> tuple[str, ...]:
    return (
        name,
        _percent(figures.utilisation),
        f"{figures.idle_leased_gpu_h:.0f} GPU-h",
        f"{figures.wanted_idle_gpu_h:.0f} GPU-h",
        _seconds(figures.first_wait_s.p95),
        _seconds(figures.release_wait_s.p99),
        _seconds(figures.batch_completion_s.p50),
        _seconds(figures.batch_completion_s.p95),
        _percent(figures.batch_done_share),
        str(figures.reclaims),
        _percent(figures.false_reclaim_share),
        str(figures.preemptions),
        f"{figures.lost_gpu_h:.0f} GPU-h",
        _seconds(figures.starvation_max_s),
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"
