# The verbs of this project. Every verb sets up what it needs in .venv first; nothing is installed elsewhere.
# `make demo` and `make test` are the two to start with.

PYTHON ?= python3
PYTEST_ARGS ?=

ifeq ($(OS),Windows_NT)
RUN := .venv/Scripts/python.exe
else
RUN := .venv/bin/python
endif

# Any Python will do to start the set-up: it finds one that is new enough by itself.
define setup
@for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python; do \
	if "$$python" -c "" >/dev/null 2>&1; then exec "$$python" scripts/bootstrap.py $(1); fi; \
done; \
echo "No Python was found. Install Python 3.11 or newer (https://www.python.org), then run make again." >&2; exit 1
endef

.PHONY: help install demo format lint types layers test unit integration soak bench docs check clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1	\2/'

.PHONY: setup-demo setup-dev
setup-demo:
	$(call setup,demo)
setup-dev:
	$(call setup,dev)

install: setup-dev ## Set up .venv with everything for development

demo: setup-demo ## A conversation over three sessions in three processes, in English and in Chinese
	@$(RUN) -m langchain_memrag.cli demo

format: setup-dev ## Rewrite the code in the house format
	@$(RUN) -m ruff check --fix-only --quiet .
	@$(RUN) -m ruff format .

lint: setup-dev ## ruff: rules and format
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

types: setup-dev ## mypy, strict
	@$(RUN) -m mypy

layers: setup-dev ## import-linter: imports point down only
	@$(RUN) scripts/layers.py

test: setup-dev ## All tests, with a sample of the long fault suites
	@$(RUN) -m pytest $(PYTEST_ARGS)

unit: setup-dev ## The fast tests
	@$(RUN) -m pytest tests/unit $(PYTEST_ARGS)

integration: setup-dev ## The tests that start real servers and processes
	@$(RUN) -m pytest tests/integration $(PYTEST_ARGS)

soak: setup-dev ## The long fault suites in full
	@MEMRAG_SOAK=1 $(RUN) -m pytest -m soak --timeout 3600 $(PYTEST_ARGS)

# DATA names a folder of retrieval sets; without one, only latencies and writing are measured.
bench: setup-dev ## Benchmarks: make bench DATA=folder
	@mkdir -p bench-results
	@if [ -n "$(DATA)" ]; then $(RUN) benchmarks/retrieval.py "$(DATA)" --json bench-results/retrieval.json; fi
	@$(RUN) benchmarks/latency.py --json bench-results/latency.json
	@$(RUN) benchmarks/writing.py --json bench-results/writing.json

docs: setup-dev ## Run every example of the README and of the docstrings
	@$(RUN) -m pytest tests/docs $(PYTEST_ARGS)

check: lint types layers test ## What CI runs

clean: ## Remove caches and build products; data folders and .venv stay
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build bench-results
	@find . -name __pycache__ -type d -not -path "./.venv/*" -prune -exec rm -rf {} +
