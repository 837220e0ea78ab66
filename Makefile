# Two commands are enough on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml --extra all

unexport PYTHONDONTWRITEBYTECODE # compiling imports anew would take each process seconds

.PHONY: help install demo test test-slow bench docs dist lint format lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.installed  ## build .venv from requirements.lock (only when something changed)

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "moqd needs Python 3.11 or newer, but $(PYTHON) is older; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # all cores; a few files of packages are templates
	@touch $@

$(VENV)/.bench-installed: requirements-bench.lock $(VENV)/.installed
	@echo "installing the peers to measure against ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements-bench.lock
	@touch $@

demo: install  ## teach a hopper to hop by MOME-P2C+, in two minutes, and show what it found
	@rm -rf runs/demo
	$(BIN)/moqd train hopper-2 --minutes 2 --snapshot-every 20 --out runs/demo
	$(BIN)/moqd explore runs/demo

test: install  ## the tests, a few minutes
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

test-slow: install  ## the long tests too
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

bench: $(VENV)/.bench-installed  ## measure against QDax and pymoo, as ratios
	$(BIN)/python -m benchmarks

docs: install  ## the documentation as a site, in site/
	$(BIN)/python docs/gallery.py
	$(BIN)/python -m sphinx -b html -n -W -E --keep-going -q -d .sphinx docs site
	@echo "open site/index.html"

dist: install  ## the wheel, in dist/
	$(BIN)/python -m hatchling build -t wheel

lint: install  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: install  ## resolve the dependencies anew
	@$(BIN)/python -m pip install -qq --disable-pip-version-check uv
	$(COMPILE) --upgrade --group dev -o requirements.lock
	$(COMPILE) --upgrade --group dev --group bench --constraints requirements.lock -o requirements-bench.lock

clean:  ## remove everything that can be built again
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .sphinx site docs/_built docs/notebooks/*.md docs/notebooks/*.ipynb runs/demo
