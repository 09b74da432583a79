#!/usr/bin/env bash
# Makes .venv with this package (editable) and the extras named in $1, by the lock.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=$1
# Kept equal to the extra `torch` of pyproject.toml.
torch=$(sed -nE 's/^torch = \["(torch==[0-9.]+)"\]$/\1/p' pyproject.toml)

say() {
  printf 'setup: %s\n' "$*"
}

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  fail "No Python 3.10 or newer was found; install one, or name it: make PYTHON=/path/to/python3"
}

# Debian and Ubuntu ship the modules that make environments in a package of their own.
ensure_venv_module() {
  local python=$1 package as_root=()
  "$python" -c 'import ensurepip, venv' 2>/dev/null && return
  package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "Python lacks its venv module; install it: sudo apt-get install $package"
    as_root=(sudo -n)
  fi
  command -v apt-get >/dev/null || fail "Python lacks its venv module; install it, then try again."
  say "installing $package ..."
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=580 update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=580 install -y -q "$package"
}

# PyTorch is large: it is installed for the tests where none may be skipped, or where pip has it at hand on this machine.
wants_torch() {
  [[ ",$extras," == *,test,* && -n $torch ]] || return 1
  [[ ${GPUBROKER_TEST_NO_SKIPS:-} == 1 ]] && return
  .venv/bin/pip install --quiet --dry-run --no-index --no-deps "$torch" >/dev/null 2>&1
}

if [[ ! -x .venv/bin/pip ]]; then
  python=$(find_python)
  ensure_venv_module "$python"
  say "making .venv with $("$python" --version) ..."
  "$python" -m venv .venv
fi
say "installing jupyter_gpubroker and what [$extras] needs into .venv (some minutes the first time) ..."
.venv/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable ".[$extras]"
if wants_torch; then
  say "installing PyTorch for the tests that need it ..."
  .venv/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock "$torch"
fi
say 'done'
