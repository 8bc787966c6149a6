# The project's commands. `make demo` and `make test` prepare everything they need themselves.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# How many processes share the tests; tests/conftest.py says how they are shared out. Most tests wait
# for other processes most of the time: two for each core (three of four left the cores idle for a
# tenth of the run).
PROCESSES ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')
SHARED_OUT = --numprocesses $(PROCESSES) --no-loadscope-reorder --durations 60

# Tests and the demo start Python hundreds of times, and compiling its modules is most of a start.
# So the compiled ones are kept, also where the environment says otherwise; all of them in $(VENV).
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

.PHONY: help setup lock lint format test-unit test laws month e2e nightly full-proofs worst-tenant replayed-hour bench bench-e2e demo wheel sdist sbom docs clean

help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s $$'\t'

setup: $(STAMP) ## Build .venv from the hashed pinned requirements (does nothing when it is up to date)

# pip installs uv alone, from its own hashes; uv installs the rest in a tenth of pip's time.
$(STAMP): requirements/setup.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("error: setup: Python 3.11 or newer is needed, this is " + sys.version.split()[0] + " (set PYTHON=...)" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setup: installing the pinned requirements into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/setup.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

lock: setup ## Resolve the requirements again (versions and hashes, no addresses)
	@set -- --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header; \
	$(BIN)/uv pip compile --quiet "$$@" pyproject.toml --extra tracing -o requirements/runtime.txt; \
	$(BIN)/uv pip compile --quiet "$$@" pyproject.toml --extra sandbox --extra simulate --extra tracing --group dev -o requirements/dev.txt; \
	$(BIN)/uv pip compile --quiet "$$@" --group docs -o requirements/docs.txt; \
	printf 'hatchling>=1.27\nsetuptools>=80\n' | $(BIN)/uv pip compile --quiet "$$@" -c requirements/dev.txt - -o requirements/build.txt; \
	echo uv | $(BIN)/uv pip compile --quiet "$$@" -c requirements/dev.txt - -o requirements/setup.txt

lint: setup ## Format check, ruff, mypy strict, import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: setup ## Format the tree
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

test-unit: setup ## Unit and property tests
	@$(BIN)/python -m pytest -q tests/unit tests/properties

test: setup ## Every tier that this machine can run; says which it could not and why
	@$(BIN)/python -m pytest tests --ignore tests/benchmarks -m "not nightly" $(SHARED_OUT)

nightly: setup ## The long proofs that `make test` leaves out (up to an hour)
	@$(BIN)/python -m pytest tests --ignore tests/benchmarks -m nightly $(SHARED_OUT)

laws: setup ## Ten thousand random programs against the laws of a node's life (an hour)
	@RECONCILER_LAWS=$${RECONCILER_LAWS:-10000} $(BIN)/python -m pytest -q -s --timeout 0 tests/life/test_laws.py

month: setup ## A simulated month of the traces, its figures and plot into docs/ (4 to 15 minutes)
	@$(BIN)/python -m tests.life.month --write

e2e: setup ## Tests on a real Kubernetes control plane (needs Go or RECONCILER_E2E_BIN; the first run builds it)
	@RECONCILER_E2E=1 $(BIN)/python -m pytest -q tests/e2e

full-proofs: setup ## The second loop's proofs with all the rounds that the project's goals name (an hour)
	@RECONCILER_FULL_PROOFS=1 $(BIN)/python -m pytest -q -p no:randomly tests/properties/rendering tests/terraform/test_random_roots.py tests/terraform/test_one_set_of_rules.py tests/sandbox/gitops

worst-tenant: setup ## A tenant does his worst for ten minutes on a real control plane; how long the others wait (twenty minutes)
	@RECONCILER_FULL_PROOFS=1 RECONCILER_E2E=1 $(BIN)/python -m pytest -q -s --timeout 0 tests/e2e/test_worst_tenant.py

replayed-hour: setup ## An hour on a real control plane, recorded and replayed; the plot into docs/images (75 minutes)
	@RECONCILER_FULL_PROOFS=1 RECONCILER_E2E=1 RECONCILER_PLOTS=docs/images $(BIN)/python -m pytest -q -s --timeout 0 tests/e2e/test_replay.py

bench: setup ## Benchmarks: ratios against a reference in the same run
	@$(BIN)/python -m tests.benchmarks

bench-e2e: setup ## Scale run on a real control plane: 1,000 nodes, 30,000 pods (8 minutes; BENCH_E2E=options)
	@$(BIN)/python -m tests.benchmarks.e2e $(BENCH_E2E)

demo: setup ## The main job end to end in the sandbox
	@$(BIN)/reconciler demo --out demo-report

wheel: setup ## Build the wheel into dist/
	@$(BIN)/python -m build --no-isolation --wheel --outdir dist .

sdist: setup ## Build the source distribution into dist/
	@$(BIN)/python -m build --no-isolation --sdist --outdir dist .

# In an environment of its own: the generator is no requirement of the program or of its tests.
docs: setup ## Build the documentation into build/docs; a link that leads nowhere is an error
	@test -x .venv-docs/bin/python || $(BIN)/uv venv --quiet .venv-docs
	@$(BIN)/uv pip install --quiet --python .venv-docs/bin/python --require-hashes -r requirements/docs.txt
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

sbom: setup ## Software bill of materials of the runtime requirements (CycloneDX) into dist/sbom.cdx.json
	@mkdir -p dist
	@$(BIN)/python -m tests.project.sbom > dist/sbom.cdx.json

clean: ## Remove what the targets above made
	@rm -rf $(VENV) build dist demo-report .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
