# Satchel: everything that a developer does here.
#
#   make run                       watch the bundled skills and plugins until Ctrl-C
#   make run ARGS="prompt"         any other command; the bundled folders are named for it
#   make test                      the tests;   make test ARGS="-k skills"   some of them
#   make test-all                  also the slow ones, and many more generated examples
#   make check                     format, lint, types, layers and the other rules
#   make snapshots                 write the snapshots of all messages again, to be reviewed
#   make adapters                  the checks of the adapters, in an environment for each framework
#   make remote                    a demo and the tests of calls on other machines; install redis-server for all of them
#   make screenshots               the pictures of the dev page; needs Chromium
#   make docs                      the documentation site, in site/;   make docs-serve   while you write
#   make oldest                    the tests with the oldest dependencies that are allowed; needs uv
#   make package                   the wheel and the source distribution, checked
#   make oldest-sdk                the tests of MCP with the oldest SDK that the extra allows
#   make peers                     the clients and servers of others, which need a package index and npm
#   make torture                   hours of hostile input, faults and reloads; SATCHEL_TORTURE=0.01 does a part
#   make conformance               the official suite, Inspector and server of MCP, which need npx
#
# Needed: make, python3 (3.11 or newer) and a package index. uv is used when it is there.
# PYTHON=python3.13 chooses another Python, UV= does without uv.

PYTHON ?= python3
UV ?= uv
VENV := .venv
# Windows, with a POSIX shell such as that of Git.
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)

# A chosen Python has its own stamps, so another choice builds again.
ifneq ($(origin PYTHON),file)
chosen := -$(notdir $(PYTHON))
endif
INSTALLED := $(VENV)/.installed$(chosen)
DEVELOPING := $(VENV)/.developing$(chosen)

.PHONY: help run test test-all check screenshots docs docs-serve package remote oldest oldest-sdk peers torture snapshots adapters conformance format clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^# *make /s/^# *//p' Makefile

# The folders go to every command that says in its help that it takes them.
run: $(INSTALLED)
	@set -- $(or $(ARGS),watch); command=$$1; \
	case "$$command" in \
	-*) exec $(BIN)/satchel "$$@" ;; \
	esac; \
	help=$$($(BIN)/satchel "$$command" --help 2>/dev/null) || help=; \
	shift; \
	case "$$command $$help" in \
	new\ *|validate\ *) ;; \
	config\ *) case "$${1:--}" in -*) ;; \
		*) sub=$$1; shift; set -- "$$sub" --skills skills --plugins plugins "$$@" ;; \
		esac ;; \
	*--skills*--plugins*|*--plugins*--skills*) set -- --skills skills --plugins plugins "$$@" ;; \
	esac; \
	exec $(BIN)/satchel "$$command" "$$@"

# Side by side; a file stays together as long as no process is idle, as its tests may share slow setup.
PYTEST = $(BIN)/python -m pytest --numprocesses=3 --dist=worksteal

test: $(DEVELOPING)
	$(PYTEST) -m "not slow" $(ARGS)

# How many examples are generated for a test: quick 10, medium 50, long 200.
PROFILE = long

test-all: $(DEVELOPING)
	$(PYTEST) --hypothesis-profile=$(PROFILE) $(ARGS)

check: $(DEVELOPING)
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest --quiet tests/rules
	$(BIN)/zizmor --offline --quiet .github action.yml
	@$(MAKE) --no-print-directory docs package

docs: $(DEVELOPING)
	$(BIN)/python tools/build_docs.py

screenshots: $(DEVELOPING)
	$(BIN)/python tools/take_screenshots.py $(ARGS)

docs-serve: $(DEVELOPING)
	$(BIN)/zensical serve

