# Every target makes its own virtual environment; Python 3.10 or later and a C++ compiler are all that must be there.
PYTHON ?= python3
VENV := .venv
# Processes that run tests, a number or auto: one for each processor.
WORKERS ?= auto
# Packages that some tests use where they are, and that are large: make test TESTED_WITH="torch jax".
TESTED_WITH ?=
BIN := $(VENV)/bin

.PHONY: demo test lint goldens clean

$(VENV)/ready: pyproject.toml setup.py $(wildcard runtime/quick_*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(VENV)/ready

demo: $(VENV)/ready
	$(BIN)/tilewright demo

test: lint
	$(if $(TESTED_WITH),$(BIN)/python -m pip install --quiet $(TESTED_WITH))
	$(BIN)/python -m pytest -q -n $(WORKERS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target build/typecheck .
	$(BIN)/mypy build/typecheck/tilewright

goldens: $(VENV)/ready
	$(BIN)/python -m pytest -q tests/test_goldens.py tests/test_host_function.py --update-goldens

clean:
	rm -rf build $(VENV)/ready
