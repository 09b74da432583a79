"""Reads GPUs. Only `nvml` knows NVIDIA's library, only the `probe` child process calls it; see `reader` first.

This file imports nothing: the probe's start-up time is part of the broker's.
"""
