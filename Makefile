# Everything made here lives under .anabranch/; `make clean` removes it.
SHELL := /bin/bash
PYTHON ?= python3
STATE := .anabranch
TOOLS := $(STATE)/tools
RUN := $(STATE)/venv
DEV := $(STATE)/dev
SERVERS := $(STATE)/servers
CODE = $(wildcard streams agents tests bench infra)

export UV_CACHE_DIR := $(CURDIR)/$(STATE)/cache/uv
export PIP_CACHE_DIR := $(CURDIR)/$(STATE)/cache/pip
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(STATE)/cache/python
export HYPOTHESIS_STORAGE_DIRECTORY := $(CURDIR)/$(STATE)/hypothesis
export MPLCONFIGDIR := $(CURDIR)/$(STATE)/cache/matplotlib
# The network's own certificates, where they are named for pip or Python only.
export SSL_CERT_FILE ?= $(PIP_CERT)
export REQUESTS_CA_BUNDLE ?= $(or $(CURL_CA_BUNDLE),$(SSL_CERT_FILE))
ifeq ($(SSL_CERT_FILE),)
unexport SSL_CERT_FILE
endif
ifeq ($(REQUESTS_CA_BUNDLE),)
unexport REQUESTS_CA_BUNDLE
endif

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench servers audit lock clean
.DELETE_ON_ERROR:

help: ## Say what can be made
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(RUN)/ready ## Answer real goals on a real Kafka, and stop everything again (ARGS='--help' says more)
	@$(RUN)/bin/anabranch demo $(ARGS)

test: $(DEV)/ready $(SERVERS)/ready ## Run all tests, those on a real Kafka among them (ARGS='-k broker' for some)
	@$(DEV)/bin/python infra/install_kafka.py $(STATE)
	$(DEV)/bin/python -m pytest -n 2 --dist loadgroup $(ARGS)

lint: $(DEV)/ready ## Check style, types and the direction of imports
	$(DEV)/bin/ruff check $(CODE)
	$(DEV)/bin/ruff format --check $(CODE)
	$(DEV)/bin/mypy $(CODE)
	$(DEV)/bin/lint-imports --no-logo --cache-dir $(STATE)/import-linter

bench: $(DEV)/ready ## Measure, side by side with the plain way (docs/benchmarks.md)
	@$(DEV)/bin/python -m bench $(ARGS)

servers: $(SERVERS)/ready ## Install the public tool servers of infra/anabranch.example.toml (docs/tools.md)

audit: $(DEV)/ready ## Look up the locked packages in an advisory service, where one can be reached
	@$(DEV)/bin/python infra/audit.py requirements-dev.txt requirements-tools.txt infra/servers/requirements.txt

lock: $(DEV)/ready ## Choose the newest allowed versions of everything, and pin them by their hashes
	infra/lock $(TOOLS)/bin/uv $(DEV)/bin/python

clean: ## Remove the environments, Kafka, its data and all caches
	rm -rf $(STATE)

$(TOOLS)/ready: requirements-tools.txt
	rm -rf $(TOOLS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	touch $@

$(RUN)/ready: requirements.txt pyproject.toml infra/environment $(TOOLS)/ready
	infra/environment $(TOOLS) $(RUN) $<

$(DEV)/ready: requirements-dev.txt pyproject.toml infra/environment $(TOOLS)/ready
	infra/environment $(TOOLS) $(DEV) $<

$(SERVERS)/ready: infra/servers/requirements.txt infra/environment $(TOOLS)/ready
	infra/environment $(TOOLS) $(SERVERS) $< alone
