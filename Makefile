# Needs make, git and Python 3.11 or later; everything else is installed into .venv from requirements.lock.
# Paths are relative throughout, so a folder with spaces in its name works.

# The first that is new enough and can make an environment; `make PYTHON=/path/to/python3.12 test` overrides it.
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
endif
PIP_FLAGS = -m pip --disable-pip-version-check --quiet
PIP = .venv/bin/python $(PIP_FLAGS)
STAMP = .venv/installed

.PHONY: demo test pythons soak live lint bench lock clean FORCE

demo: $(STAMP)
	@.venv/bin/pullcord run @published
	@echo
	@echo "Next:"
	@echo "  .venv/bin/pullcord run scenarios/examples/first.toml --set relay.poll=5s"
	@echo "      changes a number, and the expectation fails"
	@echo "  .venv/bin/pullcord run scenarios/examples/eager_relay.toml"
	@echo "      puts another relay in the place of ours, and compares"
	@echo "  .venv/bin/pullcord new my-first.toml"
	@echo "      writes a scenario of your own"

test: lint
	@.venv/bin/python -m pytest
	@$(MAKE) --no-print-directory pythons

# Results must not depend on the Python, and the wheel must work on each: those that are here, but for the one of .venv.
pythons: $(STAMP)
	@mine="$$(.venv/bin/python -c 'import sys; print(sys.version_info[1])')"; \
	for minor in 11 12 13 14; do \
		test $$minor = $$mine && continue; \
		for python in python3.$$minor "$$HOME"/.pyenv/versions/3.$$minor.*/bin/python3.$$minor; do \
			"$$python" -c 'import venv, ensurepip' 2>/dev/null || continue; \
			there=.venv/python3.$$minor; \
			echo "Python 3.$$minor: determinism and the wheel"; \
			if [ ! -e $$there/installed ] || [ requirements.lock -nt $$there/installed ]; then \
				rm -rf $$there && "$$python" -m venv $$there \
				&& $$there/bin/python $(PIP_FLAGS) install --require-hashes -r requirements.lock \
				&& $$there/bin/python $(PIP_FLAGS) install --no-deps --no-build-isolation -e . \
				&& touch $$there/installed || exit 1; \
			fi; \
			$$there/bin/python -m pytest -q tests/scenarios/test_determinism.py \
				tests/scenarios/test_graph_determinism.py tests/test_wheel.py || exit 1; \
			break; \
		done; \
	done

lint: $(STAMP)
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-cache > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

# Half an hour on two cores: each published expectation at a hundred seeds, a hundred thousand random fault plans, two
# hundred replications with kills over sockets, a kill before and after every write of a story on real stores, and what
# else is marked so.
soak: $(STAMP)
	@.venv/bin/python -m pytest -m soak

# Needs the network once: llama.cpp as a server, in an environment of its own, with a model of random weights.
LIVE = .venv/live
live: $(STAMP)
	@test -e $(LIVE)/installed || { echo "Installing llama.cpp into $(LIVE)" \
		&& rm -rf $(LIVE) && .venv/bin/python -m venv $(LIVE) \
		&& $(LIVE)/bin/python $(PIP_FLAGS) install --only-binary :all: xllamacpp==2026.10.11549 gguf==0.19.0 \
		&& touch $(LIVE)/installed; }
	@MODEL_SERVER_PYTHON=$(LIVE)/bin/python .venv/bin/python -m pytest -m live

# A thousand desktops against one server for five minutes: make bench LOAD_S=300
LOAD_S = 20
bench: $(STAMP)
	@for each in run wire herd proxy store logs step graphs; do .venv/bin/python -m bench.$$each && echo || exit; done
	@.venv/bin/python -m bench.load --duration $(LOAD_S)
	@echo
	@.venv/bin/python -m bench.load --submit --duration 5 --store sqlite --store postgresql

# Needs the network. Universal: one file for every Python from 3.11 on, Linux and macOS.
lock: $(STAMP)
	@$(PIP) install --target .venv/lock-tools --upgrade uv
	@.venv/lock-tools/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
		--all-extras --group dev --generate-hashes --upgrade \
		--no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --output-file requirements.lock

clean:
	@rm -rf .venv dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Again when the lock, the project file or the build hook changes. An environment that belongs to another Python or to
# another folder is thrown away first, since its scripts and its editable install name both.
$(STAMP): .venv/made-for requirements.lock pyproject.toml hatch_build.py
	@echo "Installing into .venv: the first time takes a minute"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/made-for: FORCE
	@test -n "$(PYTHON)" || { echo "pullcord needs Python 3.11 or later with its venv module: install it" \
		"(Debian: apt install python3 python3-venv; macOS: brew install python)" \
		"or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@made_for="$$("$(PYTHON)" -c 'import os, sys; print(sys.version, os.getcwd())')" || exit 1; \
	if [ "$$made_for" != "$$(cat $@ 2>/dev/null)" ]; then \
		rm -rf .venv && "$(PYTHON)" -m venv .venv && printf '%s\n' "$$made_for" > $@; \
	fi
