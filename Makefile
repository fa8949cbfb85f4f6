# Every target does the set-up it needs. A machine with Python >= 3.11, venv and make is enough to start.

PYTHON ?= python3
# more arguments for the command behind a target, for instance: make test ARGS='-m "not spark"'
ARGS ?=
# of the demo's table: native, iceberg or delta
FORMAT ?= native

BIN := .venv/bin
# what Spark must know of this machine was found out by the set-up
RUN = . .venv/environment && $(BIN)/python

# what the set-up installs is compiled where it is first imported, and once
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench docs api lock clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup:  ## Create .venv with the locked packages and find Java, where that is not done yet
	@$(PYTHON) .ci/prepare.py

demo: setup  ## A year of real flights: load, upsert, delete, travel in time, compare readers (FORMAT=iceberg)
	@$(RUN) examples/flights.py --format $(FORMAT) $(ARGS)

test: export HUDI_CAMPAIGN ?= third
test: setup  ## Run all tests; of matrices and campaigns a third, another one for each commit
	$(RUN) -m pytest --numprocesses=auto --maxprocesses=5 --dist=worksteal --durations=25 --session-timeout=7200 $(ARGS)

.PHONY: check
check: export HYPOTHESIS_PROFILE = quick
check: lint  ## Check style, types, imports, and run the pure tests: before every commit, under a minute
	$(RUN) -m pytest -q -m "pure and not slow" tests/unit tests/property $(ARGS)

.PHONY: campaigns
campaigns: export HUDI_CAMPAIGN = whole
campaigns: setup  ## Run all tests, and all of the campaigns that make test takes a sample of
	$(RUN) -m pytest --numprocesses=auto --maxprocesses=5 --dist=worksteal --durations=25 $(ARGS)

.PHONY: prove
prove: setup  ## Let writers die at every step of every action; random histories; many writers: hours
	$(RUN) -m tests.crash.prove $(ARGS)

.PHONY: writers
writers: setup  ## Let four writers and table services work on one table, kill and stop some, and check the rows
	$(RUN) -m tests.crash.many_writers $(ARGS)

.PHONY: commits
commits: setup  ## Let a table of each format live through 500 random commits, services and deaths
	$(RUN) -m tests.crash.random_commits $(ARGS)

.PHONY: past
past: setup  ## Look at all retained states of a table of each format after each of 2,000 random steps
	$(RUN) -m tests.crash.random_past $(ARGS)

.PHONY: matrix
matrix: export HUDI_MATRIX ?= complete
matrix: setup  ## Run every combination of what a write can be; hours, where make test takes a sample
	$(RUN) -m pytest tests/interop/test_write_matrix.py $(ARGS)

.PHONY: rest-catalog
rest-catalog: export HUDI_REST_CATALOG_JARS = $(CURDIR)/.java/rest-catalog
rest-catalog: setup  ## Keep tables in a REST catalog: the Iceberg project's own, which Maven brings here
	mvn --quiet --batch-mode --file tests/rest_catalog/pom.xml dependency:copy-dependencies \
	  -DoutputDirectory=$(HUDI_REST_CATALOG_JARS)
	$(RUN) -m pytest tests/rest_catalog/rest_catalog_tests.py $(ARGS)

.PHONY: interop
interop: setup  ## Let Hudi-Spark, Iceberg-Spark and Delta-Spark (by Maven) read and write our tables
	@$(BIN)/python -m tests.jvm.prepare
	$(RUN) -m pytest -v --numprocesses=logical --maxprocesses=2 --dist=loadfile --durations=25 \
	  -o python_files='*_cases.py' tests/jvm $(ARGS)

.PHONY: captured-tables
captured-tables: setup  ## Let Hudi-Spark (three releases, by Maven) write the tables of tests/hudi_tables again
	@$(BIN)/python -m tests.jvm.prepare captured_tables
	$(RUN) -m tests.jvm.capture_tables $(ARGS)

.PHONY: trino
trino: setup  ## Query tables of every format by a real Trino (0.8 GB by Maven), and print what it finds
	@$(BIN)/python -m tests.trino.prepare
	$(RUN) -m pytest -v -s --durations=5 -o python_files='*_cases.py' tests/trino $(ARGS)

.PHONY: postgres
postgres: setup  ## Let the SQL format pass its conformance over a real PostgreSQL (Debian's package)
	@$(BIN)/python -m tests.postgres.prepare
	$(RUN) -m pytest -v --numprocesses=logical --maxprocesses=2 --dist=loadfile --durations=5 \
	  -o python_files='*_cases.py' tests/postgres $(ARGS)

.PHONY: cluster
cluster: setup  ## Write, clean, cluster and restore on a Spark cluster of this machine; kill executors and drivers
	$(RUN) -m pytest -v --durations=25 -o python_files='*_cases.py' tests/cluster $(ARGS)

.PHONY: model
model: export HUDI_MODEL = 3
model: setup  ## Take every path of the two-step commit with three writers; make test takes two
	$(RUN) -m pytest -s tests/model $(ARGS)

