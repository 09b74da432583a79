"""The steps of a story: what the person does, and what must then be seen. Order and names are in `STEPS` and `KEPT_STEPS`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...client import BrokerError
from .notebook import Cell, Failed, JupyterServer, Notebook
from .place import DemoPlace
from .report import Evidence
from .stories import STOP, VARIABLES, Story
from .witness import Witness, environment_of

TRAINING = ("python", "train_digits.py", "--epochs", "6", "--epoch-seconds", "0.1")
PROMPT_QUESTION = "p fingerprint()"
BREAKPOINT_OVER = "c"


class Scene:
    """One story on its stage: the notebook, its lease, and the batch job that wants the GPU."""

    def __init__(
        self, story: Story, place: DemoPlace, server: JupyterServer, witness: Witness
    ) -> None:
        self.story = story
        self._place = place
        self._server = server
        self._witness = witness
        self._notebook: Notebook | None = None
        self._session_id = ""
        self._pid = 0
        self._fingerprint = ""
        self._lease_id = ""
        self._slot = ""
        self._job_id = ""
        self._work: Cell | None = None
        self._stopped_cell: Cell | None = None

    @property
    def notebook(self) -> Notebook:
        """The notebook, which the first step opens."""
        assert self._notebook is not None
        return self._notebook

    async def close(self) -> None:
        """Shut the kernel down; a job that still waits leaves the line."""
        if self._job_id:
            with suppress(BrokerError):  # it has ended already
                await self._witness.cancel(self._job_id)
        if self._notebook is not None:
            await self._notebook.close()

    # --- morning ------------------------------------------------------------------------------------------------------

    async def kernel_started_without_gpu(self) -> Evidence:
        """A notebook is opened."""
        self._notebook = await self._server.open_notebook(f"{self.story.give_back}.ipynb")
        self._pid = int(await self.notebook.evaluate("import os; os.getpid()"))
        visible = environment_of(self._pid).get("CUDA_VISIBLE_DEVICES")
        if visible != "":
            raise Failed(f"the kernel was started with CUDA_VISIBLE_DEVICES={visible!r}")
        self._session_id = (await self._witness.session_of(self.notebook.kernel_id)).id
        self._fingerprint = (await self.notebook.evaluate(VARIABLES)).strip().strip("'")
        return self._evidence("started with CUDA_VISIBLE_DEVICES empty")

    async def lease_granted(self) -> Evidence:
        """`%gpu request`."""
        await self._request()
        return self._evidence("asked with %gpu request")

    async def gpu_work_seen_active(self) -> Evidence:
        """A cell uses the GPU, and goes on doing so."""
        self._work = self.notebook.run(self.story.work)
        lease = await self._witness.lease(
            self._lease_id,
            lambda lease: lease.verdict == "active" and lease.memory_used_mib is not None,
        )
        return self._evidence(f"verdict {lease.verdict}, {lease.memory_used_mib} MiB in use")

    async def batch_job_queued(self) -> Evidence:
        """Somebody submits a batch job that wants the same GPU. It has to wait: nobody takes a GPU that is at work."""
        job = await self._submit()
        self._job_id = job["id"]
        seen = await self._witness.job(self._job_id, lambda job: job.state == "queued")
        return Evidence(
            f"job {seen.id[:8]} waits at place {seen.place}", slot=self._slot, lease=self._lease_id
        )

    async def stopped_at_breakpoint(self) -> Evidence:
        """The person stops the work, looks into it at a breakpoint, and goes for lunch."""
        assert self._work is not None
        await self.notebook.interrupt()
        await self._work.interrupted()
        self._stopped_cell = self.notebook.run(STOP)
        await self.notebook.prompted()
        session = await self._witness.session(
            self._session_id, lambda session: session.activity == "input"
        )
        return self._evidence(f"the kernel waits at a prompt (activity {session.activity})")

    # --- lunch --------------------------------------------------------------------------------------------------------

    async def notice_shown(self) -> Evidence:
        """The notebook says that the GPU will be taken back."""
        lease = await self._witness.lease(
            self._lease_id, lambda lease: lease.notice is not None and lease.notice.shown
        )
        assert lease.notice is not None
        reason = lease.notice.reason
        said = (reason.sentence, reason.sentence_es)
        displays = self.notebook.displays
        await self.notebook.until(lambda: any(text in shown for text in said for shown in displays))
        return self._evidence(reason.sentence)

    async def lease_reclaimed(self) -> Evidence:
        """The GPU goes back, in the way this story is about."""
        over = {"parked", "cleared"}
        lease = await self._witness.lease(self._lease_id, lambda lease: lease.state in over)
        if lease.gave_back != self.story.give_back:
            raise Failed(f"the GPU went back as {lease.gave_back}: {lease.sentence}")
        return self._evidence(await self._left_behind())

    async def lease_kept(self) -> Evidence:
        """Nothing works, so the notebook keeps its GPU, and whoever waits is told why."""
        lease = await self._witness.lease(
            self._lease_id,
            lambda lease: (
                lease.reason is not None and lease.reason.code == "holder_cannot_give_back"
            ),
        )
        if lease.state != "active" or lease.slots != (self._slot,):
            raise Failed(f"the lease is {lease.state}: {lease.sentence}")
        job = await self._witness.job(self._job_id, lambda job: job.state == "queued")
        return self._evidence(f"the job is told: {job.sentence}")

    async def batch_job_started(self) -> Evidence:
        """The batch job has the GPU."""
        job = await self._witness.job(
            self._job_id, lambda job: job.pid is not None or job.state == "ended"
        )
        if job.pid is None or job.lease is None:
            raise Failed(f"the job ended before it was seen running: {job.sentence}")
        visible = job.lease.visible_devices
        if visible != self._slot:
            raise Failed(f"the job got {visible} instead of {self._slot}")
        return Evidence(f"job {job.id[:8]} runs on the same GPU", job.pid, visible, job.lease.id)

    async def batch_job_finished(self) -> Evidence:
        """It trains to its end."""
        job = await self._witness.job(self._job_id, lambda job: job.state == "ended")
        if job.outcome != "finished" or job.exit_status != 0:
            raise Failed(f"the job ended with status {job.exit_status}: {job.sentence}")
        output = await self._gpubroker("logs", self._job_id)
        return Evidence(output.strip().splitlines()[-1], slot=self._slot)

    # --- back at the desk -----------------------------------------------------------------------------------------------

    async def variables_alive(self) -> Evidence:
        """The person looks at the variables, at the prompt where the cell still stands."""
        assert self._stopped_cell is not None
        cell, before = self._stopped_cell, len(self._stopped_cell.text)
        self.notebook.answer(PROMPT_QUESTION)
        await self.notebook.prompted()
        # What is printed comes on another channel than the prompt, and may come after it.
        await self.notebook.until(lambda: "\n" in cell.text[before:])
        said = cell.text[before:]
        if self._fingerprint not in said:
            raise Failed(f"the variables are not what they were: {said.strip()[-200:]}")
        self.notebook.answer(BREAKPOINT_OVER)
        await cell.ended()
        return self._evidence("same values at the breakpoint's prompt, and the cell ran to its end")

    async def lease_granted_again(self) -> Evidence:
        """`%gpu request` again; memory that was away is back as it was."""
        await self._request()
        said = await self.notebook.evaluate(self.story.look_again)
        if self.story.says not in said:
            raise Failed(f"the GPU's memory is not what it was: {said.strip()[-200:]}")
        return self._evidence(f"the same GPU; {self.story.says}")

    # --- how ------------------------------------------------------------------------------------------------------------

    async def _request(self) -> None:
        """Ask as a person does, then see what the broker says and what the kernel sees."""
        await self.notebook.evaluate(f"%gpu request --model {self.story.model}")
        session = await self._witness.session(
            self._session_id,
            lambda session: any(lease.state == "active" for lease in session.leases),
        )
        (lease,) = session.leases
        self._lease_id, (self._slot,) = lease.id, lease.slots
        visible = (
            await self.notebook.evaluate("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
        ).strip()
        if visible != self._slot:
            raise Failed(f"the kernel sees {visible!r} instead of {self._slot}")

    async def _left_behind(self) -> str:
        """What the device itself shows of the kernel, which lives on."""
        left_mib = await self._witness.memory_mib(self._slot, self._pid)
        if self.story.give_back == "parked":
            if left_mib is None or left_mib > 1_024:
                raise Failed(
                    f"a parked kernel should leave a quiet context, the device shows {left_mib} MiB"
                )
            return f"8000 MiB moved to the host; a quiet context of {left_mib} MiB is left"
        if left_mib is not None:
            raise Failed(f"the device still shows {left_mib} MiB of the kernel")
        return "nothing of the kernel is left on the device, and it lives"

    async def _submit(self) -> Any:
        return json.loads(
            await self._gpubroker("submit", "--json", "--model", self.story.model, "--", *TRAINING)
        )

    async def _gpubroker(self, *arguments: str) -> str:
        """Run the command line as a person does in a terminal."""
        argv = [sys.executable, "-m", "jupyter_gpubroker.cli", *arguments]
        return await output_of(argv, self._place.work, self._place.environment)

    def _evidence(self, detail: str) -> Evidence:
        return Evidence(detail, self._pid or None, self._slot or None, self._lease_id or None)


async def output_of(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> str:
    """What a command printed. It has ended when this has, also when this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.communicate()  # its pipes, too, must not outlive the event loop
        raise
    if process.returncode != 0:
        raise Failed(
            f"{' '.join(argv)} ended with {process.returncode}: {errors.decode().strip()[-300:]}"
        )
    return output.decode()


Act = Callable[[Scene], Awaitable[Evidence]]

MORNING: tuple[Act, ...] = (
    Scene.kernel_started_without_gpu,
    Scene.lease_granted,
    Scene.gpu_work_seen_active,
    Scene.batch_job_queued,
    Scene.stopped_at_breakpoint,
    Scene.notice_shown,
)
STEPS: tuple[Act, ...] = (
    *MORNING,
    Scene.lease_reclaimed,
    Scene.batch_job_started,
    Scene.batch_job_finished,
    Scene.variables_alive,
    Scene.lease_granted_again,
)
KEPT_STEPS: tuple[Act, ...] = (*MORNING, Scene.lease_kept, Scene.variables_alive)
