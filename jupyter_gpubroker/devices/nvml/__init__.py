"""The reader of NVIDIA GPUs, and the only importer of pynvml; it runs in the probe's process.

Start with `reader` (what is asked when) and `calls` (how an error becomes a reason). What pynvml and the driver do in the
odd cases is cited where it is handled.
"""

from .reader import NvmlReader

__all__ = ["NvmlReader"]
