"""A process that uses the GPU as its parent says: one JSON line in, one out.

{"call": "fill", "arguments": [1024]} -> {"value": null} or {"code": 100, "error": "cuInit: 100"}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from .cuda import Cuda, CudaError


def main() -> None:
    cuda: list[Cuda] = []

    def call(name: str, arguments: list[Any]) -> Any:
        if name == "see":  # as a grant does: inside of the process, while it runs
            os.environ["CUDA_VISIBLE_DEVICES"] = arguments[0]
            return None
        if not cuda:
            cuda.append(Cuda())
        function: Callable[..., Any] = getattr(cuda[0], name)
        return function(*arguments)

    print(json.dumps({"value": "ready"}), flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            answer: dict[str, Any] = {"value": call(wanted["call"], wanted["arguments"])}
        except CudaError as error:
            answer = {"code": error.code, "error": str(error)}
        except OSError as error:
            answer = {"code": -1, "error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
