"""Replays workloads through `core.step` in simulated time and says what each way of taking GPUs back would have meant.

The decisions are the core's own; here are only the workloads, the people and jobs that act them out, and the figures. What
is assumed of the world is listed in `docs/simulator.md`. Nothing here reads a clock or draws a number that its seed does
not fix.
"""
