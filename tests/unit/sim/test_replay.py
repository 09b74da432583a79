"""Small worlds acted out: what each way of taking GPUs back does, with figures that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.core.rules import BALANCED, Limits, Queue, Tier
from jupyter_gpubroker.sim.compare import NO_RULES, Rules, as_data, compare
from jupyter_gpubroker.sim.meter import Figures
from jupyter_gpubroker.sim.workload import DAY_MS, BatchJob, Burst, Notebook, Workload
from jupyter_gpubroker.sim.world import Model

MINUTE = 60_000
HOUR = 60 * MINUTE


def notebook(*thinks_ms: int, start_ms: int = 0, gpus: int = 1, name: str = "s") -> Notebook:
    """Bursts of ten minutes with these times between them."""
    bursts = [Burst(gpus, 10 * MINUTE, think_ms) for think_ms in (0, *thinks_ms)]
    return Notebook(name, start_ms, tuple(bursts))


def job(
    submit_ms: int, duration_ms: int = HOUR, gpus: int = 1, name: str = "j", group: str = "g"
) -> BatchJob:
    return BatchJob(name, group, submit_ms, gpus, duration_ms)


def played(
    name: str,
    notebooks: list[Notebook],
    jobs: list[BatchJob],
    gpus: int = 1,
    rules: Rules = NO_RULES,
) -> Figures:
    workload = Workload(tuple(notebooks), tuple(jobs), DAY_MS)
    return compare([workload], gpus, rules, model=Model(), only=[name])[0][name]


LONG_LUNCH = [notebook(3 * HOUR)]
WAITS_AT_NOON = [job(20 * MINUTE)]


def test_hold_keeps_the_gpu_until_the_session_ends() -> None:
    figures = played("hold", LONG_LUNCH, WAITS_AT_NOON)
    assert figures.idle_leased_gpu_h == 3
    assert figures.wanted_idle_gpu_h == pytest.approx(2 + 50 / 60, abs=0.06)
    assert (figures.reclaims, figures.false_reclaim_share) == (0, None)
    assert figures.batch_completion_s.p50 == 4 * 3600


def test_a_timer_takes_it_after_its_time_whether_or_not_somebody_waits() -> None:
    for jobs in (WAITS_AT_NOON, []):
        figures = played("cull-60m", LONG_LUNCH, jobs)
        assert (figures.idle_leased_gpu_h, figures.reclaims) == (1, 1)
        assert figures.false_reclaim_share == 0


def test_a_preset_takes_it_only_when_somebody_waits_and_after_its_notice() -> None:
    figures = played("balanced", LONG_LUNCH, WAITS_AT_NOON)
    taken_ms = BALANCED.idle_ms + BALANCED.notice_ms
    assert figures.reclaims == 1
    assert figures.idle_leased_gpu_h == pytest.approx(taken_ms / HOUR, abs=0.06)
    assert figures.batch_completion_s.p50 == 3600 + (taken_ms - 10 * MINUTE) / 1000
    alone = played("balanced", LONG_LUNCH, [])
    assert (alone.reclaims, alone.idle_leased_gpu_h) == (0, 3)


def test_who_comes_back_during_the_notice_keeps_the_gpu() -> None:
    back_ms = BALANCED.idle_ms + BALANCED.notice_ms - MINUTE
    assert played("balanced", [notebook(back_ms)], WAITS_AT_NOON).reclaims == 0


def test_who_comes_back_soon_after_a_reclaim_was_not_gone() -> None:
    back_ms = BALANCED.idle_ms + BALANCED.notice_ms + 5 * MINUTE
    assert played("balanced", [notebook(back_ms)], WAITS_AT_NOON).false_reclaim_share == 1


def test_the_oracle_holds_a_gpu_only_while_it_works() -> None:
    figures = played("oracle", LONG_LUNCH, WAITS_AT_NOON)
    assert (figures.idle_leased_gpu_h, figures.reclaims, figures.lost_gpu_h) == (0, 0, 0)
    assert figures.batch_completion_s.p50 == 3600


def test_a_closed_loop_a_burst_comes_its_think_time_after_the_one_before_really_ended() -> None:
    firm = Rules(queues=(Queue("batch", Tier.BATCH),))
    waits = played("hold", [notebook(HOUR, start_ms=MINUTE)], [job(0, 2 * HOUR)], rules=firm)
    assert waits.first_wait_s.p50 == 2 * 3600 - 60
    assert waits.idle_leased_gpu_h == 1


def test_a_job_makes_way_and_loses_what_came_after_its_last_checkpoint() -> None:
    figures = played("hold", [notebook(start_ms=50 * MINUTE)], [job(0, 2 * HOUR)])
    assert figures.first_wait_s.p50 == 0
    assert (figures.preemptions, figures.lost_gpu_h) == (1, round(20 / 60, 1))
    lost_s, burst_s, restart_s = 20 * 60, 10 * 60, Model().restart_ms / 1000
    assert figures.batch_completion_s.p50 == 2 * 3600 + lost_s + burst_s + restart_s


def test_a_job_may_be_overtaken_only_for_as_long_as_the_limit_says() -> None:
    jobs = [
        job(0, 2 * HOUR, gpus=1, name="first"),
        job(MINUTE, HOUR, gpus=2, name="large"),
        job(2 * MINUTE, HOUR, gpus=1, name="small"),
    ]
    strict = played("hold", [], jobs, gpus=2)
    first_fit = Rules(limits=replace(Limits(), overtaking_ms=12 * HOUR))
    loose = played("hold", [], jobs, gpus=2, rules=first_fit)
    assert strict.batch_completion_s.p95 == 4 * 3600 - 120
    assert loose.batch_completion_s.p50 == 2 * 3600


def test_the_same_workload_gives_the_same_figures_in_any_number_of_processes() -> None:
    workload = Workload(tuple(LONG_LUNCH), tuple(WAITS_AT_NOON), DAY_MS)
    only = ("hold", "gentle")
    alone = compare([workload] * 2, 1, NO_RULES, model=Model(), only=only)
    assert alone[0] == alone[1]
    assert alone == compare([workload] * 2, 1, NO_RULES, model=Model(), only=only, processes=2)
    assert [*as_data(alone[0])["policies"]] == ["hold", "gentle"]


def test_a_regime_that_does_not_exist_is_named() -> None:
    with pytest.raises(KeyError, match="fast"):
        played("fast", [], [])
