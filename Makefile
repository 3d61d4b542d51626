# Bifolio: `make` lists the targets.
PYTHON ?= python3
PORT ?= 1337
T ?= 30
SECONDS ?= 60
REAL ?= ../shared/data
N ?= 150000
BIN := .venv/bin
# Many container images set this variable. It prevents compiled modules, so each of the hundreds of processes that tests
# and benchmarks start would take twice as long to import the server.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: .venv/bin/python pyproject.toml ## Create .venv/ with everything that the other targets need
	@sh .ci/install '.[dev,openapi,studio]'
	@touch .venv/.ready .venv/.ready-dev .venv/.ready-openapi .venv/.ready-studio

serve: .venv/.ready ## Serve this repository's own site on http://127.0.0.1:1337
	$(BIN)/bifolio serve --site . --port $(PORT)

collect: .venv/.ready-dev ## Import all tests, so that the processes of make test need not compile each of them again
	$(BIN)/pytest --collect-only -q >.venv/collect.log 2>&1 || (tail -n 100 .venv/collect.log; false)

npm: .venv/.ready-dev ## Install the packages from npm that tests compile with
	$(BIN)/python -m tests.clients.npm

# Each of the processes needs 10 s of processor time to start. With a fourth one, two cores would not be used better.
test: .venv/.ready-dev ## Run the tests, in three processes
	$(BIN)/pytest -n 3 --dist worksteal --durations 20 --durations-min 1

