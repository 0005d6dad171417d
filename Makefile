# `make demo` and `make test` do everything on a machine that has Python 3.11 or newer, pip and make.
#
#   PYTHON=python3   the interpreter to build the environment from
#   VENV=.venv       the folder of the environment; one that this file did not make is never touched
#   ARGS=            passed on: key=value for `make demo`, pytest's arguments for the tests

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
export PYTHON VENV

RUN_FILE := problems/runs/sparse-logistic.yaml
PLUGINS := $(sort $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml)))
DEMO_MEMBERS := platform problems plugins/splitting plugins/zeroth
DEV_MEMBERS := platform[dev] problems $(PLUGINS)
MANIFESTS := constraints.txt platform/pyproject.toml problems/pyproject.toml $(PLUGINS:%=%/pyproject.toml)
# Several test processes on few cores: one thread each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow lint clean demo-environment dev-environment

help:
	@echo "make demo        solve sparse logistic regression on real data (installs what it needs into $(VENV))"
	@echo "make test        run the tests, without the slow ones"
	@echo "make test-slow   run the slow tests"
	@echo "make lint        ruff and mypy"
	@echo "make clean       remove the environment, caches and builds"
	@echo
	@echo "PYTHON=$(PYTHON)  VENV=$(VENV)  ARGS=$(ARGS)"

demo: demo-environment
	@"$$VENV/bin/infimum" run $(RUN_FILE) $(ARGS)

test: dev-environment
	@$(ONE_THREAD) "$$VENV/bin/python" -m pytest -n 2 -m "not slow" $(ARGS)

test-slow: dev-environment
	@$(ONE_THREAD) "$$VENV/bin/python" -m pytest -m slow $(ARGS) || \
		{ code=$$?; [ $$code -eq 5 ] && echo "make: no test is marked slow" || exit $$code; }

lint: dev-environment
	@"$$VENV/bin/ruff" check .
	@"$$VENV/bin/ruff" format --check .
	@"$$VENV/bin/mypy"

clean:
	@if [ -e "$$VENV/.infimum" ]; then rm -rf "$$VENV"; fi
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@rm -rf build dist platform/dist problems/dist plugins/*/dist
	@find platform problems plugins tests -name __pycache__ -type d -prune -exec rm -rf {} +

demo-environment:
	@LEVEL=demo MEMBERS="$(DEMO_MEMBERS)" sh -c "$$environment"

dev-environment:
	@LEVEL=dev MEMBERS="$(DEV_MEMBERS)" sh -c "$$environment"

# The stamp names the interpreter and this folder, then what is installed; it is written when everything else is done.
# One with another interpreter or folder, or none (the first time, or an interrupted install), means a new environment.
define environment
set -eu
fail() { for line do printf 'make: %s\n' "$$line" >&2; done; exit 1; }

command -v "$$PYTHON" >/dev/null 2>&1 || fail "there is no '$$PYTHON' here." \
    "Name a Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."
version=$$("$$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') || fail "'$$PYTHON' does not start."
"$$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail \
    "'$$PYTHON' is Python $$version; infimum needs 3.11 or newer." \
    "Name another one: make PYTHON=/path/to/python3.11 ..."
"$$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1 || fail \
    "'$$PYTHON' (Python $$version) lacks the modules venv and ensurepip, which make an environment." \
    "On Debian and Ubuntu: apt install python3-venv. Elsewhere: a complete Python, make PYTHON=..."

set -f
facts=$$("$$PYTHON" -c '
import hashlib, os, sys
base = getattr(sys, "_base_executable", None) or sys.executable
text = "\n".join([os.path.realpath(base), sys.version, os.getcwd()])
identity = hashlib.sha256(text.encode()).hexdigest()[:16]
files = hashlib.sha256()
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        files.update(path.encode() + b"\0" + file.read() + b"\0")
print(identity, files.hexdigest()[:16], base)' $(MANIFESTS))
identity=$${facts%% *}; facts=$${facts#* }
stamp="$$identity $${facts%% *}"
base=$${facts#* }
python=$$VENV/bin/python

stamp_of() { cat "$$VENV/.infimum/$$1" 2>/dev/null || true; }
for level in $$LEVEL dev; do
    if [ "$$(stamp_of $$level)" = "$$stamp" ] && [ -x "$$python" ]; then exit 0; fi
done

if [ -e "$$VENV" ] && [ ! -d "$$VENV/.infimum" ] && [ -n "$$(ls -A "$$VENV")" ]; then
    fail "'$$VENV' exists and was not made by this Makefile; it is left alone." \
        "Remove it, or name another folder: make VENV=.venv-infimum ..."
fi
same=no
for level in demo dev; do
    case "$$(stamp_of $$level)" in "$$identity "*) same=yes ;; esac
done
if [ $$same = no ] || [ ! -x "$$python" ]; then
    rm -rf "$$VENV"
    mkdir -p "$$VENV/.infimum"
    "$$base" -m venv "$$VENV" || fail "'$$base -m venv $$VENV' failed."
fi

before=$$(stamp_of demo); before_dev=$$(stamp_of dev)
rm -f "$$VENV/.infimum/demo" "$$VENV/.infimum/dev"
log=$$VENV/.infimum/pip.log
: > "$$log"
pip() {
    "$$python" -m pip --disable-pip-version-check --quiet --log "$$log" install --constraint constraints.txt "$$@" && return
    if grep -q -e 'connection broken by' -e 'Max retries exceeded' -e NewConnectionError "$$log"; then
        # Nothing was installed: what stood there before still stands.
        [ -z "$$before" ] || printf '%s\n' "$$before" > "$$VENV/.infimum/demo"
        [ -z "$$before_dev" ] || printf '%s\n' "$$before_dev" > "$$VENV/.infimum/dev"
        fail "pip reached no package index. This step needs the network once;" \
            "behind a proxy or a mirror set HTTPS_PROXY or PIP_INDEX_URL, then run the same command again."
    fi
    fail "pip could not install what is needed; its words are above and in $$log." "Then run the same command again."
}
echo "make: installing into $$VENV with Python $$version (once; later runs skip this)"
if [ $$LEVEL = dev ]; then echo "make: the test tools include torch and CVXPY, some hundred MB"; fi
pip hatchling editables
set --
for member in $$MEMBERS; do set -- "$$@" --editable "./$$member"; done
pip --no-build-isolation "$$@"
printf '%s\n' "$$stamp" > "$$VENV/.infimum/$$LEVEL"
endef
export environment
