"""One replay: people and jobs act a workload out, the core decides, the meter counts.

The same workload, regime, rules and model give the same figures.
"""

from __future__ import annotations

from ..core.events import PolicyApplied
from ..core.model import Job, Lease
from .batch import Batch
from .meter import Figures, Meter
from .notebooks import Notebooks
from .regimes import Regime
from .workload import Workload
from .world import Model, World, open_pool


def replay(
    workload: Workload, gpus: int, regime: Regime, rules: PolicyApplied, model: Model
) -> Figures:
    """What the workload comes to on so many GPUs."""
    model = model.fitting(workload, regime)
    meter = Meter(gpus, model.warm_up_ms, workload.length_ms)

    def changed(entity: Lease | Job) -> None:
        if isinstance(entity, Job):
            batch.changed(entity)
        elif entity.job_id is None:
            notebooks.changed(entity)

    world = World(meter.passes, changed)
    notebooks = Notebooks(workload.notebooks, world, meter, regime, model)
    batch = Batch(workload.jobs, world, meter, model)
    open_pool(world, workload, gpus, regime, rules)
    world.run(workload.length_ms)
    notebooks.close()
    batch.close()
    return meter.figures()
