#!/usr/bin/env bash
# Builds the JupyterLab panel from labextension/ into jupyter_gpubroker/labextension, where it is committed. Needs Node.
# With --check it fails where the committed build differs from the new one.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

python tools/wire_types.py >labextension/src/wire.ts
(cd labextension && jlpm install --immutable && jlpm lint && jlpm build)
python tools/panel.py

if [[ ${1:-} == --check ]]; then
  changed=$(git status --porcelain -- jupyter_gpubroker/labextension labextension/src/wire.ts)
  if [[ -n $changed ]]; then
    printf 'The committed panel is not what its sources give; run make panel and commit:\n%s\n' "$changed" >&2
    exit 1
  fi
fi
