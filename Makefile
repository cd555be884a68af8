# One door to everything; each line calls a script.

.DEFAULT_GOAL := help
.PHONY: help setup run check test test-torch driver driver-package test-driver bench doc clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what the other targets need, into the cache folder; skips what is there
	@scripts/setup

run: ## train a small network with two processes on stepccl, then on gloo, and compare
	@scripts/run

check: ## format, lints and unit tests: before each commit
	@scripts/check

test: ## everything CI runs
	@scripts/test

test-torch: ## torch's own distributed tests on stepccl; part of make test
	@scripts/test-torch

driver: ## build the kernel module, for Debian's kernel or KDIR=
	@scripts/driver $(KDIR)

driver-package: ## build the Debian package of the kernel module, with its source for dkms
	@scripts/driver-package

test-driver: ## the kernel module's tests, in an emulated guest
	@scripts/test-driver

bench: ## measure us, Open MPI, MPICH and gloo in one run (QUICK=1: some 3 minutes)
	@scripts/bench

doc: ## build the API documentation
	@scripts/doc

clean: ## remove what was built; the cache folder stays
	@scripts/clean
