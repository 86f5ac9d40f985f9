# Every command of the project. `make help` lists them.

PYTHON_IN_VENV := .venv/bin/python
PYTEST := $(PYTHON_IN_VENV) -m pytest
CHECKED := src tests examples scripts bench

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all long bench lint format typecheck unit docs-test lock clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1|/' | column -t -s '|'

setup: ## make .venv, get Java where it is missing, prepare a quick start; does nothing if all is there
	@python=$$(sh scripts/find_python.sh) && "$$python" scripts/setup_environment.py
	@$(PYTHON_IN_VENV) scripts/setup_java.py
	@$(PYTHON_IN_VENV) -m everstate.cli.main prepare

demo: setup ## the story in the terminal: totals that follow changes and survive a kill
	@$(PYTHON_IN_VENV) examples/demo.py

test: setup ## all checks and tests but the long ones
	@$(MAKE) --no-print-directory lint unit docs-test

test-all: test ## everything: `make test`, then the crash matrix and the long random runs
	@$(MAKE) --no-print-directory long

long: setup ## only what `make test-all` adds to `make test`
	$(PYTEST) -n 2 -m "long and not spark and not recovery"
	$(PYTEST) -n 2 --dist worksteal -m "(long and spark) or (recovery and (long or not spark))"

unit: ## the tests but the long ones, without set-up and lint
	$(PYTEST) -n 2 -m "not long and not spark and not recovery" --ignore tests/docs
	$(PYTEST) -n 2 --dist worksteal -m "not long and (spark or recovery)" --ignore tests/docs

docs-test: ## the examples in docstrings, README and docs
	$(PYTEST) --doctest-modules src/everstate
	$(PYTEST) -n 2 tests/docs

bench: setup ## measure; prints figures and writes build/bench.json
	@$(PYTHON_IN_VENV) -m bench

lint: ## style, types, and which package may import which
	.venv/bin/ruff check $(wildcard $(CHECKED))
	.venv/bin/ruff format --check $(wildcard $(CHECKED))
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache

format: ## put the code into the common form
	.venv/bin/ruff check --fix $(wildcard $(CHECKED))
	.venv/bin/ruff format $(wildcard $(CHECKED))

lock: ## write constraints.txt anew with the newest versions that pyproject.toml allows
	rm -rf build/lock && "$$(sh scripts/find_python.sh)" -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade pip
	build/lock/bin/python -m pip install --quiet --editable . --group dev hatchling editables install-jdk
	(sed -n '/^#/p' constraints.txt; build/lock/bin/python -m pip freeze --all --exclude-editable --exclude setuptools) > build/lock.txt
	mv build/lock.txt constraints.txt && rm -rf build/lock

clean: ## remove what can be made again, the environment included
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse
