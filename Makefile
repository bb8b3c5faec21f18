# `make demo` and `make test` do everything on a machine that has Python 3.11+ and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := irdiff tests
# without bytecode each of the hundreds of commands that tests run compiles a thousand modules (1.2 s)
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help slow evidence false-alarms demo test test-all toolchains unit lint lint-workflows coverage mutation catch oracle fuzz bench bench-statistics schema lock examples picture crater

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: $(VENV)/.installed  ## the main job: two releases, the gate tier of the corpus, four targets
	$(BIN)/irdiff compare triton==3.8.0 triton==3.9.0 --tier gate

test: $(VENV)/.installed  ## everything CI checks (two releases of Triton are installed once)
	$(MAKE) --jobs 2 --output-sync toolchains lint lint-workflows
	$(BIN)/pytest tests -m "not wide" -n 3 --dist loadfile --no-loadscope-reorder

test-all: lint  ## what is slower too, over many releases; CI says which of it a change touches
	$(BIN)/pytest tests -n 2 --dist loadfile --no-loadscope-reorder

toolchains: $(VENV)/.installed  ## the two releases that tests compare
	$(BIN)/irdiff toolchain install triton==3.8.0
	$(BIN)/irdiff toolchain install triton==3.9.0

unit: $(VENV)/.installed  ## seconds, no processes
	$(BIN)/pytest tests/unit tests/golden -m "not slow" -n 2 --dist worksteal

slow: $(VENV)/.installed  ## the unit tests that unit leaves out: simulations, and bounds of time and memory
	$(BIN)/pytest tests/unit -m slow -n 2 --dist worksteal

coverage: $(VENV)/.installed  ## branches of attribute, capture, compare and compile that unit tests take
	$(BIN)/python -m tests.programs.branch_coverage

lint: $(VENV)/.installed
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

lint-workflows: $(VENV)/.installed
	rm -rf $(VENV)/workflows
	$(BIN)/python -m tests.programs.rendered_workflows $(VENV)/workflows
	# a file that is no YAML is no finding of zizmor's: the schema is checked first
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml $(VENV)/workflows/*/.github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions .github/actions/*/action.yml
	$(BIN)/zizmor --quiet --offline .github $(VENV)/workflows/*/.github

mutation: $(VENV)/.installed  ## the full mutation suite of the normalizers
	nice $(BIN)/python -m tests.programs.mutation --full

catch: $(VENV)/.installed  ## which of the same 300 planted faults unit and golden tests catch, against the committed table
	nice $(BIN)/python -m tests.programs.catch run --out $(VENV)/catch.tsv
	$(BIN)/python -m tests.programs.catch compare tests/data/catch/before.tsv $(VENV)/catch.tsv

fuzz: $(VENV)/.installed  ## hostile texts and run folders, ten minutes each
	$(BIN)/python -m tests.programs.mutation.fuzz --seconds 600
	$(BIN)/python -m tests.programs.fuzz_run_folder --seconds 600

bench: $(VENV)/.installed  ## what a comparison costs beside compiling alone
	$(BIN)/python -m tests.programs.bench

bench-statistics: $(VENV)/.installed  ## how often a verdict of speed is wrong, by simulation
	nice $(BIN)/python -m tests.programs.bench_statistics

evidence: $(VENV)/.installed  ## 500 random edits of kernel packages and 200 of the corpus, against --no-cache
	nice $(BIN)/python -m tests.programs.evidence_edits --edits 500
	nice $(BIN)/python -m tests.programs.evidence_corpus

false-alarms: $(VENV)/.installed  ## a compiler against itself, whatever does not matter changed
	nice $(BIN)/python -m tests.programs.false_alarms --tier gate --release 3.9.0 --release 3.7.1

oracle: $(VENV)/.installed  ## six real comparisons against what irdiff said of them before
	nice $(BIN)/python -m tests.programs.oracle check

schema: $(VENV)/.installed  ## the JSON Schema of run.json, from the model
	$(BIN)/python -c "import json; from irdiff.run import run_folder; print(json.dumps(run_folder.json_schema(), indent=1, sort_keys=True))" > reports/run.schema.json

examples: $(VENV)/.installed  ## the committed reports and the picture of the terminal, made anew
	$(BIN)/python -m tests.programs.examples

crater: $(VENV)/.installed  ## two releases over the kernels of all packs: what happens to the projects that ship them
	nice $(BIN)/irdiff compare triton==3.8.0 triton==3.9.0 --pack all --target sm_90 --no-attribute --no-recheck --markdown crater.md

picture: $(VENV)/.installed  ## the pictures of the page, from the run folder RUN; needs Chromium (see reports/README.md)
	$(BIN)/irdiff report $(RUN) --html report.html
	$(BIN)/python -m tests.programs.browser report.html reports/screenshot.png --width 1400 --height 1050
	$(BIN)/python -m tests.programs.browser report.html reports/screenshot-narrow.png --width 500 --height 1100
	$(BIN)/python -m tests.programs.browser report.html reports/screenshot-group.png --height 1020 --hash '#group-1'

lock: $(VENV)/.installed  ## pin the newest versions of every dependency
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --group dev --generate-hashes --universal \
		--python-version 3.11 --no-header --output-file requirements.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --group build --constraint requirements.lock --generate-hashes --universal \
		--python-version 3.11 --no-header --no-annotate --output-file .github/actions/install/requirements.txt
	$(BIN)/uv pip compile --quiet pyproject.toml --group build --extra history --constraint requirements.lock --generate-hashes \
		--universal --python-version 3.11 --no-header --no-annotate --output-file .github/actions/install/requirements-history.txt
