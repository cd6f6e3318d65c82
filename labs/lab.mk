# What every lab's Makefile is: `make check` grades the files here, `make check ANSWER=FOLDER` those of another folder.

LAB := $(notdir $(CURDIR))
ROOT := $(abspath $(CURDIR)/../..)
# In a checkout its environment, which is built when it is not there; elsewhere the one where Fairlane is installed.
BUILT := $(if $(wildcard $(ROOT)/scripts/build),$(ROOT)/.venv/bin/python)
PYTHON := $(or $(BUILT),python3)

.PHONY: check
check: $(BUILT)
	@cd $(ROOT) && $(PYTHON) -m fairlane.labs.grading $(LAB) --answer $(abspath $(or $(ANSWER),.)) --json $(CURDIR)/points.json

$(BUILT):
	$(MAKE) -C $(ROOT) build
