# `make audit` and `make test` are the two commands of the README; both install what is missing.
PYTHON ?= python3
VENV ?= .venv
SEED ?= 0
OUT ?= reports/cities
BIN = $(VENV)/bin
export PYTHONHASHSEED ?= 0
# Tests start many processes: what each imports is compiled once. What a test writes is not: see tests/conftest.py.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: constants size schemas audit all-pairs museum claims papers drift certificates compliance history noise test processors oldest mutants rates long durations lint docs reference dist \
	lock sbom clean

audit: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/cities_audit.py --seed $(SEED) --out $(OUT)

all-pairs: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/all_pairs_audit.py --seed $(SEED)

museum: $(VENV)/.audit
	$(BIN)/python -m dpaudit museum --seed $(SEED) --seeds 5

claims: $(VENV)/.audit
	$(BIN)/python -m dpaudit claims --tests tests --out reports

# The experiments of the five papers, each within a minute: pages, JSON files and pictures in reports/papers.
papers: $(VENV)/.dev
	$(BIN)/python mechanisms/scripts/papers_report.py --seed $(SEED)

# The same experiments again, compared with what is saved: fails where a statement or its agreement changed.
drift: $(VENV)/.dev
	$(BIN)/python mechanisms/scripts/papers_report.py --seed $(SEED) --out build/papers --check reports/papers

certificates: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/certificates_report.py

compliance: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/compliance_report.py --seed $(SEED)

history: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/history_report.py --seed $(SEED)

noise: $(VENV)/.audit
	$(BIN)/python mechanisms/scripts/noise_report.py --seed $(SEED)

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

processors: $(VENV)/.dev
	$(BIN)/python .ci/processors.py

oldest: $(VENV)/.dev
	$(BIN)/python .ci/oldest.py

mutants: $(VENV)/.dev
	MODULES="$(MODULES)" TESTS="$(TESTS)" COUNT="$(COUNT)" LEFT="$(LEFT)" $(BIN)/python .ci/mutants.py

# False alarms on the claim: adds to reports/meta.json on seeds that are not spent, and writes the table.
rates: $(VENV)/.dev
	$(BIN)/python tests/meta/rates.py --seconds $(or $(SECONDS),60) --page docs/measurements/error-rates.md

# The constants of the engine, with their reasons.
constants: $(VENV)/.dev
	$(BIN)/python tests/meta/constants.py --folder docs/measurements/constants

# The lines, classes and constants of each room, and the code that one audit runs.
size: $(VENV)/.dev
	$(BIN)/python tests/meta/size.py

# The published schemas of results, from their types.
schemas: $(VENV)/.dev
	$(BIN)/python tests/meta/schemas.py

long: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or long"

durations: $(VENV)/.dev
	$(BIN)/python .ci/durations.py run -n 2 --dist worksteal -m "not long"

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pages of the reference that are made from the code; a test holds them to it.
reference: $(VENV)/.dev
	$(BIN)/python tests/docs/reference_pages.py

docs: $(VENV)/.dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "The manual: docs/_build/html/index.html"

# dist/dpaudit-VERSION.tar.gz, and the wheel that is built from it: of one commit always the same bits.
dist: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),315532800)
dist: $(VENV)/.dev
	rm -rf dist build
	$(BIN)/python -m build --outdir dist

# The development environment, package by package with digests: requirements/dev.txt. It names no index and no place.
lock: $(VENV)/.supply
	$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements/dev.txt

# The bill of materials of the lock file, CycloneDX: dist/sbom.json.
sbom: $(VENV)/.supply
	mkdir -p dist
	$(BIN)/python -m cyclonedx_py requirements requirements/dev.txt --pyproject pyproject.toml \
		--output-reproducible --output-format JSON --output-file dist/sbom.json

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Python must be 3.11 or newer, got %d.%d. Use make PYTHON=python3.12." % v[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.audit: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[audit]'
	touch $@

$(VENV)/.dev: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.audit $(VENV)/.lint

$(VENV)/.lint: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[lint]'
	touch $@

$(VENV)/.supply: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[supply]'
	touch $@

clean:
	rm -rf $(VENV) .venv-oldest build dist docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
