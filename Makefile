# Every command of the project. `make help` lists them.

PYTHON_IN_VENV := .venv/bin/python
PYTEST := $(PYTHON_IN_VENV) -m pytest
CHECKED := src tests examples scripts bench
FAST := not long and not spark and not recovery and not kafka
# Tests on Spark take long: they are handed out as workers become free, those of a group to one worker.
ON_SPARK := $(PYTEST) -n 2 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-kafka kafka kafka-stop quick test test-all long long-random long-spark bench lint format unit docs docs-test dist catalogue count lock clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1|/' | column -t -s '|'

setup: ## make .venv, get Java where it is missing, prepare a quick start; does nothing if all is there
	@python=$$(sh scripts/find_python.sh) && "$$python" scripts/setup_environment.py
	@$(PYTHON_IN_VENV) scripts/setup_java.py
	@$(PYTHON_IN_VENV) scripts/setup_kafka.py
	@$(PYTHON_IN_VENV) -m everstate.cli.main prepare

demo: setup ## the story in the terminal: totals that follow changes and survive a kill
	@$(PYTHON_IN_VENV) examples/demo.py

demo-kafka: setup ## the same story on a Kafka broker, which is started for it and stopped after it
	@$(PYTHON_IN_VENV) scripts/kafka_broker.py run $(PYTHON_IN_VENV) examples/demo.py

kafka: ## start a Kafka broker on this machine, fetched through Maven once, and print its address
	@$(PYTHON_IN_VENV) scripts/kafka_broker.py start

kafka-stop: ## stop it; its topics stay
	@$(PYTHON_IN_VENV) scripts/kafka_broker.py stop

quick: lint ## after each edit, without set-up: lint, types, all that needs neither Spark nor kills nor seconds
	EVERSTATE_EFFORT=quick $(PYTEST) -n 2 --ignore tests/docs -m "$(FAST) and not slow"

test: setup ## all checks and tests but the long ones
	@$(MAKE) --no-print-directory lint
	$(PYTEST) -n 2 --ignore tests/docs -m "$(FAST)"
	$(PYTEST) --doctest-modules src/everstate
	$(ON_SPARK) -m "not long and (spark or recovery or docs or kafka)"

test-all: test ## everything: `make test`, then the crash matrix and the long random runs
	@$(MAKE) --no-print-directory long

long: setup ## only what `make test-all` adds to `make test`
	@$(MAKE) --no-print-directory long-random long-spark

long-random: setup ## of that, the random tests with all their examples
	EVERSTATE_EFFORT=full $(PYTEST) -n 2 -m "(long or hypothesis) and not spark and not recovery and not kafka" --ignore tests/docs

long-spark: setup ## of that, what needs Spark or a broker, and the crash matrix
	$(ON_SPARK) -m "(long and (spark or kafka)) or (recovery and (long or not spark))"

unit: ## the tests but the long ones, without set-up and lint
	$(PYTEST) -n 2 --ignore tests/docs -m "$(FAST)"
	$(ON_SPARK) -m "not long and (spark or recovery or kafka)"

docs-test: ## the examples in docstrings, README and docs
	$(PYTEST) --doctest-modules src/everstate
	$(PYTEST) -n 2 tests/docs

docs: setup ## the documentation as a site, in build/site
	@$(PYTHON_IN_VENV) scripts/site.py

dist: setup ## build the wheel, and try it in an environment of its own
	@$(PYTHON_IN_VENV) scripts/try_wheel.py

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

catalogue: ## write tests/unit/messages/catalogue.md: every text for users, side by side
	$(PYTHON_IN_VENV) -m tests.unit.messages.extraction

count: ## the sizes and habits that CONTRIBUTING.md limits, counted
	@sh scripts/count.sh

lock: ## write constraints.txt again, with the newest versions that pyproject.toml allows
	rm -rf build/lock && "$$(sh scripts/find_python.sh)" -m venv build/lock
	build/lock/bin/python -m pip install --quiet --upgrade pip
	build/lock/bin/python -m pip install --quiet --editable . --group dev --group docs hatchling editables install-jdk
	(sed -n '/^#/p' constraints.txt; build/lock/bin/python -m pip freeze --all --exclude-editable --exclude setuptools) > build/lock.txt
	mv build/lock.txt constraints.txt && rm -rf build/lock

clean: ## remove what can be made again, the environment included
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse
