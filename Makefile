# `make lab` opens the lessons, `make check` runs what is quick, `make test` every check; all
# make .venv when it is needed.
# The README has the same steps as plain pip lines.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
STAMP := $(VENV)/.installed
# Every worker, and each process that a test starts, reads the modules' bytecode.
unexport PYTHONDONTWRITEBYTECODE
# IPython warns if another environment than .venv is active, and the tests take warnings for errors.
unexport VIRTUAL_ENV
# A worker for each core: while one waits for a process, the checks beside it use the core. One that
# has nothing left takes tests from another.
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
# The tests of `make check`: those that find most for their time. They have a dozen random programs
# for each law, the simulator, every way to time, and the diagnosis of each wrong answer. Pictures,
# lessons, the programs of learners and whatever takes seconds are left to `make test`.
QUICK := core/serialization core/test_markup.py core/test_requirements.py core/test_units.py device \
  exercises/test_diagnoses.py gpus happens_before laws magic roofline test_stats.py \
  test_wrong_arguments.py timing tracing views/live views/machine virtual/dispatch \
  virtual/operators virtual/simulator virtual/tensors workloads
PYTEST := $(BIN)/python -m pytest -n $(CORES) --maxprocesses 8 --dist worksteal
# Checks run side by side, the longest first: the others fill the time in which one waits.
BESIDE := $(MAKE) --no-print-directory --jobs=3
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))

# TORCH=cpu takes PyTorch's small build for the CPU, TORCH=default the build that pip takes by
# itself, which has gigabytes of CUDA libraries on Linux, TORCH=cu126 the one for old drivers and
# GPUs, and TORCH=cu128 the one for Blackwell with a driver before 580. Nobody downloads a build that
# cannot use the GPU.
TORCH_INDEX ?= https://download.pytorch.org/whl/$(TORCH)
ifndef TORCH
  # an unsupported Python says nothing here, and is refused below
  CHOICE := $(shell $(PYTHON) gpulab/device/_builds.py 2>/dev/null)
  TORCH := $(or $(firstword $(CHOICE)),cpu)
  REASON := $(wordlist 2,$(words $(CHOICE)),$(CHOICE))
else
  REASON := you chose it