package: $(DEVELOPING)
	rm -rf dist && $(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

remote: $(DEVELOPING)
	@if command -v redis-server >/dev/null; then $(BIN)/python tests/remote/demo.py; \
	else echo "Without redis-server (a package of your system), only the tests in memory run." >&2; fi
	$(BIN)/python -m pytest tests/remote $(ARGS)

# Without the snapshots of schemas, which pydantic writes a little differently in each version.
oldest:
	"$(UV)" venv --quiet --clear --seed --python "$(PYTHON)" $(VENV)-oldest
	"$(UV)" pip install --quiet --python $(VENV)-oldest/$(SCRIPTS)/python --resolution lowest-direct \
		--editable '.[mcp,otel]' --group dev
	$(VENV)-oldest/$(SCRIPTS)/python -m pytest --numprocesses=3 -m "not slow" --ignore=tests/rules \
		-k "not sixty_signatures and not gives_its_schema" $(ARGS)

snapshots: $(DEVELOPING)
	SATCHEL_SNAPSHOTS=write $(BIN)/python -m pytest --quiet $(or $(ARGS),tests/messages)

adapters: $(DEVELOPING)
	$(BIN)/python tests/adapters/run.py $(or $(ARGS),--turns 1000 --write docs/reference/adapters.md)

# The newest one is in .venv.
OLDEST_SDK = $(shell sed -n 's/^mcp = \["mcp>=\([0-9.]*\),.*/\1/p' pyproject.toml)
oldest-sdk: $(DEVELOPING)
	"$(PYTHON)" -m venv build/oldest-sdk
	build/oldest-sdk/$(SCRIPTS)/python -m pip install --quiet --upgrade "pip>=25.1"
	build/oldest-sdk/$(SCRIPTS)/python -m pip install --quiet --editable . --group dev "mcp==$(OLDEST_SDK)" "mcp-types==$(OLDEST_SDK)"
	build/oldest-sdk/$(SCRIPTS)/python -m pytest --numprocesses=3 -m "not slow" tests/mcp tests/mcp_servers tests/workers $(ARGS)

peers: $(DEVELOPING)
	$(BIN)/python tests/peers/run.py $(ARGS)

torture: $(DEVELOPING)
	$(BIN)/python tests/torture/run.py $(ARGS)

conformance: $(DEVELOPING)
	$(BIN)/python tests/conformance/run.py docs/reference/mcp-conformance.md

format: $(DEVELOPING)
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage build dist site .cache

# By a name, because a comma separates the arguments of a call.
EXTRAS := '.[mcp,web]'

# The stamps are written last, so an interrupted installation is done again; the mark that it
# leaves behind has it done from the start, because half a pip is worse than none.
$(INSTALLED): pyproject.toml
	@$(call install,--editable $(EXTRAS))
	@rm -f $(VENV)/.unfinished && touch $@

$(DEVELOPING): pyproject.toml
	@$(call install,--editable . --group dev)
	@rm -f $(VENV)/.unfinished && touch $(INSTALLED) $@

# Modules are compiled when they are imported; most never are.
PIP = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
RECENT = import sys; sys.exit(sys.version_info < (3, 11))
# True for an environment that works and is made of the Python that is asked for.
USABLE = import sys; sys.exit(sys.version_info < (3, 11) or sys.base_prefix != sys.argv[1])

# $(call install,what): bring .venv up to date, with uv or else with venv and pip.
define install
	command -v "$(PYTHON)" >/dev/null || \
		{ echo "There is no $(PYTHON). Install Python 3.11 or newer, or say make PYTHON=python3.13." >&2; exit 1; }; \
	"$(PYTHON)" -c '$(RECENT)' || \
		{ echo "Satchel needs Python 3.11 or newer, and $(PYTHON) is `"$(PYTHON)" --version 2>&1`. Say make PYTHON=python3.13, or whatever newer one you have." >&2; exit 1; }; \
	rm -f $(VENV)/.installed* $(VENV)/.developing*; \
	base=`"$(PYTHON)" -c 'import sys; print(sys.base_prefix)'`; \
	usable() { [ ! -e $(VENV)/.unfinished ] && $(BIN)/python -c '$(USABLE)' "$$base" 2>/dev/null; }; \
	begin() { rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.unfinished; }; \
	if [ -n "$(UV)" ] && command -v "$(UV)" >/dev/null; then \
		{ usable || { begin && "$(UV)" venv --quiet --seed --allow-existing --python "$(PYTHON)" $(VENV); }; } && \
		touch $(VENV)/.unfinished && \
		"$(UV)" pip install --quiet --python $(BIN)/python $(1) && exit 0; \
		echo "uv did not manage; trying venv and pip." >&2; \
	fi; \
	if ! usable || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		echo "Making $(VENV) with $(PYTHON)." >&2; \
		begin && "$(PYTHON)" -m venv $(VENV) || \
			{ echo "$(PYTHON) cannot make virtual environments here. On Debian and Ubuntu: apt install python3-venv. Or install uv." >&2; \
			rm -rf $(VENV); exit 1; }; \
	fi; \
	echo "Installing; the first time takes a minute." >&2; \
	touch $(VENV)/.unfinished; \
	case "$(1)" in \
	*--group*) $(PIP) --upgrade "pip>=25.1" || exit 1 ;; \
	esac; \
	$(PIP) $(1)
endef
