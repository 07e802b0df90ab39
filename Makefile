# `make help` lists the targets. Either of `make demo` and `make test` works first, and each works again.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
EMULATOR := .venv-emulator
UV      = $(BIN)/uv
LOCK    = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.DEFAULT_GOAL := help
.PHONY: help install lock lint format types unit test test-emulator test-members golden demo bench eval clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP) ## make .venv with everything the project needs, from the locks

$(STAMP): pyproject.toml locks/bootstrap.txt locks/dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/bootstrap.txt
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r locks/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@

lock: $(STAMP) ## make the locks anew (hashes, no addresses)
	$(LOCK) pyproject.toml -o locks/layer.txt
	$(LOCK) --group documents --group local --group dev pyproject.toml -o locks/dev.txt
	$(LOCK) --group emulator -o locks/emulator.txt

lint: $(STAMP) ## ruff and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(STAMP) ## let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

unit: $(STAMP) ## the tests that need no engine
	$(BIN)/pytest tests/unit

test: lint types ## everything CI runs, cheapest first
	$(BIN)/pytest

$(EMULATOR)/.installed: $(STAMP) locks/emulator.txt
	test -x $(EMULATOR)/bin/python || $(BIN)/python -m venv $(EMULATOR)
	$(UV) pip install --quiet --python $(EMULATOR)/bin/python --require-hashes -r locks/emulator.txt
	touch $@

test-emulator: $(EMULATOR)/.installed ## from an upload to PostgreSQL through an AWS emulator and Lambda's own runtime
	KI_TEST_EMULATOR=$(EMULATOR) $(BIN)/pytest tests/pipeline/test_emulator.py

test-members: $(STAMP) ## the state machine with 5,000 bad files in a file, in moto's interpreter (minutes)
	KI_TEST_MEMBERS=5000 $(BIN)/pytest tests/pipeline/test_moto_machine.py -k many_bad_files --timeout=3600

golden: $(STAMP) ## write the reviewed files anew; review their diff
	KI_TEST_WRITE_GOLDEN=1 $(BIN)/pytest -m golden

demo: $(STAMP) ## start the local stack, ingest the samples, search as two colleagues
	$(BIN)/ki demo

bench: $(STAMP) ## speed: paired, in one run
	$(BIN)/ki bench

eval: $(STAMP) ## retrieval quality on the evaluation sets
	$(BIN)/ki eval

clean: ## stop the local stack and remove what it and the tests made
	-test ! -x $(BIN)/ki || $(BIN)/ki down
	rm -rf .ki .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
