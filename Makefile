# make report | test are the two commands; `make help` lists the rest. PYTHON=, VENV=, LOG=, OUT= and ARGS= may be set.
VENV ?= .venv
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell $(p) -c $(NEW_ENOUGH) 2>/dev/null && echo $(p))))
LOG ?= data/sample_week.parquet
OUT ?= reports
ARGS ?=

NEW_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 11))'
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
UV_PIN := uv==0.13.9
BENCH_PEERS := libcachesim>=0.3.5,<0.4 kvcache-simulator>=0.1.3,<0.2
COMPILE := $(UV) pip compile -q --universal --python-version 3.11 --no-header --overrides lock-overrides.txt
INSTALL = if [ -x $(UV) ]; then $(UV) pip install -q --compile-bytecode --python $(PY) --no-deps $(1); else $(PY) -m pip install -q --disable-pip-version-check --no-deps $(1); fi
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-kernel-startup-timeout=60
NOTEBOOKS := $(wildcard notebooks/*.ipynb)

.PHONY: help env report test style browser lab bench notebooks example lock check-lock clean

help:
	@echo 'make report [LOG=file]   a log in, one HTML report out (default: the bundled sample week)'
	@echo 'make test                style, types, every test, every notebook, the report in a browser'
	@echo 'make env                 only install, into $(VENV)'
	@echo 'make lab                 JupyterLab on the notebooks'
	@echo 'make bench               the benchmarks'
	@echo 'make notebooks           run the six notebooks afresh on the sample week and keep their outputs'
	@echo 'make example             make the two kept files of reports/ again'
	@echo 'make lock, check-lock    pin the dependencies again; see whether the pins still cover pyproject.toml'
	@echo 'make clean               remove the environment, caches and reports'

env: $(VENV)/.stamp

$(VENV)/.stamp: requirements.lock pyproject.toml
	@$(or $(PYTHON),false) -c $(NEW_ENOUGH) || { echo "Python 3.11 or newer is needed, found $$($(or $(PYTHON),python3) --version 2>&1); name one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo 'Installing into $(VENV) from requirements.lock (once)'
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -q --disable-pip-version-check '$(UV_PIN)' || echo 'uv is not to be had here, pip does it (slower)'
	@$(call INSTALL,--require-hashes -r requirements.lock)
	@$(call INSTALL,-e .)
	@echo 'Compiling the replay loops (once)'
	@$(PY) -m kit.replay
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp bench/requirements.lock
	@($(call INSTALL,--require-hashes -r bench/requirements.lock)) || echo 'no peers to compare with on this machine: $(BENCH_PEERS)'
	@touch $@

report: env
	@$(PY) -m kit report $(LOG) --out $(OUT) $(ARGS)

test: style browser
	$(PY) -m pytest -n 2 --dist loadfile $(ARGS)
	$(if $(NOTEBOOKS),$(PY) -m pytest $(NBVAL) -n 2 --dist loadfile $(NOTEBOOKS))

style: env
	$(PY) -m ruff check kit tests bench
	$(PY) -m mypy kit

browser: env
	$(PY) tests/browser.py

# JupyterLab asks at its first start whether it may fetch news; here it neither asks nor fetches.
lab: env
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' > $(VENV)/share/jupyter/lab/settings/overrides.json
	@$(PY) -m jupyterlab --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.default_url=/lab/tree/notebooks --ServerApp.root_dir=. $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

bench: $(VENV)/.stamp-bench
	@for file in bench/*.py; do echo "== $$file"; $(PY) $$file $(ARGS) || exit 1; done

notebooks: env
	cd notebooks && ../$(PY) -m jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False *.ipynb

example: env
	$(PY) -m kit report data/sample_week.parquet --out reports
	cp reports/sample_week/report.html reports/sample_week.html
	$(PY) -c 'import json, pathlib as p; from kit.report.picture import picture; \
	p.Path("reports/verdict.svg").write_text(picture(json.loads(p.Path("reports/sample_week/results.json").read_text())))'

lock: env
	$(COMPILE) pyproject.toml --all-extras --group dev --generate-hashes -o requirements.lock
	$(COMPILE) pyproject.toml --all-extras --group dev --no-annotate -o constraints.txt
	printf '%s\n' $(foreach peer,$(BENCH_PEERS),'$(peer)') | $(COMPILE) - --no-deps --generate-hashes -o bench/requirements.lock

check-lock: env
	@$(COMPILE) pyproject.toml --all-extras --group dev --no-annotate -o $(VENV)/now.txt
	@names() { sed -nE 's/^([a-z0-9._-]+)==.*/\1/p' $$1 | sort -u; }; \
	names requirements.lock > $(VENV)/locked-names; names $(VENV)/now.txt > $(VENV)/now-names; \
	if diff $(VENV)/locked-names $(VENV)/now-names; then echo 'the lock covers pyproject.toml'; else echo 'run: make lock' >&2; exit 1; fi

clean:
	rm -rf $(VENV) .ruff_cache .mypy_cache .pytest_cache .hypothesis reports/*/
	find kit tests bench notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf
