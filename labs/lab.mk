# What every lab's Makefile is: `make check` grades the files here, `make check ANSWER=solution` those of another folder.

LAB := $(notdir $(CURDIR))
ROOT := $(abspath $(CURDIR)/../..)
PYTHON := $(ROOT)/.venv/bin/python

.PHONY: check
check: $(PYTHON)
	@cd $(ROOT) && $(PYTHON) -m labs.grading $(LAB) $(if $(ANSWER),--answer $(abspath $(ANSWER))) --json $(CURDIR)/points.json

$(PYTHON):
	$(MAKE) -C $(ROOT) build
