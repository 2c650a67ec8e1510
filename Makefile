# Everything runs inside .venv, made on first use; no root needed.
#   make book   environment, recordings, quick profile in executed/local, HTML in _build/html
#   make test   environment, lint, types, tests, the smoke book: minutes
#   make test-all  the same, then what is deep: every page on data of one's own, every cache damaged, processes killed, fuzzing
#   make gpu    time and memory at the papers' sizes, on an NVIDIA GPU, at most 8 minutes
PYTHON ?= $(shell for v in python3 python3.13 python3.12 python3.11; do $$v -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo $$v && break; done)
PROFILE ?= quick
JOBS ?= 2
WHICH ?= not deep
VENV := .venv
BIN := $(VENV)/bin
BOOK := $(VENV)/.book
DEV := $(VENV)/.dev
PYTEST := OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=20
# Every kernel and worker imports a thousand modules: whoever imports one first leaves it compiled for the others.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book test test-all lab smoke bench gpu clean env
.DELETE_ON_ERROR:

book: $(BOOK)
	$(BIN)/pullpush fetch
	$(BIN)/pullpush run --all --profile $(PROFILE) --jobs $(JOBS)
	$(BIN)/pullpush build --profile $(PROFILE)

test: $(DEV)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(PYTEST) -m "$(WHICH)"

test-all: WHICH := deep or not deep
test-all: test

smoke: $(BOOK)
	$(BIN)/pullpush run --all --profile smoke --jobs $(JOBS)

lab: $(BOOK)
	$(BIN)/pullpush lab

bench: $(DEV)
	for script in $(filter-out benchmarks/gpu.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

gpu: $(BOOK)
	$(BIN)/python benchmarks/gpu.py

env: $(DEV)

# What readers need, and what tests need besides. Modules are compiled when they are imported first: most of those that
# torch brings never are.
$(BOOK): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Pull & Push needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile -e ".[book]"
	touch $(BOOK)

$(DEV): $(BOOK)
	$(BIN)/python -m pip install --quiet --no-compile -e ".[dev]"
	touch $(DEV)

clean:
	rm -rf _build executed/local .pytest_cache .ruff_cache .hypothesis
