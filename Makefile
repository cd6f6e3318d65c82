# make          set up, build, and run the experiment als-3 in Mininet (as root)
# make test     all tests
# make bench    forwarding rate of one switch; virtual time beside ns-2, and its cost over flows and switches
# make differential   a million generated packets for each of 15 programs through our switch and BMv2 (PACKETS=N for fewer)
# make paper    every figure and table of the papers in virtual time, one page; QUICK=1 for a short pass;
#               MININET=1 also runs some of them for real (root, about a quarter of an hour)
# make conformance P4C=DIR  our P4 compiler and switch against a checkout of p4c; ARGS="--only stf" for a part
# make shell    a Mininet prompt on the experiment's network
# make stop     end runs that are under way and remove what dead ones left behind
# make clean    stop, and remove what was built (results stay)
#
# EXPERIMENT=als-3b picks another experiment; ARGS="--duration 20" is passed to fairlane.

SHELL := /bin/bash
EXPERIMENT ?= als-3
ARGS ?=
P4C ?=

.PHONY: run setup build test bench differential conformance paper shell stop clean

run: build
	@scripts/run $(EXPERIMENT) $(ARGS)

setup:
	@scripts/debian-packages run
	@scripts/venv .venv requirements.lock
	@scripts/link-mininet

build: setup
	@scripts/build

test: build
	@scripts/debian-packages test
	@scripts/venv .venv-shell requirements-shell.lock
	scripts/test

bench: build
	.venv/bin/python bench/forward.py $(ARGS)
	.venv/bin/python bench/virtual.py --compare
	.venv/bin/python bench/virtual.py --growth

conformance: build
	@[ -n "$(P4C)" ] || { echo "Say where a checkout of p4c is: make conformance P4C=DIR" >&2; exit 2; }
	nice .venv/bin/python -m tools.conformance --p4c $(P4C) $(ARGS)

differential: build
	.venv/bin/python -m tools.differential $(if $(PACKETS),--packets $(PACKETS)) $(ARGS)

paper: build
	.venv/bin/fairlane paper $(if $(QUICK),--quick) $(if $(MININET),--mininet) $(ARGS)

shell: build
	.venv/bin/fairlane shell $(EXPERIMENT) $(ARGS)

stop:
	@if [ -x .venv/bin/fairlane ]; then .venv/bin/fairlane clean --stop; fi

clean: stop
	rm -rf switch/target build logs pcaps .venv .venv-shell .pytest_cache .hypothesis *.egg-info
