# `make demo` and `make test` do everything on a machine that has Python 3.11+ and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

$(VENV)/.installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

.PHONY: demo test lint unit
demo: $(VENV)/.installed
	$(BIN)/irdiff compare triton==3.8.0 triton==3.9.0

lint: $(VENV)/.installed
	$(BIN)/ruff check irdiff tests
	$(BIN)/ruff format --check irdiff tests
	$(BIN)/mypy

unit: $(VENV)/.installed
	$(BIN)/pytest tests/unit

test: lint
	$(BIN)/pytest tests
