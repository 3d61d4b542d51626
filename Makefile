# Quire: `make` alone lists what there is.
PYTHON ?= python3
PORT ?= 1337
MINUTES ?= 60
SECONDS ?= 60
BIN := .venv/bin
# Many images set this for the processes of a container. Tests and benchmarks start hundreds, and without compiled
# modules each takes twice as long to import the server.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: .venv/bin/python pyproject.toml ## Install what all other targets need into .venv/, with one run of pip
	@sh .ci/install '.[dev,openapi,studio]'
	@touch .venv/.ready .venv/.ready-dev .venv/.ready-openapi .venv/.ready-studio

serve: .venv/.ready ## Serve this repository's own site on http://127.0.0.1:1337
	$(BIN)/quire serve --site . --port $(PORT)

test: .venv/.ready-dev ## Run the tests, in three processes
	$(BIN)/pytest -n 3 --dist worksteal --durations 20 --durations-min 1

test-quick: .venv/.ready-dev ## Run the tests of one package that start no processes: make test-quick P=index
	QUIRE_EXAMPLES=ci $(BIN)/pytest -n 2 --dist worksteal -m "not process" tests/$(P) tests/test_architecture.py

test-clients: .venv/.ready-dev ## Run clients and front ends from npm against a live server
	$(BIN)/python -m tests.clients.run
	$(BIN)/python -m tests.clients.examples
	$(BIN)/pytest tests/clients/source_maps/compare.py

torture: .venv/.ready-dev ## The hard tests at random for an hour: kills, workers, full disks, leaks, anything
	$(BIN)/python -m tests.torture --minutes $(MINUTES)

test-machines: .venv/.ready-dev ## Three machines at random: writes from all sides, kills, and what must hold
	$(BIN)/python -m tests.machines --push before --seconds $(SECONDS)
	$(BIN)/python -m tests.machines --push after --seconds $(SECONDS)

test-studio: .venv/.ready-studio ## Work in the studio with a real browser, Debian's chromium
	$(BIN)/pytest -n 2 --dist loadfile tests/studio/browser_*.py

test-bench: .venv/.ready-studio ## Run every benchmark at its smallest size, to see that it runs
	$(BIN)/python -m tests.bench.run

test-openapi: .venv/.ready-openapi ## Hold a live server against its own /openapi.json, with schemathesis
	$(BIN)/python -m tests.openapi.run

dist: .venv/.ready-dev ## Make the package, dist/quire-*.whl
	rm -rf build dist
	git rev-parse --short HEAD > server/commit.txt
	$(BIN)/python -m build --wheel --outdir dist . > build.log 2>&1 || (cat build.log; false)
	@rm -rf build build.log server/commit.txt quire.egg-info/SOURCES.txt; ls dist

test-dist: dist ## Install the package into an empty environment, and serve a new site with it
	$(BIN)/python -m tests.dist.run

tools: ## Install the programs that some tests need (nginx, PostgreSQL, Node.js…), as root on Debian
	@sh .ci/tools

check: .venv/.ready-dev ## Check format, lint and types
	$(BIN)/ruff format --check server tests bench docs
	$(BIN)/ruff check server tests bench docs
	$(BIN)/mypy

test-vendor: .venv/.ready-dev ## Bundle what the studio takes from npm again, and compare
	$(BIN)/python -m tests.vendor.run

vendor: ## Bundle what the studio takes from npm into server/api/studio/page/vendor
	cd vendor && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error && node bundle.mjs

docs: .venv/.ready-dev ## Run every command in the pages and compare its answer
	$(BIN)/python -m docs

bench: .venv/.ready-dev ## Measure speed and memory, side by side in one run
	$(BIN)/python -m bench

bench-worst: .venv/.ready-dev ## Look for the costliest requests, and measure how long others wait for them
	$(BIN)/python -m bench worst

bench-studio: .venv/.ready-studio ## Measure how soon the studio's pages are there, in Debian's chromium
	$(BIN)/python -m bench studio

bench-peers: .venv/.ready-dev ## Measure Quire beside other servers, which npm installs; takes minutes
	$(BIN)/python -m bench.peer

peer-diff: .venv/.ready-dev ## Ask Quire and the reference implementation the same at random; takes minutes
	$(BIN)/python -m bench.differential $(ARGS)

format: .venv/.ready-dev ## Format the code
	$(BIN)/ruff format server tests bench docs
	$(BIN)/ruff check --fix server tests bench docs

clean: ## Remove what the other targets made
	rm -rf .venv .quire build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Quire needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

.venv/.ready: .venv/bin/python pyproject.toml
	@sh .ci/install .
	@touch $@

.venv/.ready-dev: .venv/.ready pyproject.toml
	@sh .ci/install '.[dev]'
	@touch $@

.venv/.ready-openapi: .venv/.ready-dev pyproject.toml
	@sh .ci/install '.[openapi]' && touch $@ || test "$$CI" != true

.venv/.ready-studio: .venv/.ready-dev pyproject.toml
	@sh .ci/install '.[studio]' && touch $@ || test "$$CI" != true

.PHONY: tools help install serve test test-quick test-bench test-clients test-vendor test-machines test-studio vendor dist test-dist torture test-openapi check docs bench bench-worst bench-studio bench-peers peer-diff format clean
