# `make lab` opens the lessons, `make check` runs what takes a minute, `make test` every check; all
# make .venv when it is needed.
# The README has the same steps as plain pip lines.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One worker for each core; a worker that has nothing left takes tests from another.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

.DEFAULT_GOAL := help
.PHONY: help lab check test style

help:
	@echo "make lab                    copy the lessons to gpulab-lessons/ and open JupyterLab"
	@echo "make lab ARGS=--no-browser  the same on a server: only print the address"
	@echo "make check                  style, types and the fast tests: a minute on two cores"
	@echo "make test                   run every check of the project: minutes on two cores"
	@echo "make test ARGS=tests/timing the same with pytest's own arguments; ARGS=-n0 is one process"

lab: $(STAMP)
	@$(BIN)/gpulab lab $(ARGS)

check: style
	$(PYTEST) -m "not slow" $(ARGS)

test: style
	$(PYTEST) --durations=25 --durations-min=1 $(ARGS)

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/gpulab build-notebooks --check

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c "$(SUPPORTED)" || { \
	  echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13; name one that is:" \
	    "make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -c constraints.txt -e ".[lab,gpu,test]"
	@touch $@
