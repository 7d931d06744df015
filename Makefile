# `make` lists the targets. Each installs and starts what it needs (Debian or Ubuntu; through sudo if you are not root).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTEST_ARGS ?=
BENCH ?= all
BENCH_JSON ?=
python := .venv/bin/python
# Programs inside an image are projects of their own, with tests and an environment of their own.
image_projects := $(patsubst %/pyproject.toml,%,$(wildcard images/*/*/pyproject.toml))

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r target text; do \
		printf '  make %-17s %s\n' "$$target" "$$text"; done

.PHONY: demo
demo: ## Take 25.02 (variant open) all the way: lint, lock, build, verify, push to a local registry, notes
	@scripts/demo

.PHONY: test
test: test-unit test-images test-integration ## Run all tests, the integration tests on a real engine and registry

.PHONY: test-unit
test-unit: venv ## Run the tests that need neither engine nor network
	$(python) -m pytest tests/unit --junitxml=build/reports/unit.xml $(PYTEST_ARGS)

.PHONY: test-images
test-images: venv ## Run the tests of the programs inside images, each in an environment of its own
	for project in $(image_projects); do \
		scripts/ensure-project-venv "$$project"; \
		(cd "$$project" && .venv/bin/python -m pytest -p no:cacheprovider \
			--junitxml=$(CURDIR)/build/reports/image-$${project##*/}.xml $(PYTEST_ARGS)); \
	done

.PHONY: test-integration
test-integration: ## Run the tests on a real engine and registry
	scripts/run-tests tests/integration --junitxml=build/reports/integration.xml $(PYTEST_ARGS)

.PHONY: test-engines
test-engines: ## Run the integration tests on Engine 20.10, on 26.1 and on 26.1 with containerd's image store (root)
	scripts/test-engines tests/integration $(PYTEST_ARGS)

.PHONY: check
check: format-check lint types test-unit generated ## Check all that a reviewer would, offline: format, lint, types, unit tests, generated files

.PHONY: format
format: venv ## Format the code
	$(python) -m ruff format .
	$(python) -m ruff check --fix .

.PHONY: format-check
format-check: venv
	$(python) -m ruff format --check .

.PHONY: lint
lint: venv
	$(python) -m ruff check .

.PHONY: types
types: venv
	$(python) -m mypy
	for project in $(image_projects); do \
		(cd "$$project" && MYPYPATH=src $(CURDIR)/$(python) -m mypy --strict --python-version 3.11 \
			--ignore-missing-imports --follow-imports=silent --cache-dir $(CURDIR)/.mypy_cache src); \
	done

.PHONY: generated
generated: venv
	scripts/generate --check

.PHONY: generate
generate: venv ## Write the generated files anew (JSON schemas, CLI reference)
	scripts/generate

.PHONY: bench
bench: venv ## Measure all, or BENCH=cli, build, oci or push; figures as JSON to BENCH_JSON=FILE
	$(python) -m bench $(BENCH) $(if $(BENCH_JSON),--json $(BENCH_JSON))

.PHONY: venv
venv: ## Create .venv, again only when pyproject.toml has changed (PYTHON=... takes another interpreter)
	@scripts/ensure-venv

.PHONY: stop
stop: ## Stop the engine and the registry that these targets started
	@scripts/stop

.PHONY: clean
clean: stop ## Remove what was generated here (not the cache in ~/.cache/lj-image)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
