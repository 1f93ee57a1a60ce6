# The front door. Meson does the work; every target installs what it needs (Debian packages, with sudo when not root).
.PHONY: all build page demo test test-distros test-frameworks test-wheel test-deb test-container sanitize coverage soak gpu bench lint fuzz site pictures install wheel dist deb clean

BUILD := build
PYTHON := /usr/bin/python3
PREFIX := /usr/local
FUZZ_SECONDS := 60
# Some wait for a disk or a clock.
UNIT_TESTS := meson test --print-errorlogs --num-processes $(shell expr 2 '*' `nproc`) -C

all: build

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@scripts/need build
	meson setup $(BUILD) --prefix=$(PREFIX)

# With the page of report -o, which is left out where node and npm are missing.
page: $(BUILD)/build.ninja
	@scripts/need web
	@meson configure $(BUILD) -Dpage=enabled
	@ninja -C $(BUILD)

# Without the page and the tests, which it does not show.
demo:
	@scripts/need build demo
	@test -e $(BUILD)-demo/build.ninja || meson setup $(BUILD)-demo -Dpage=disabled -Dtests=disabled
	@ninja -C $(BUILD)-demo shmguard libshmguard-preload.so
	@demo/run $(BUILD)-demo/shmguard

# Unit tests, the corpora of the fuzz targets, the real program with real PyTorch, and the Python package.
test:
	@scripts/need build test
	@scripts/prometheus || echo "without a real Prometheus, which some tests need" >&2
	@scripts/slurm || echo "without a real Slurm, which some tests need" >&2
	@test -e $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD)
	$(UNIT_TESTS) $(BUILD)
	scripts/e2e $(BUILD) "not long"
	SHMGUARD=$(abspath $(BUILD))/shmguard $(PYTHON) -m pytest tests/python --numprocesses `nproc`

# The two targets above on fresh systems, Debian 12 and 13, as committed. Needs root; takes an hour.
test-distros:
	@scripts/test-distros

# Real frameworks under the guard in a /dev/shm of 64 MB, compared with plain runs that have room. Fetches the frameworks; needs root.
test-frameworks: build
	@scripts/need test
	@scripts/frameworks
	SHMGUARD=$(abspath $(BUILD))/shmguard $(PYTHON) -m pytest tests/frameworks

# What wheel and dist build, installed and used on fresh systems and with every Python of pyenv. Needs root; takes half an hour.
test-wheel:
	@scripts/test-wheel

# The Debian packages, checked by lintian, installed, used and removed on fresh Debian 12 and 13. Needs root; takes 20 minutes.
test-deb:
	@scripts/test-deb

# What dist builds, in containers with few rights. Needs root and podman; takes 10 minutes.
test-container:
	@scripts/test-container

# The same tests but for the slowest, with AddressSanitizer and UndefinedBehaviorSanitizer in the program and in the unit tests,
# and the guard's tables under ThreadSanitizer.
sanitize:
	@scripts/need build test
	@test -e $(BUILD)-sanitize/build.ninja || \
	    meson setup $(BUILD)-sanitize -Dtests=enabled -Db_sanitize=address,undefined -Doptimization=1
	@ninja -C $(BUILD)-sanitize
	$(UNIT_TESTS) $(BUILD)-sanitize
	scripts/test-threads
	scripts/e2e $(BUILD)-sanitize "not slow and not long"

# Which lines of src/ the tests run, folder by folder. Processes that are killed, or end by _exit, do not tell. Nor do those of other users, who may
# not write the counts: tests of what such users see fail here.
coverage:
	@scripts/need build test
	@test -e $(BUILD)-coverage/build.ninja || meson setup $(BUILD)-coverage -Dtests=enabled -Db_coverage=true
	@ninja -C $(BUILD)-coverage
	@find $(BUILD)-coverage -name '*.gcda' -delete
	$(UNIT_TESTS) $(BUILD)-coverage
	-GCOV_ERROR_FILE=/dev/null scripts/e2e $(BUILD)-coverage "not long"
	@scripts/coverage $(BUILD)-coverage

# Hours of random loaders under the guard, every byte checked, and the tests that take minutes. Not part of the tests.
SOAK_BATCHES := 1000000
soak: build
	@scripts/need test
	$(BUILD)/shmguard run -- $(PYTHON) -W ignore tests/guard/stress.py --batches $(SOAK_BATCHES) --scale 30
	SHMGUARD=$(abspath $(BUILD))/shmguard $(PYTHON) -m pytest tests/e2e -m long

# For a machine with an NVIDIA GPU, and a Python whose PyTorch can use it: make gpu PYTHON=python3
gpu: $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD)
	scripts/test-gpu $(BUILD) $(PYTHON)

bench: build
	@scripts/need bench
	$(PYTHON) bench/loader.py $(BUILD)/shmguard
	$(PYTHON) bench/lane.py $(BUILD)/shmguard
	$(PYTHON) bench/freeze.py $(BUILD)/shmguard
	$(PYTHON) bench/recycle.py $(BUILD)/shmguard
	$(PYTHON) bench/munmap.py $(BUILD)/shmguard
	$(PYTHON) bench/budget.py $(BUILD)/shmguard
	$(PYTHON) bench/supervisor.py $(BUILD)/shmguard
	$(PYTHON) bench/ps.py $(BUILD)/shmguard
	$(PYTHON) bench/plan.py $(BUILD)/shmguard
	$(PYTHON) bench/record.py $(BUILD)/shmguard
	$(PYTHON) bench/tune.py $(BUILD)/shmguard
	$(PYTHON) bench/watch.py $(BUILD)/shmguard
	$(PYTHON) bench/where.py $(BUILD)/shmguard
	$(PYTHON) bench/serve.py $(BUILD)/shmguard
	$(PYTHON) bench/shared-list.py

lint: build
	@scripts/need lint
	scripts/lint $(BUILD)

# FUZZ_SECONDS for all targets together.
fuzz:
	@scripts/need build fuzz
	@test -e $(BUILD)-fuzz/build.ninja || \
	    CC=clang meson setup $(BUILD)-fuzz -Dfuzz=true -Dtests=disabled -Dpage=disabled -Db_sanitize=address,undefined -Db_lundef=false
	@ninja -C $(BUILD)-fuzz
	scripts/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

# The README and docs/ as pages that open from the disk, in build/site.
site:
	@scripts/need site
	@scripts/site $(BUILD)/site

# The pictures of the README and the guides, from real runs on this machine, which should be idle. Needs root.
pictures: page
	@scripts/need test browser
	@scripts/playwright
	@scripts/pictures $(BUILD)/shmguard $(PYTHON)

install: build
	meson install -C $(BUILD)

# For pip, in dist/: wheels for x86_64 and aarch64, and the source as committed. Needs apt with a mirror of Debian.
wheel:
	@scripts/need build web wheel
	@packaging/build dist $(BUILD)-wheel wheel sdist

# The same files in archives that can be unpacked anywhere.
dist:
	@scripts/need web wheel
	@packaging/build dist $(BUILD)-wheel dist

# For apt, in dist/: packages for this Debian, from the source as committed.
deb:
	@scripts/need build web deb
	@packaging/deb dist $(BUILD)-deb

clean:
	rm -rf dist $(BUILD)-wheel $(BUILD)-deb $(BUILD)-container $(BUILD) $(BUILD)-demo $(BUILD)-distros $(BUILD)-sanitize $(BUILD)-coverage $(BUILD)-fuzz
