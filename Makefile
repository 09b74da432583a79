# Everything here works on a fresh Debian or Ubuntu with git, make and Python >= 3.10; `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
INPUTS := pyproject.toml requirements.lock hatch_build.py tools/environment.sh $(wildcard jupyter-config/server-config/*) \
	jupyter_gpubroker/labextension/package.json
USER_STAMP := .venv/.installed-user
TEST_STAMP := .venv/.installed-test

# Simulated GPUs, only where there is no NVIDIA device at all.
SIMULATE := GPUBROKER_SIMULATE="$${GPUBROKER_SIMULATE:-auto:2xH200}"
# Where people try things: git does not track it, and nothing there is overwritten but by something newer.
PLAYGROUND := playground
LAB_ARGS ?=
PYTEST_ARGS ?=
# Most tests wait more than they compute. The slow ones come first by name; a file's tests share what is costly to start.
SIDE_BY_SIDE := --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
ROOT_ARGS := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: lab
lab: $(USER_STAMP) ## open JupyterLab with the broker behind it (LAB_ARGS="--port 9999" is passed on)
	@mkdir -p $(PLAYGROUND)
	@cp -u examples/single_node/*.* $(PLAYGROUND)
	@echo "JupyterLab opens $(PLAYGROUND)/quickstart.ipynb, a copy of the one in examples; Ctrl-C ends it."
	cd $(PLAYGROUND) && $(SIMULATE) $(CURDIR)/$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/quickstart.ipynb $(ROOT_ARGS) $(LAB_ARGS)

.PHONY: demo
demo: $(USER_STAMP) ## play the whole story by itself, on simulated GPUs
	$(BIN)/gpubroker demo

.PHONY: test
test: lint ## check style and types, then run every test that needs no NVIDIA GPU (PYTEST_ARGS="-k queue" is passed on)
	tools/packages.sh
	$(BIN)/pytest $(SIDE_BY_SIDE) -m "not hardware and not long" $(PYTEST_ARGS)

.PHONY: long
long: $(TEST_STAMP) ## look for what is rare: the same rules under many more random events and crashes, and large workloads
	GPUBROKER_CRASH_CYCLES=2000 GPUBROKER_BROKER_CRASH_CYCLES=200 $(BIN)/pytest $(SIDE_BY_SIDE) --timeout 7200 \
		--hypothesis-profile=long tests/crash tests/property tests/integration/sim $(PYTEST_ARGS)

.PHONY: hardware
hardware: $(TEST_STAMP) ## check on a real GPU what only one can tell, and switch on what was seen to work (8 minutes)
	$(BIN)/python -m tests.hardware

.PHONY: lint
lint: $(TEST_STAMP) ## check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.PHONY: docs
docs: $(TEST_STAMP) ## draw the diagrams of docs/architecture.md anew from the state tables
	$(BIN)/python docs/diagrams.py

.PHONY: panel
panel: $(TEST_STAMP) ## build the JupyterLab panel anew from labextension/ (needs Node; the build is committed)
	tools/panel.sh

.PHONY: lock
lock: $(TEST_STAMP) ## choose the newest allowed versions of all dependencies anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --fork-strategy fewest --upgrade \
		--no-header --no-annotate --extra demo --extra lab --extra test --extra dev \
		pyproject.toml --output-file requirements.lock

.PHONY: clean
clean: ## remove the environment, builds and caches
	rm -rf .venv build dist test-results .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(USER_STAMP): $(INPUTS)
	tools/environment.sh demo,lab
	touch $@

$(TEST_STAMP): $(INPUTS)
	tools/environment.sh demo,lab,test,dev
	touch $@ $(USER_STAMP)
