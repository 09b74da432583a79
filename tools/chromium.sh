#!/usr/bin/env bash
# Sees to it that a Chromium is there for the browser tests; where it may not be installed, they skip and say why.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  # Ubuntu's chromium-browser may be a stub that only asks for a snap.
  if "$name" --version >/dev/null 2>&1; then
    exit 0
  fi
done
as_root=()
if ((EUID != 0)); then
  as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
  echo "No Chromium here and no right to install one; the browser tests will skip (sudo apt-get install chromium)."
  exit 0
fi
"${as_root[@]}" apt-get -o DPkg::Lock::Timeout=580 update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -o DPkg::Lock::Timeout=580 install -y -q --no-install-recommends chromium \
  || echo "Chromium could not be installed; the browser tests will skip."
