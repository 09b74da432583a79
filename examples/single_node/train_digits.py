"""Train a small network on scikit-learn's handwritten digits; stop it at any time and start it again where it was.

    gpubroker submit --name digits -- python train_digits.py

The arithmetic is NumPy's, so that it runs anywhere. Where the job was given a GPU, the GPU is used meanwhile: a simulated
one through `gpubroker.simulated`, a real one through PyTorch if that is installed. On SIGTERM the state is written to
the checkpoint file and the program ends with status 143, as the shell says of a terminated program; the next run
goes on from there and reaches the very same weights as one that was never stopped. Ends with 0 at >= 90 % accuracy.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

GOOD_ACCURACY = 0.9
HIDDEN = 64
BATCH = 64
LEARNING_RATE = 0.2
TERMINATED = 128 + signal.SIGTERM

stop_asked = False


def main() -> int:
    """Train, and say how well; the exit status is for scripts."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, remember_to_stop)
    print(f"training as pid {os.getpid()} on {device_name()}", flush=True)
    train_images, train_digits, test_images, test_digits = load_data()
    weights, first_epoch = resume(arguments.checkpoint, arguments.seed)
    work = device_work()
    for epoch in range(first_epoch, arguments.epochs):
        began = time.monotonic()
        train_epoch(weights, train_images, train_digits, seed=arguments.seed + epoch)
        work(max(0.0, arguments.epoch_seconds - (time.monotonic() - began)))
        accuracy = measure(weights, test_images, test_digits)
        print(
            f"epoch {epoch + 1}/{arguments.epochs}: {accuracy:.1%} of the test digits recognised",
            flush=True,
        )
        if stop_asked and epoch + 1 < arguments.epochs:
            save(arguments.checkpoint, weights, epoch + 1)
            print(
                f"stopped; the state after epoch {epoch + 1} is in {arguments.checkpoint}",
                flush=True,
            )
            return TERMINATED
    arguments.checkpoint.unlink(missing_ok=True)
    accuracy = measure(weights, test_images, test_digits)
    print(f"done: {accuracy:.1%} of {len(test_digits)} test digits recognised", flush=True)
    return 0 if accuracy >= GOOD_ACCURACY else 1


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument(
        "--epochs", type=int, default=12, help="passes over the training data (default 12)"
    )
    parser.add_argument(
        "--epoch-seconds", type=float, default=0.25, help="least time of a pass (default 0.25)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--checkpoint",
        type=Path,
        default=Path("digits-checkpoint.npz"),
        help="where the state is kept when stopped",
    )
    return parser.parse_args()


def remember_to_stop(_signal: int, _frame: FrameType | None) -> None:
    """Only note the wish: the state is whole at the end of an epoch."""
    global stop_asked  # noqa: PLW0603 - a signal handler has no other place to leave word
    stop_asked = True


# --- the network: 64 pixels, one hidden layer, 10 digits ------------------------------------------------------------------


def load_data() -> tuple[Any, Any, Any, Any]:
    """1,437 images to learn from and 360 to be tested on, the same ones each time. Pixels from 0 to 1."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, digits = load_digits(return_X_y=True)
    train_images, test_images, train_digits, test_digits = train_test_split(
        images / 16.0, digits, test_size=0.2, random_state=0, stratify=digits
    )
    return train_images, train_digits, test_images, test_digits


def new_weights(seed: int) -> dict[str, Any]:
    """Small random weights, the same ones for the same seed."""
    import numpy as np

    random = np.random.default_rng(seed)
    return {
        "hidden": random.normal(0, 64**-0.5, (64, HIDDEN)),
        "hidden_bias": np.zeros(HIDDEN),
        "output": random.normal(0, HIDDEN**-0.5, (HIDDEN, 10)),
        "output_bias": np.zeros(10),
    }


def forward(weights: dict[str, Any], images: Any) -> tuple[Any, Any]:
    """The hidden layer's activations and the probability of each digit."""
    import numpy as np

    hidden = np.maximum(0, images @ weights["hidden"] + weights["hidden_bias"])
    scores = hidden @ weights["output"] + weights["output_bias"]
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, exponentials / exponentials.sum(axis=1, keepdims=True)


def train_epoch(weights: dict[str, Any], images: Any, digits: Any, seed: int) -> None:
    """One pass of stochastic gradient descent, in an order that depends on `seed` alone."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(images))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        hidden, probabilities = forward(weights, images[batch])
        error = probabilities
        error[np.arange(len(batch)), digits[batch]] -= 1
        error /= len(batch)
        back = (error @ weights["output"].T) * (hidden > 0)
        weights["output"] -= LEARNING_RATE * hidden.T @ error
        weights["output_bias"] -= LEARNING_RATE * error.sum(axis=0)
        weights["hidden"] -= LEARNING_RATE * images[batch].T @ back
        weights["hidden_bias"] -= LEARNING_RATE * back.sum(axis=0)


def measure(weights: dict[str, Any], images: Any, digits: Any) -> float:
    """The share of `images` recognised."""
    _, probabilities = forward(weights, images)
    return float((probabilities.argmax(axis=1) == digits).mean())


# --- the checkpoint ---------------------------------------------------------------------------------------------------------


def resume(path: Path, seed: int) -> tuple[dict[str, Any], int]:
    """The weights and the next epoch: from the checkpoint if there is one, else from the start."""
    import numpy as np

    if not path.exists():
        return new_weights(seed), 0
    with np.load(path) as stored:
        state = dict(stored)
    epoch = int(state.pop("epoch"))
    print(f"resumed from {path} after epoch {epoch}", flush=True)
    return state, epoch


def save(path: Path, weights: dict[str, Any], epoch: int) -> None:
    """Write the state so that a second signal in the middle leaves either the old file or the new one."""
    import numpy as np

    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        np.savez(file, epoch=epoch, **weights)
    temporary.replace(path)


# --- the GPU ----------------------------------------------------------------------------------------------------------------


def device_name() -> str:
    """What this process may use, as it was given."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") or "the CPU"


def device_work() -> Callable[[float], object]:
    """A function that keeps the given GPU at work for some seconds, or does nothing where there is none."""
    if not os.environ.get("CUDA_VISIBLE_DEVICES"):
        return time.sleep
    if os.environ.get("GPUBROKER_SIMULATED_STATE"):
        from gpubroker import simulated

        return lambda seconds: simulated.burn(seconds, memory_mib=2_000)
    with contextlib.suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            return lambda seconds: multiply_for(torch, seconds)
    return time.sleep


def multiply_for(torch: Any, seconds: float) -> None:
    """Multiply matrices on the GPU until the time is over."""
    matrix = torch.rand(2048, 2048, device="cuda")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        matrix = (matrix @ matrix).softmax(dim=0)
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
