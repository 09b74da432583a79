"""The stories the demo plays, as data: one notebook each, told apart by how its GPU comes back.

All are the same afternoon: work on the GPU, a breakpoint, lunch, a batch job that takes over, and the way back. They
differ in the cell that uses the GPU, and that decides which give-back is the mildest that works.
"""

from __future__ import annotations

from dataclasses import dataclass

VARIABLES = """
import hashlib, random
random.seed(7)
results = [random.random() for _ in range(200_000)]
def fingerprint():
    return hashlib.sha256(repr(results).encode()).hexdigest()[:16]
fingerprint()
"""

IN_A_CHILD = """
import subprocess, sys
train = "from gpubroker import simulated; simulated.burn({seconds}, memory_mib=8_000)"
subprocess.run([sys.executable, "-c", train], check=True)
"""

# The worker has a session of its own, so that what interrupts the cell leaves it alive.
IN_A_WORKER = """
import subprocess, sys
serve = '''
import select, sys
from gpubroker import simulated
model = simulated.allocate(8_000)
while not select.select([sys.stdin], [], [], 0)[0]:
    simulated.burn(0.2)
sys.stdin.read()
'''
worker = subprocess.Popen([sys.executable, "-c", serve], stdin=subprocess.PIPE, start_new_session=True)
try:
    worker.wait()
finally:
    worker.stdin.write(b"rest")
    worker.stdin.flush()
"""

IN_THE_KERNEL = """
import gpubroker
from gpubroker import simulated
{first}
weights = simulated.allocate(8_000)
weights.write(b"what was learned so far")
simulated.burn(600)
"""

CANNOT_BE_MOVED = """
@gpubroker.on_park
def move_to_host():
    raise RuntimeError("this library cannot move its memory")
"""

MOVES = """
@gpubroker.on_park
def move_to_host():
    weights.to_host()
@gpubroker.on_unpark
def move_to_device():
    weights.to_device()
"""

STOP = """
import pdb
def inspect_results():
    pdb.set_trace()
    return len(results)
inspect_results()
"""

READ_MEMORY = """
simulated.burn(0.2)
if weights.read() == b"what was learned so far":
    print("its memory is as it was")
"""


@dataclass(frozen=True, slots=True)
class Story:
    """`model` is the GPU it is played on, and `work` the cell that uses it until it is interrupted.

    With the GPU back, `look_again` prints `says` if all is as it was.
    """

    give_back: str
    model: str
    title: str
    work: str
    look_again: str = READ_MEMORY
    says: str = "its memory is as it was"


EMPTY = Story(
    "empty",
    "H200",
    "The GPU work ran in a child process that has ended: nothing is left on the GPU.",
    IN_A_CHILD.format(seconds=600),
    IN_A_CHILD.format(seconds=0.2) + "print('it works as before')",
    "it works as before",
)
PARKED = Story(
    "parked",
    "H100",
    "The kernel's GPU memory moves to the host and back, with functions the notebook registered.",
    IN_THE_KERNEL.format(first=MOVES),
)
CHECKPOINTED = Story(
    "checkpointed",
    "A100",
    "The notebook's library cannot move its memory, so the driver suspends the kernel's GPU state.",
    IN_THE_KERNEL.format(first=CANNOT_BE_MOVED),
)
KEPT = Story(
    "kept",
    "L40S",
    "A worker process that the notebook started holds the GPU, and nobody but its owner may end it: the lease is kept.",
    IN_A_WORKER,
)
