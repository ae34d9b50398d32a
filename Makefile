# Everything a person or CI runs. `make` alone lists the targets.
# What they make stays in the checkout: .venv, .deps, build and demo-run, all ignored by git.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv deps test lint format docs demo bench-dashboards bench-exporter drift goldens-kv lock clean distclean

PYTHON ?= $(firstword $(shell command -v python3.11) $(shell command -v python3) python3.11)
PYTEST_ARGS ?=
DEMO_SECONDS ?= 60

BIN := .venv/bin
PROGRAMS := tests/exporters/engine/programs
export PATH := $(CURDIR)/.deps/bin:$(PATH)

help: ## list the targets
	@echo "usage: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

venv: ## make or complete the environment in .venv (Python 3.11, gcc, about 6 GB of disk)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	echo "make: want Python 3.11, and $(PYTHON) is $$($(PYTHON) -V 2>/dev/null || echo not on PATH):" \
	"install it (Debian, Ubuntu: apt-get install python3.11-venv)" \
	"or name it (make PYTHON=/path/to/python3.11)" >&2; exit 1; }
	@$(PYTHON) tools/setup_env.py

deps: venv ## unpack the system programs that tests run (prometheus, promtool) into .deps
	@$(PYTHON) tools/setup_deps.py

test: venv deps lint ## everything CI runs: lint, types, tests, promtool, generated files
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tools
	MYPYPATH=tools:tools/bench:tools/drift:tools/goldens:$(PROGRAMS) $(BIN)/mypy --explicit-package-bases tests

format: venv ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv ## write the generated pages of docs/ from the code
	$(BIN)/python -m vramscope.exporters.catalog.docs > docs/metrics.md
	$(BIN)/python -m vramscope.exporters.catalog.gpu_kinds_docs > docs/gpu-kinds.md
	$(BIN)/python -m vramscope.alerts.recording_rules > alerts/recording.rules.yaml
	$(BIN)/python -m vramscope.controller.config_docs > docs/configuration.md

demo: venv ## two real vLLM engines, mixed LoRA load, live signals for DEMO_SECONDS (default 60)
	@DEMO_SECONDS=$(DEMO_SECONDS) $(BIN)/python -m vramscope.demo

bench-exporter: venv ## measure scrapes and refreshes; writes bench-results/exporter.json
	$(BIN)/python tools/bench/exporter.py

drift: ## look the probe's hook points up in vLLM's releases (downloads 700 MB of sources)
	@$(PYTHON) tools/drift/drift.py

goldens-kv: venv ## write what vLLM builds for the memory tests' models, without weights (15 minutes)
	$(BIN)/python tools/goldens/goldens.py $(MODELS)

bench-probe: venv ## measure what the probe costs an engine; writes bench-results/probe.json
	$(BIN)/python tools/bench/probe.py

bench-dashboards: venv deps ## ask the dashboards' queries of a large fleet; writes bench-results/dashboards.json
	$(BIN)/python tools/bench/dashboards.py

lock: ## resolve requirements/dev.txt anew
	@$(PYTHON) tools/lock.py

clean: ## remove caches, builds and the demo's files; the environment stays
	rm -rf build dist demo-run bench-results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also remove the environment and the system programs
	rm -rf .venv .deps *.egg-info