endif
ifeq ($(filter cpu default cu126 cu128,$(TORCH)),)
  $(error TORCH=$(TORCH) is not known; write TORCH=cpu for the small build, TORCH=cu126 for drivers \
    from 525 and GPUs before Turing, TORCH=cu128 for Blackwell with drivers from 570, or \
    TORCH=default for pip's own choice)
endif
ifeq ($(TORCH),cu128)
  PINS := $(VENV)/constraints.txt
else
  PINS = $(shell test -f $(VENV)/constraints.txt && echo $(VENV)/)constraints.txt
endif

.DEFAULT_GOAL := help
.PHONY: help lab check test test-matrix docs slides
.PHONY: style lint types platforms win32 darwin fast-tests tests browser-tests

help:
	@echo "make lab                    copy the lessons to gpulab-lessons/ and open JupyterLab"
	@echo "make lab ARGS=--no-browser  the same on a server: only print the address"
	@echo "make lab TORCH=cpu          the first time: take the small build of torch, without CUDA"
	@echo "make lab TORCH=default      the first time: take the build that pip takes, with CUDA on Linux"
	@echo "make lab TORCH=cu126        the first time: take the build for drivers from 525, or for Volta"
	@echo "make lab TORCH=cu128        the first time: the same for Blackwell with drivers from 570"
	@echo "make check                  style, types and the quickest tests: half a minute on two cores"
	@echo "make docs                   build the book in build/book, and run the lessons for it"
	@echo "make slides                 write slides of the lessons into build/slides, with reveal.js"
	@echo "make slides ARGS=03_events  the same for one lesson"
	@echo "make test                   run every check: five to eight minutes on two cores"
	@echo "make test ARGS=tests/timing the same with pytest's own arguments; ARGS=-n0 is one process"
	@echo "make test-matrix            the fast tests on each Python that is here, with the oldest and"
	@echo "                            the newest dependencies, in environments of their own"

lab: $(LAB)
	@$(BIN)/gpulab lab $(ARGS)

# Without the notebooks' part of `style`: the tests compare each notebook with its source.
check: $(STAMP)
	$(BESIDE) fast-tests types lint

test: $(STAMP)
ifeq ($(ARGS),)
	$(BESIDE) browser-tests tests lint types platforms
else
	$(PYTEST) --durations=25 --durations-min=1 $(ARGS)
endif

# They wait for nothing, so a worker for each core is enough.
fast-tests: $(STAMP)
	$(BIN)/python -m pytest -n $(CORES) -m "not slow" $(QUICK:%=tests/%) $(ARGS)

tests: $(STAMP)
	$(PYTEST) --durations=25 --durations-min=1 -m "not browser"

# One process, as it waits for the browser and for kernels. The book comes last: by then the other
# tests have run the lessons that it shows.
browser-tests: $(STAMP)
	$(BIN)/python -m pytest --durations=10 --durations-min=1 -m browser tests/browser tests/book

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -j auto -d build/doctrees docs build/book $(ARGS)
	@echo "The book: build/book/index.html"

# npm checks what it fetches against the registry's digest. The slides take reveal.js with them.
REVEAL := build/node_modules/reveal.js

slides: $(STAMP) $(REVEAL)
	$(BIN)/python -m docs.extensions.slides $(ARGS)

$(REVEAL):
	npm install --prefix build --no-save --ignore-scripts --no-audit --no-fund reveal.js@5.2.1

# What the packages need decides which build of torch: uv has its own word for the small one.
test-matrix: $(STAMP)
	$(BIN)/pip install -c $(PINS) "tox>=4.30" "tox-uv>=1.28"
	$(if $(filter-out default,$(TORCH)),UV_TORCH_BACKEND=$(TORCH)) $(BIN)/tox run $(ARGS)

style: lint types $(STAMP)
	$(BIN)/gpulab build-notebooks --check

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(STAMP)
	$(BIN)/mypy

# mypy finds names of the standard library that Windows or macOS does not have. The types of other
# packages are the same there; `types` has checked them. To write a cache would take as long as to
# check without one.
platforms: win32 darwin

win32 darwin: $(STAMP)
	$(BIN)/mypy --platform $@ --cache-dir /dev/null --config-file= --no-site-packages \
	  --ignore-missing-imports gpulab

$(LAB): pyproject.toml constraints.txt
	@$(PYTHON) -c "$(SUPPORTED)" || { \
	  echo "$(PYTHON) is not Python 3.11 to 3.14; name one that is:" \
	    "make $(or $(MAKECMDGOALS),lab) PYTHON=python3.12" >&2; exit 1; }
ifeq ($(TORCH),cpu)
	@echo "torch: the CPU build, because $(REASON), from $(TORCH_INDEX)."
	@echo "About 0.2 GB to download and 0.8 GB on disk; as much again for all other packages."
	@echo "With the CUDA libraries, 2.1 GB to download and 4.6 GB on disk: make lab TORCH=default"
else ifeq ($(TORCH),default)
	@echo "torch: the build that pip takes by itself, because $(REASON)."
	@echo "On Linux it has CUDA: about 2.1 GB to download and 4.6 GB on disk; 0.2 and 0.8 GB for all"
	@echo "other packages. The CPU build of torch, 0.2 GB to download: make lab TORCH=cpu"
else
	@echo "torch: the build for CUDA $(TORCH:cu12%=12.%), because $(REASON), from $(TORCH_INDEX)."
	@echo "It has CUDA: gigabytes to download. The CPU build, 0.2 GB: make lab TORCH=cpu"
endif
	$(PYTHON) -m venv $(VENV)
ifeq ($(TORCH),cu128)
	sed 's/^torch==.*/torch==2.11.0/' constraints.txt > $(PINS)  # the last with CUDA 12.8
endif
ifneq ($(TORCH),default)
	$(BIN)/pip install -c $(PINS) --no-deps --index-url $(TORCH_INDEX) torch || { \
	  echo "torch could not be had from $(TORCH_INDEX); name another index: make lab" \
	    "TORCH_INDEX=URL, or take pip's own choice: make lab TORCH=default" >&2; exit 1; }
endif
	$(BIN)/pip install -c $(PINS) -e ".[lab]"
	@touch $@

$(STAMP): $(LAB)
	$(BIN)/pip install -c $(PINS) -e ".[docs,test]"
	@touch $@
