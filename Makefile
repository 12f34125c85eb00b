# Two commands do everything, set-up included: `make demo` and `make test`.
# Needs Python 3.11 or later, git and make; nothing else.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
LOCKED := --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --upgrade
COMPILE := $(LOCKED) --extra atlas --extra gguf --extra mirror --group build
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test test-numeric test-waiting test-others test-slow test-torch test-zoo test-cpus torture fuzz sweep lint bench bench-many docs sbom lock clean browser
.DEFAULT_GOAL := help

help:
	@echo "make demo        compare small models over HTTP Range, from an empty machine"
	@echo "make test        linters, types, the direction of imports, and all tests"
	@echo "make test-torch  compare every number format with PyTorch, bit by bit (large download)"
	@echo "make test-slow   tests that take long and say little more than those of make test"
	@echo "make test-zoo    tests on the zoo of trained models in ../shared, which must be there"
	@echo "make test-cpus   numeric tests with the kernels of other processors, and on two threads"
	@echo "make torture     faults, kills, crowds, bad files and a soak, printed as a table (an hour)"
	@echo "make fuzz        coverage-guided fuzzing of every parser (three hours; builds atheris with clang)"
	@echo "make bench       speed against the floor, printed as a table"
	@echo "make bench-many  a matrix of 200 models, how costs grow, diffs of 8 GB, printed as tables (long)"
	@echo "make docs        the site, in out/site"
	@echo "make sweep       ten thousand draws of every null and of the whole battery"
	@echo "make lint        only the linters, types and the direction of imports"
	@echo "make sbom        what kinprint is installed with, as CycloneDX, in out/sbom.cdx.json"
	@echo "make lock        renew requirements/*.lock (needs uv)"
	@echo "make clean       remove .venv and everything that was made"

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# An environment made with another, too old Python is made anew.
ifneq ($(wildcard $(BIN)/python),)
ifneq ($(shell $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null && echo good),good)
$(shell rm -rf $(VENV))
endif
endif

$(BIN)/python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
		echo "kinprint needs Python 3.11 or later; install it, or name it: make demo PYTHON=/path/to/python3" >&2; exit 2; fi
	@"$(PYTHON)" -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
		echo "This Python came without venv: install it (on Debian and Ubuntu: apt install python3-venv) and run make again." >&2; exit 2; }

# Lock files are complete, so that nothing has to be resolved; the pip that is locked installs in
# half the time of one that came with an older Python. Modules are compiled on all cores, but
# for tests of others and for what is machine code or never started here.
define install
	@$(PIP) install --require-hashes -r requirements/pip.lock
	@$(PIP) install --no-deps --no-compile --require-hashes -r $(1)
	@$(PIP) install --no-deps --no-build-isolation --no-compile -e .
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/(tests?|mypyc?|debugpy)/' $(VENV)/lib src || true
endef

$(VENV)/.run: requirements/run.lock requirements/pip.lock pyproject.toml | $(BIN)/python
	@echo "Installing kinprint and what it needs into $(VENV) …"
	$(call install,requirements/run.lock)
	@touch $@

# The packages of run.lock are in test.lock too.
$(VENV)/.test: requirements/test.lock requirements/pip.lock pyproject.toml | $(BIN)/python
	@echo "Installing kinprint and what its tests need into $(VENV) …"
	$(call install,requirements/test.lock)
	@touch $(VENV)/.run $@

demo: $(VENV)/.run
	@$(BIN)/kinprint demo

sweep: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.nulls.sweep
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.lineage.sweep

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Three parts side by side, and linters beside them, each with one core for linear algebra: threads
# that wait for each other make a busy machine crawl. What talks to servers and starts commands
# waits more than it computes, so that it gets less of that. Parts end at about the same time.
NUMERIC := tests/lineage tests/redteam tests/nulls tests/measure tests/model
WAITING := tests/atlas tests/cli tests/source tests/mirror tests/torture tests/reader tests/replica
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -p no:cacheprovider

test: $(VENV)/.test browser
	@$(BIN)/python -m compileall -q src  # modules that were changed, for all processes that start
	@$(MAKE) --no-print-directory -j4 --output-sync=line lint test-numeric test-waiting test-others

test-numeric:
	$(PYTEST) $(NUMERIC)

test-waiting:
	$(PYTEST) $(WAITING)

test-others:
	$(PYTEST) $(NUMERIC:%=--ignore=%) $(WAITING:%=--ignore=%)

# Tests of pages drive a Chromium of the system; where there is none, root may install Debian's.
HAS_BROWSER := [ -n "$$KINPRINT_CHROMIUM" ] || command -v chromium || command -v chromium-browser \
	|| command -v google-chrome || command -v google-chrome-stable
APT := DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::http::Timeout=30 -o Acquire::Retries=2

browser:
	@if { $(HAS_BROWSER); } >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing chromium with apt-get, for the tests of pages …"; \
		{ $(APT) update && $(APT) install -y --no-install-recommends chromium; } >/dev/null \
			|| echo "That failed: tests of pages in a browser will be skipped." >&2; \
	else \
		echo "No Chromium here: tests of pages in a browser will be skipped. Install chromium to run them." >&2; \
	fi

test-torch: $(VENV)/.test
	$(BIN)/python -c 'import torch' 2>/dev/null || $(PIP) install 'torch==2.13.0'
	$(BIN)/pytest -m torch

test-slow: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -m "slow and not zoo"

test-zoo: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -m zoo

test-cpus: $(VENV)/.test
	$(BIN)/python -m tests.cpus

torture: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.torture

# FUZZ names parsers and options: make fuzz FUZZ="gguf card --seconds 60".
fuzz: $(VENV)/.test
	$(BIN)/python -c 'import atheris' 2>/dev/null || { $(PIP) install pybind11 setuptools wheel \
		&& CC=clang $(PIP) install --no-build-isolation 'atheris==3.0.0'; }
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.guided $(FUZZ)

sbom: $(VENV)/.run
	@$(BIN)/python -m tools.sbom

bench: $(VENV)/.test
	@$(BIN)/python -m compileall -q src  # modules that were changed since they were installed
	$(BIN)/python -m benchmarks

bench-many: $(VENV)/.test
	$(BIN)/python -m benchmarks.matrix
	$(BIN)/python -m benchmarks.curves
	$(BIN)/python -m benchmarks.diff
	$(BIN)/python -m benchmarks.operations

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "out/site/index.html"

lock:
	uv pip compile $(COMPILE) --group dev -o requirements/test.lock pyproject.toml
	uv pip compile $(COMPILE) -c requirements/test.lock -o requirements/run.lock pyproject.toml
	echo 'pip>=26' | uv pip compile $(LOCKED) -o requirements/pip.lock -

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
