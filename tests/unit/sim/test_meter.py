"""Figures: what is counted, when, and how."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.sim.meter import Meter

HOUR = 3_600_000


def test_gpu_time_is_counted_as_it_passes_between_warm_up_and_end() -> None:
    meter = Meter(4, HOUR, 5 * HOUR)
    meter.leased, meter.bursting = 2, 1
    meter.passes(2 * HOUR)
    meter.waiting = 1
    meter.passes(3 * HOUR)
    meter.waiting, meter.leased, meter.bursting, meter.batch = 0, 0, 0, 4
    meter.passes(9 * HOUR)
    figures = meter.figures()
    assert figures.idle_leased_gpu_h == 2
    assert figures.wanted_idle_gpu_h == 1
    assert figures.utilisation == pytest.approx((2 + 8) / 16)


def test_lost_work_is_not_use() -> None:
    meter = Meter(1, 0, 4 * HOUR)
    meter.batch = 1
    meter.passes(2 * HOUR)
    meter.lost(HOUR)
    meter.passes(4 * HOUR)
    figures = meter.figures()
    assert (figures.utilisation, figures.lost_gpu_h, figures.preemptions) == (0.75, 1, 1)


def test_waits_for_the_first_lease_and_for_one_taken_are_told_apart() -> None:
    meter = Meter(1, 0, 100 * HOUR)
    meter.passes(10_000)
    meter.waited(4_000, is_first=True, is_return=False)
    meter.waited(9_000, is_first=False, is_return=True)
    figures = meter.figures()
    assert (figures.first_wait_s.p50, figures.release_wait_s.p99) == (6, 1)
    assert figures.starvation_max_s == 6


def test_what_was_asked_before_the_warm_up_ended_counts_for_nothing() -> None:
    meter = Meter(1, HOUR, 2 * HOUR)
    meter.job_asked()
    meter.taken()
    meter.passes(HOUR + 1)
    meter.waited(HOUR - 1, is_first=True, is_return=False)
    meter.job_done(HOUR - 1)
    figures = meter.figures()
    assert (figures.first_wait_s.p50, figures.batch_completion_s.p50) == (None, None)
    assert (figures.batch_done_share, figures.reclaims) == (None, 0)


def test_who_still_waits_at_the_end_has_waited_that_long() -> None:
    meter = Meter(1, 0, HOUR)
    meter.job_asked()
    meter.passes(HOUR)
    meter.still_waiting(HOUR // 2)
    figures = meter.figures()
    assert (figures.starvation_max_s, figures.batch_done_share) == (1800, 0)


def test_a_reclaim_is_false_when_the_user_is_back_soon() -> None:
    meter = Meter(1, 0, HOUR)
    for back_ms in (599_999, 600_000):
        meter.taken()
        meter.passes(back_ms)
        meter.came_back(0, 600_000)
    figures = meter.figures()
    assert (figures.reclaims, figures.false_reclaim_share) == (2, 0.5)


def test_groups_that_fare_alike_make_the_index_of_fairness_one() -> None:
    alike, apart = Meter(2, 0, HOUR), Meter(2, 0, HOUR)
    for meter, waits in ((alike, (1_000, 1_000)), (apart, (0, 9_000))):
        meter.passes(10_000)
        for group, wait in zip(("a", "b"), waits, strict=True):
            meter.job_waited(10_000 - wait, group, 1)
            meter.ran(group, 1_000)
    assert alike.figures().jain == 1
    assert apart.figures().jain == pytest.approx(1.1**2 / (2 * 1.01), abs=1e-4)
