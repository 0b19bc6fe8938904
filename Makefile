# Every target does its own set-up, down to Debian's packages when it runs as root. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup up test check explore conformance crash bench lock evidence clean

PY      := .venv/bin/python
# The server's own packages, a few seconds; and everything the tests need on top, Spark among it.
RUNTIME := .venv/.runtime
DEV     := .venv/.dev

help:  ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(DEV)  ## Make .venv with everything for development (the other targets do it themselves)
	@echo "frazil: .venv is ready"

up: $(RUNTIME)  ## Start a catalog on ./lakehouse: DIR=… and LISTEN=HOST:PORT to choose others
	@exec .venv/bin/frazil up $(if $(DIR),"$(DIR)") $(if $(LISTEN),--listen $(LISTEN))

test: $(DEV)  ## All checks and tests; ARGS='-k word' chooses tests
	@scripts/test.sh $(ARGS)

check: $(DEV)  ## Lint, format, types, layers
	@scripts/check.sh

explore: $(DEV)  ## Explore the protocols further than `make test` does; resumes where it stopped
	@$(PY) -m tests.explore $(ARGS)

conformance: $(DEV)  ## Iceberg's REST compatibility kit against a live server
	@$(PY) -m conformance $(ARGS)

crash: $(DEV)  ## Kill servers under load, judge every acknowledged commit
	@$(PY) -m tests.crash $(ARGS)

bench: $(DEV)  ## CPU per operation beside Iceberg's REST fixture, into bench/results.json
	@$(PY) -m bench $(ARGS)

lock: $(DEV)  ## Pin the dependencies of pyproject.toml again; UPGRADE=1 takes newer ones
	@scripts/lock.sh

evidence: $(DEV)  ## Write docs/evidence.md from the results of the runs
	@$(PY) scripts/evidence.py

clean:  ## Remove what the commands made, but no catalog
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build bench/results.json

$(RUNTIME): requirements/build.txt requirements/runtime.txt pyproject.toml scripts/venv.sh
	@scripts/venv.sh $@ requirements/build.txt requirements/runtime.txt

$(DEV): $(RUNTIME) requirements/dev.txt
	@scripts/venv.sh $@ requirements/dev.txt
