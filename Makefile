# `make lab` opens the lessons, `make test` runs every check; both make .venv when it is needed.
# The README has the same steps as plain pip lines.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

.DEFAULT_GOAL := help
.PHONY: help lab test

help:
	@echo "make lab                    copy the lessons to gpulab-lessons/ and open JupyterLab"
	@echo "make lab ARGS=--no-browser  the same on a server: only print the address"
	@echo "make test                   run every check of the project"

lab: $(STAMP)
	@$(BIN)/gpulab lab $(ARGS)

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/gpulab build-notebooks --check
	$(BIN)/python -m pytest $(ARGS)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c "$(SUPPORTED)" || { \
	  echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13; name one that is:" \
	    "make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -c constraints.txt -e ".[lab,gpu,test]"
	@touch $@
