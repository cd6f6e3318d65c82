# make          set up, build, and run the experiment als-3 in Mininet (as root); LIVE=1: in virtual time, on a page that steers it
# make test     all tests but the long ones; TIMES=FILE (of a full path) gets the processor time of each
# make test-long  those: runs of 10 s and more, above all the same run on Mininet and in virtual time (about ten minutes)
# make lint     formatters, linters, types and licences; ARGS=--fix formats, and repairs what the tools can
# make bench    speed: forwarding, als.p4 without I/O, tables, control plane, virtual time (a quarter of an hour; QUICK=1 three minutes)
# make soak     two hours of a switch and of virtual time: memory and descriptors in one picture (root; HOURS=0.5 for fewer)
# make chaos    faults in a seeded order, and how each run ended (root; SEED=2, FAULTS=100; tools/chaos/README.md)
# make web      Fairlane as a page: build/web, for any web server; SERVE=1 shows it on loopback (web/README.md)
# make web-fuzz  the fuzzers' corpora, and CHANGES=12 changed copies of each input, through the page's WebAssembly
# make differential   a million generated packets for each of 15 programs through our switch and BMv2 (PACKETS=N for fewer)
# make oracle-programs  5,000 random programs against an interpreter of the specification (PROGRAMS=N SEED=N; tools/oracle_programs/README.md)
# make fuzz     fuzz every target for 3 minutes; TARGET=compile MINUTES=30 for one, longer (switch/bin/fuzz/README.md)
# make properties  the property tests with newly drawn examples, ROUNDS=1 times; `make test` draws the same ones each time
# make paper    every figure and table of the papers in virtual time, one page; QUICK=1 for a short pass;
#               MININET=1 also runs some of them for real (root, about a quarter of an hour)
# make paper-results  the docs' page of results, docs/paper-results.md, from the output of 'make paper'
# make conformance P4C=DIR  our P4 compiler and switch against a checkout of p4c; ARGS="--only stf" for a part
# make citations  each citation of an RFC or a paper cites what exists; ARGS="check FILE" for some files (tools/citations/README.md)
# make docs     the site of the documentation, in build/site; SERVE=1 shows it at http://127.0.0.1:8000
# make docs-commands  run every command in the documentation (as root: also those for Mininet)
# make suites-tables   measure the tables of docs/suites.md and write them there
# make notebooks  the labs as Jupyter notebooks, labs/NN/lab.ipynb; OPEN=1 opens them in JupyterLab
# make shell    a Mininet prompt on the experiment's network
# make wheel    dist/fairlane-*.whl, one file to install anywhere, and a trial of it (MACHINE=aarch64: for ARM, tried on ARM alone)
# make release  what a release publishes, built and tried in dist/; it publishes nothing (docs/releasing.md)
# make stop     end running experiments and remove the leftovers of dead ones
# make clean    stop, and remove build products (results stay)
#
# EXPERIMENT=als-3b picks another experiment; ARGS="--duration 20" is passed to fairlane.

SHELL := /bin/bash
EXPERIMENT ?= als-3
ARGS ?=
comma := ,
P4C ?=
TIMES ?=
NODE := web/node_modules/.package-lock.json

.PHONY: web web-fuzz run setup build packages environment crates programs test test-long test-parts lint bench soak chaos fuzz differential oracle-programs properties conformance paper paper-results citations docs docs-commands suites-tables notebooks wheel sdist page sbom release release-check shell stop clean

run: build
	@$(if $(LIVE),.venv/bin/fairlane run $(EXPERIMENT) --live,scripts/run $(EXPERIMENT)) $(ARGS)

setup:
	@scripts/debian-packages build
	@$(MAKE) --no-print-directory --jobs=3 packages environment
	@scripts/link-mininet

# What does not need the other goes at the same time.
build:
	@scripts/debian-packages build
	@$(MAKE) --no-print-directory --jobs=3 packages programs
	@scripts/link-mininet
	@.venv/bin/python -m fairlane.labs.skeletons

packages:
	@scripts/debian-packages run

environment:
	@scripts/environment run

crates:
	@scripts/cargo tree --quiet --manifest-path switch/Cargo.toml --locked --edges normal,build >/dev/null # downloads what this machine needs

programs: environment crates # P4Runtime's .proto files are in the environment
	@.venv/bin/python scripts/build

test: test-parts
	TIMES=$(TIMES) scripts/test

