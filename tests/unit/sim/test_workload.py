"""Workloads are read completely or refused with the line that is wrong; draws make up the load asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.sim.redraw import DURATION_MS_MAX, Load, redrawn
from jupyter_gpubroker.sim.workload import (
    DAY_MS,
    BadTrace,
    BatchJob,
    Burst,
    Notebook,
    Workload,
    read_batch,
    read_interactive,
    read_mixed,
)

HEADER = "submit_s,id,kind,session,group,gpus,duration_s,priority,think_s\n"
HOUR_MS = 3_600_000


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_rows_become_sessions_with_their_bursts_in_order_and_jobs(tmp_path: Path) -> None:
    rows = (
        "90000,b,interactive,s,s,4,60,100,30\n"
        "5,j,batch,,team,2,100,10,\n"
        "10,a,interactive,s,s,1,120,100,\n"
    )
    workload = read_mixed(written(tmp_path, HEADER + rows))
    assert workload.notebooks == (
        Notebook("s", 10_000, (Burst(1, 120_000), Burst(4, 60_000, 30_000))),
    )
    assert workload.notebooks[0].gpus == 4
    assert workload.jobs == (BatchJob("j", "team", 5_000, 2, 100_000),)
    assert workload.length_ms == DAY_MS


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("5,j,batch,,g,0,100,10,\n", "line 2: gpus"),
        ("5,j,batch,,g,1,soon,10,\n", "line 2: duration_s"),
        ("-5,j,batch,,g,1,100,10,\n", "line 2: submit_s"),
        ("5,j,other,,g,1,100,10,\n", "'other'"),
        ("5,j,interactive,,g,1,100,10,\n", "names its session"),
        ("5,j\n", "''"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path: Path, row: str, what: str) -> None:
    with pytest.raises(BadTrace, match=what):
        read_mixed(written(tmp_path, HEADER + row))


def test_a_missing_column_or_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="'kind' is missing"):
        read_mixed(written(tmp_path, "submit_s,gpus,duration_s\n1,1,1\n"))
    with pytest.raises(BadTrace, match="cannot be read"):
        read_batch(tmp_path / "none.csv")


def test_what_a_pool_could_never_serve_is_left_out() -> None:
    large, small = (BatchJob(str(n), "g", 0, n, 1_000) for n in (9, 8))
    assert Workload((), (large, small), DAY_MS).within(8).jobs == (small,)


def test_the_two_kinds_are_read_from_files_of_their_own(tmp_path: Path) -> None:
    interactive = written(tmp_path, "submit_s,session,gpus,duration_s,think_s\n7,s,2,60,\n")
    assert read_interactive(interactive) == (Notebook("s", 7_000, (Burst(2, 60_000),)),)
    batch = written(tmp_path, "submit_s,duration_s,gpus,group\n7,60,1,team\n")
    assert read_batch(batch) == (BatchJob("job0", "team", 7_000, 1, 60_000),)


def test_busy_time_ends_with_the_workload() -> None:
    notebook = Notebook("s", 1_000, (Burst(2, 3_000), Burst(1, 10_000, 1_000)))
    assert notebook.busy_gpu_ms(100_000) == 16_000
    assert notebook.busy_gpu_ms(7_000) == 8_000
    assert notebook.busy_gpu_ms(500) == 0


# --- redraws ----------------------------------------------------------------------------------------------------------


def recorded() -> tuple[list[Notebook], list[BatchJob]]:
    notebooks = [Notebook(f"s{n}", n * 60_000, (Burst(1, HOUR_MS),)) for n in range(100)]
    jobs = [BatchJob(f"j{n}", "g", n * HOUR_MS, 1, HOUR_MS) for n in range(200)]
    return notebooks, jobs


def draw(seed: int = 1, load: Load | None = None) -> Workload:
    notebooks, jobs = recorded()
    return redrawn(notebooks, jobs, load=load or Load(20, 50), gpus=4, days=2, seed=seed)


def test_a_draw_makes_up_the_load_within_its_days() -> None:
    workload = draw()
    capacity = 4 * workload.length_ms
    busy = sum(one.busy_gpu_ms(workload.length_ms) for one in workload.notebooks)
    work = sum(job.gpus * job.duration_ms for job in workload.jobs)
    assert busy / capacity == pytest.approx(0.2, rel=0.03)
    assert work / capacity == pytest.approx(0.5, rel=0.03)
    assert all(job.submit_ms < workload.length_ms for job in workload.jobs)
    assert [job.submit_ms for job in workload.jobs] == sorted(j.submit_ms for j in workload.jobs)


def test_the_same_seed_draws_the_same_and_another_something_else() -> None:
    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_jobs_that_would_decide_everything_alone_are_left_out() -> None:
    notebooks, jobs = recorded()
    giants = [
        BatchJob("wide", "g", 0, 16, HOUR_MS),
        BatchJob("long", "g", 0, 1, DURATION_MS_MAX + 1),
    ]
    workload = redrawn(notebooks, giants + jobs, load=Load(10, 20), gpus=32, days=1, seed=1)
    assert {"wide", "long"}.isdisjoint(job.id for job in workload.jobs)


def test_too_small_a_recording_is_refused() -> None:
    with pytest.raises(BadTrace, match="recorded sessions make up"):
        draw(load=Load(90, 10))
