"""Build hook: ships the kernel's package a second time, as top-level `gpubroker`, and the demo's example.

Notebooks write `import gpubroker`; the provisioner also puts the folder `jupyter_gpubroker/kernel` alone
on the path of kernels from other environments. Both must be the same files, so there is one source folder.
An editable install must not copy (the copy would go stale): it finds the package through `dev-mode-dirs`.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelPackageHook(BuildHookInterface[Any]):
    """Adds `gpubroker/` and the example that `gpubroker demo` plays to a standard wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Map the kernel's package to the top level unless `version` is `editable`."""
        if version == "standard":
            included = build_data["force_include"]
            included["jupyter_gpubroker/kernel/gpubroker"] = "gpubroker"
            for name in ("train_digits.py", "policy.toml"):
                included[f"examples/single_node/{name}"] = f"jupyter_gpubroker/cli/demo/{name}"