test-long: test-parts
	TIMES=$(TIMES) scripts/test --long

test-parts: build
	@scripts/debian-packages test film
	@scripts/environment test docs notebooks release
	@scripts/environment --shell

# npm writes this file when all packages are there.
$(NODE): web/package-lock.json
	@scripts/debian-packages npm
	cd web && npm ci --silent --no-audit --no-fund

lint: setup $(NODE)
	@scripts/debian-packages lint
	@scripts/environment test lint
	scripts/lint $(ARGS)

bench: build
	.venv/bin/python bench/run.py $(if $(QUICK),--quick) $(ARGS)
	.venv/bin/python bench/counter.py $(if $(QUICK),--sizes 10$(comma)1000$(comma)100000 --intervals 5)

soak: build
	nice .venv/bin/python bench/soak.py --hours $(or $(HOURS),2) $(ARGS)

chaos: build
	.venv/bin/python -m tools.chaos $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) $(ARGS)

conformance: build
	@[ -n "$(P4C)" ] || { echo "Give the folder of a p4c checkout: make conformance P4C=DIR" >&2; exit 2; }
	nice .venv/bin/python -m tools.conformance --p4c $(P4C) $(ARGS)

differential: build
	.venv/bin/python -m tools.differential $(if $(PACKETS),--packets $(PACKETS)) $(ARGS)

oracle-programs: build
	nice .venv/bin/python -m tools.oracle_programs $(if $(PROGRAMS),--programs $(PROGRAMS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

properties: build
	@scripts/environment test docs notebooks
	for round in $$(seq $(or $(ROUNDS),1)); do .venv/bin/python -m pytest -q -n 2 -m hypothesis --hypothesis-profile=new $(ARGS) || exit; done

fuzz: setup
	scripts/fuzz $(or $(TARGET),all) $(or $(MINUTES),3)

paper: build
	.venv/bin/fairlane paper $(if $(QUICK),--quick) $(if $(MININET),--mininet) $(ARGS)

paper-results:
	.venv/bin/python -m tools.site.results $(ARGS)

citations: setup
	@.venv/bin/python -m tools.citations $(ARGS)

docs:
	@scripts/environment docs
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --config-file tools/site/mkdocs.yml
	$(if $(SERVE),.venv/bin/python -m http.server --directory build/site --bind 127.0.0.1 8000)

docs-commands: build
	@scripts/environment docs
	nice .venv/bin/python -m tools.documented $(ARGS)

suites-tables: build
	nice .venv/bin/python -m tools.suites $(ARGS)

notebooks: build
	@scripts/environment notebooks
	@.venv/bin/python -m tools.notebooks
	$(if $(OPEN),.venv/bin/jupyter lab labs)

wheel: setup
	@scripts/environment wheel
	scripts/wheel $(or $(MACHINE),x86_64)
	$(if $(filter $(or $(MACHINE),x86_64),$(shell uname -m)),scripts/try-wheel)

sdist: setup
	scripts/sdist
	scripts/try-wheel dist/fairlane-*.tar.gz

page: web
	@scripts/environment release
	.venv/bin/python -m tools.release page

sbom: setup
	@scripts/debian-packages npm web
	@scripts/environment release
	.venv/bin/python -m tools.release sbom

release-check: setup
	@scripts/environment release
	.venv/bin/python -m tools.release check

release:
	python3 -m tools.release agree
	rm -rf dist
	$(MAKE) wheel
	$(MAKE) wheel MACHINE=aarch64
	$(MAKE) sdist page sbom
	$(MAKE) release-check

web: build $(NODE)
	@scripts/debian-packages web
	native=$$(scripts/web) && .venv/bin/python -m tools.web --native "$$native"
	$(if $(SERVE),.venv/bin/python -m http.server --directory build/web --bind 127.0.0.1 8001)

web-fuzz: build $(NODE)
	@scripts/debian-packages web
	native=$$(scripts/web --features fuzz) && .venv/bin/python -m tools.web.fuzz --native "$$native" --changes $(or $(CHANGES),12)

shell: build
	.venv/bin/fairlane shell $(EXPERIMENT) $(ARGS)

stop:
	@if [ -x .venv/bin/fairlane ]; then .venv/bin/fairlane clean --stop; fi

clean: stop
	rm -rf switch/target fairlane/native.abi3.so web/node_modules build logs pcaps .venv .venv-* dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
