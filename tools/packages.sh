#!/usr/bin/env bash
# Sees to it that the programs are there which some tests need: Chromium, strace, gcc, systemd's own check of units. Where they
# may not be installed, those tests skip and say why.
set -euo pipefail

missing=()
# Ubuntu's chromium-browser may be a stub that only asks for a snap.
chromium --version >/dev/null 2>&1 || google-chrome --version >/dev/null 2>&1 || missing+=(chromium)
for program in strace gcc; do
  command -v "$program" >/dev/null || missing+=("$program")
done
command -v systemd-analyze >/dev/null || missing+=(systemd)
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
  echo "Not here, and no right to install: ${missing[*]}. Their tests will skip (sudo apt-get install ${missing[*]})."
  exit 0
fi
"${as_root[@]}" apt-get -o DPkg::Lock::Timeout=580 update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -o DPkg::Lock::Timeout=580 install -y -q --no-install-recommends "${missing[@]}" \
  || echo "Could not be installed: ${missing[*]}. Their tests will skip."