# all at once: types take longer than the rest
lint: setup  ## Check style, types, who imports whom, and what rooms hold
	@$(MAKE) --no-print-directory --jobs lint-types lint-style lint-imports lint-rooms

.PHONY: lint-types lint-style lint-imports lint-rooms
lint-types:
	$(BIN)/mypy
lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
lint-imports:
	$(BIN)/lint-imports
lint-rooms:
	$(BIN)/python .ci/rooms.py

format: setup  ## Put the code into its one layout
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Measure writes against Spark, deltalake and pyiceberg (bench-jvm: Hudi-Spark)
	$(RUN) benchmarks/run.py --cases all $(ARGS)
	$(RUN) benchmarks/small_commits.py $(filter --markdown benchmarks/README.md,$(ARGS))

.PHONY: bench-small
bench-small: setup
	$(RUN) benchmarks/small_commits.py $(ARGS)

.PHONY: bench-jvm
bench-jvm: setup
	@$(BIN)/python -m tests.jvm.prepare
	$(RUN) benchmarks/run.py --hudi-spark --cases 'bulk_insert,upsert_1,upsert_10,upsert_50,upsert_skew' $(ARGS)

.PHONY: bench-big
bench-big: setup
	$(RUN) benchmarks/run.py --cases big --rows 9600000 $(ARGS)

.PHONY: bench-metadata
bench-metadata: setup
	$(RUN) benchmarks/metadata.py $(ARGS)

.PHONY: bench-formats
bench-formats: setup
	$(RUN) benchmarks/formats.py $(ARGS)

.PHONY: bench-reads
bench-reads: setup
	$(RUN) benchmarks/reads.py $(ARGS)

.PHONY: bench-clustering
bench-clustering: setup
	$(RUN) benchmarks/clustering.py $(ARGS)

.PHONY: bench-layouts
bench-layouts: setup  ## Measure the object-store layout beside the default one
	$(RUN) benchmarks/layouts.py $(ARGS)

.PHONY: bench-long
bench-long: setup
	$(RUN) benchmarks/long_lived.py $(ARGS)

.PHONY: bench-virtual
bench-virtual: setup
	$(RUN) benchmarks/virtual_keys.py $(ARGS)

.PHONY: bench-services
bench-services: setup
	$(RUN) benchmarks/table_services.py $(ARGS)

.PHONY: bench-keys
bench-keys: setup
	$(RUN) benchmarks/long_keys.py $(ARGS)

.PHONY: bench-wide
bench-wide: setup  ## Measure rows of 2,000 columns, and rows of 4 MB
	$(RUN) benchmarks/wide.py $(ARGS)

.PHONY: bench-logs
bench-logs: setup
	$(RUN) benchmarks/merge_on_read.py $(ARGS)

.PHONY: bench-log-writes
bench-log-writes: setup
	$(RUN) benchmarks/log_writes.py $(ARGS)

.PHONY: bench-connector
bench-connector: setup
	$(RUN) benchmarks/connector.py $(ARGS)

.PHONY: bench-scale
bench-scale: setup  ## Measure planning, writes and services of tables of 10,000 files and more
	$(RUN) benchmarks/scale.py $(ARGS)

docs: export NO_MKDOCS_2_WARNING = 1
docs: setup  ## Write the generated pages of docs/, and build the site: build/site/index.html
	$(BIN)/python -m hudi_core.config.docs
	$(BIN)/python -m hudi_core.plugin.option_page
	$(BIN)/mkdocs build --strict --quiet $(ARGS)

.PHONY: conformance
conformance: setup  ## Run the registered suite of each installed format, and put the matrix on docs/conformance.md
	$(BIN)/python docs/site/conformance.py

.PHONY: pictures
pictures: docs  ## Take pictures of a timeline's page and of the site by Debian's Chromium: build/pictures
	$(RUN) -m tests.pictures.take

api: setup  ## Accept the public interface as it is now
	$(BIN)/python tests/packaging/test_public_api.py

.PHONY: wheels
wheels: setup  ## Build the wheels of all packages, through their source distributions: dist/
	rm -rf dist
	for project in . delta_format iceberg_format plugins/conformance plugins/sql_format; do \
	  $(BIN)/python -m build --no-isolation --outdir dist $$project > /dev/null || exit 1; \
	done
	@ls dist/*.whl

.PHONY: release
release: wheels  ## Build the wheels, and try them in an empty environment that pip fills
	$(BIN)/python -m tests.packaging.try_release dist

lock: setup  ## Bring requirements.lock in line with pyproject.toml (ARGS=--upgrade: newest versions)
	$(BIN)/uv pip compile pyproject.toml --extra spark --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	  --quiet --output-file requirements.lock $(ARGS)
	for reader in $(basename $(wildcard tests/readers/*.in tests/jvm/environments/*.in tests/trino/*.in)); do \
	  $(BIN)/uv pip compile $$reader.in --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
	    --quiet --output-file $$reader.lock $(ARGS) || exit 1; \
	done

clean:  ## Remove caches and build output; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .bench
	rm -rf demo-table spark-warehouse metastore_db derby.log
	find . -path ./.venv -prune -o \( -name __pycache__ -o -name '*.egg-info' \) -type d -exec rm -rf {} +