PACKAGES := $(sort $(foreach file,$(wildcard tests/*/test_*.py),$(word 2,$(subst /, ,$(file)))))
ifneq ($(filter test-quick,$(MAKECMDGOALS)),)
ifeq ($(and $(filter $(PACKAGES),$(firstword $(subst /, ,$(P)))),$(wildcard tests/$(P))),)
$(error $(if $(P),no tests for P=$(P); )say which: make test-quick P=index; packages: $(PACKAGES))
endif
endif

test-quick: .venv/.ready-dev ## Run the quick tests of one package: make test-quick P=index
	BIFOLIO_EXAMPLES=ci $(BIN)/pytest -n 2 --dist worksteal -m "not process" tests/$(P) tests/test_architecture.py

test-clients: .venv/.ready-dev ## Test clients and front ends from npm against a running server
	$(BIN)/python -m tests.clients.run
	$(BIN)/python -m tests.clients.examples
	$(BIN)/python -m tests.clients.images.run
	$(BIN)/pytest tests/clients/source_maps/compare.py tests/clients/generated.py tests/clients/published.py \
		tests/clients/vscode_extension.py tests/clients/mcp/conformance.py tests/clients/mcp/sdk.py

torture: .venv/.ready-dev ## Inject faults under load for 30 minutes (T=60, SEED=n), then report which guarantees held
	$(BIN)/python -m tests.torture --minutes $(T) $(if $(SEED),--seed $(SEED))

test-machines: .venv/.ready-dev ## Test three machines that share a remote: random writes and kills, then check consistency
	$(BIN)/python -m tests.machines --push before --seconds $(SECONDS)
	$(BIN)/python -m tests.machines --push after --seconds $(SECONDS)

test-studio: .venv/.ready-studio ## Test the studio in a real browser, Debian's chromium
	@rm -rf .venv/studio
	$(BIN)/python -m tests.vendor.studio $(CURDIR)/.venv/studio
	STUDIO_PAGE=$(CURDIR)/.venv/studio $(BIN)/pytest -n 2 --dist loadfile tests/studio/browser_*.py

test-bench: .venv/.ready-studio ## Run every benchmark at its smallest size to check that it works
	$(BIN)/python -m tests.bench.run

test-openapi: .venv/.ready-openapi ## Check a running server against its own /openapi.json with schemathesis
	$(BIN)/python -m tests.openapi.run

dist: .venv/.ready-dev ## Build the package, dist/bifolio-*.whl
	rm -rf build dist
	mkdir -p build/source
	git ls-files -co --exclude-standard | tar -cT - | tar -xC build/source
	git rev-parse --short HEAD > build/source/server/commit.txt
	$(BIN)/python -m tests.vendor.studio build/source/server/api/studio/page
	$(BIN)/python -m build --wheel --outdir dist build/source > build/log 2>&1 || (cat build/log; false)
	@rm -rf build; ls dist

test-dist: dist ## Install the package into an empty environment and serve a new site with it
	$(BIN)/python -m tests.dist.run

tools: ## Install the programs that some tests need (nginx, PostgreSQL, Node.js…); needs root and apt
	@sh .ci/tools

check: .venv/.ready-dev ## Check format, lint and types
	$(BIN)/ruff format --check server tests bench docs
	$(BIN)/ruff check server tests bench docs
	$(BIN)/mypy

test-vendor: .venv/.ready-dev ## Check that bundling the studio's npm packages gives the files in the repository
	$(BIN)/python -m tests.vendor.run

test-licences: .venv/.ready-dev ## Check the licences of all packages that an installation includes
	$(BIN)/pytest tests/dist/licences.py

audit: test-licences .venv/.ready-audit ## Check the installed packages for known vulnerabilities; needs pypi.org
	$(BIN)/pip-audit --skip-editable --progress-spinner off

vendor: ## Bundle the studio's npm packages into server/api/studio/page/vendor
	cd vendor && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error && node bundle.mjs

docs: .venv/.ready-dev ## Run the commands in README and docs/ and compare their output
	$(BIN)/python -m docs

docs-site: .venv/.ready ## Serve the docs with Bifolio, and a front page with search on the next port
	$(BIN)/python -m docs.site --port $(PORT)

bench: .venv/.ready-dev ## Measure speed and memory, side by side in one run
	$(BIN)/python -m bench

bench-size: .venv/.ready-dev ## Measure startup, memory and search of sites with up to N=150000 articles
	$(BIN)/python -m bench size --articles $(N) $(ARGS)

bench-worst: .venv/.ready-dev ## Find the slowest queries and measure how they delay other requests
	$(BIN)/python -m bench worst
	$(BIN)/python -m bench attacks

bench-check: .venv/.ready-dev ## Measure bifolio check, and a check of the changes on a branch
	$(BIN)/python -m bench checking

bench-studio: .venv/.ready-studio ## Measure load times of the studio's pages in Debian's chromium
	$(BIN)/python -m bench studio

bench-images: .venv/.ready-dev ## Measure reads beside images by URL, and compare these with ipx and sharp
	$(BIN)/python -m bench images

bench-peers: .venv/.ready-dev ## Compare speed with Strapi and json-server, which npm installs; takes minutes
	$(BIN)/python -m bench.peer

peer-diff: .venv/.ready-dev ## Send the same random requests to Bifolio and Strapi and report differences; takes minutes
	$(BIN)/python -m bench.differential $(ARGS)

real: .venv/.ready-dev ## Serve the repositories in REAL=dir and check values and diffs; ALL=1 tests every document and attribute
	$(BIN)/python -m bench.real $(REAL) $(if $(ALL),--all) $(ARGS)

format: .venv/.ready-dev ## Format the code
	$(BIN)/ruff format server tests bench docs
	$(BIN)/ruff check --fix server tests bench docs

clean: ## Remove all files that the other targets create
	rm -rf .venv .bifolio build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bifolio needs Python 3.11 or newer")'
	@echo "Making .venv/ with $(PYTHON)"
	@$(PYTHON) -m venv .venv

.venv/.ready: .venv/bin/python pyproject.toml
	@sh .ci/install .
	@touch $@

.venv/.ready-dev: .venv/.ready pyproject.toml
	@sh .ci/install '.[dev]'
	@touch $@

.venv/.ready-openapi: .venv/.ready-dev pyproject.toml
	@sh .ci/install '.[openapi]' && touch $@ || test "$$CI" != true

.venv/.ready-audit: .venv/.ready-dev pyproject.toml
	@sh .ci/install '.[audit]'
	@touch $@

.venv/.ready-studio: .venv/.ready-dev pyproject.toml
	@sh .ci/install '.[studio]' && touch $@ || test "$$CI" != true

.PHONY: tools help install serve collect npm test test-quick test-bench test-clients test-vendor test-licences audit test-machines test-studio vendor dist test-dist torture test-openapi check docs docs-site bench bench-size bench-worst bench-check bench-studio bench-images bench-peers peer-diff real format clean
