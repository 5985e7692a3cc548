# The two commands: make demo, make test. Both set up what is missing first.
# Where rustup puts cargo, which a shell that was open before does not know yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Clippy as the compiler of our own crates, where it is installed: what is tested is linted by the same build, and no dependency is compiled or checked a
# second time.
LINTED = driver="$$(rustc --print sysroot)/bin/clippy-driver"; [ ! -x "$$driver" ] || \
	export RUSTC_WORKSPACE_WRAPPER="$$driver" CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__;

.PHONY: help setup setup-test demo test test-long answers answers-known answers-slt fuzz format lint tidy bench sim release

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 17

setup: ## install what is missing to build and test
	scripts/setup

demo: setup ## build, then show out-of-order execution on the bundled sample
	cargo run --release -p tanada -- demo

# MariaDB too.
setup-test:
	scripts/setup --test

test: setup-test format ## everything that has to hold
	$(LINTED) scripts/test

# What is too long for every change: random tables and statements on real servers, fuzzing. TANADA_SEED= begins elsewhere.
test-long: setup-test ## campaigns: 3,000 altered tables and 10,000 statements on three servers, 250 kills, a minute of fuzzing
	scripts/setup --fuzz
	scripts/fuzz --seconds 60
	scripts/servers
	TANADA_SERVERS=target/servers TANADA_TABLES=1000 cargo test --profile ci -p tanada-query --test servers -- --nocapture altered_at_random
	TANADA_SERVERS=target/servers TANADA_STATEMENTS=5000 cargo test --profile ci -p tanada-query --test servers -- --nocapture random_statements
	TANADA_KILLS=200 cargo test --profile ci -p tanada --test command -- killed

ANSWERS = cargo test --profile ci -p tanada-query --test answers -- --nocapture
N ?= 100000
SEED ?= 1
answers: setup ## random queries against MariaDB, 100,000; N= for another number, SEED= to begin elsewhere (docs/testing.md)
	@if [ -x /usr/sbin/mariadbd ] || command -v mariadbd >/dev/null; then \
		TANADA_SEED=$(SEED) TANADA_QUERIES=$(N) TANADA_SHRUNK=60 $(ANSWERS) generated_queries; \
	else \
		echo "MariaDB is not installed (scripts/setup --test): answers are checked against themselves, by TLP and NoREC"; \
		TANADA_SEED=$(SEED) TANADA_QUERIES=$(N) $(ANSWERS) consistent; \
	fi

answers-known: setup-test ## write anew which recorded queries differ; refuses if more are wrong than before
	TANADA_WRITE_KNOWN=1 $(ANSWERS) recorded_queries

DIR ?= sqllogictest/test
answers-slt: setup-test ## all files of a folder in the format of sqllogictest, DIR=
	TANADA_SLT=$(abspath $(DIR)) $(ANSWERS) collection

format: ## the formatting
	cargo fmt --all --check

lint: format ## formatting and clippy, warnings are errors
	$(LINTED) cargo test --workspace --profile ci --no-run

tidy: ## the rules of the house alone, in seconds
	cargo test --profile ci -p tanada-base --test tidy

EXECUTIONS ?= 5000000
fuzz: ## all parsers of InnoDB's files, five million executions; EXECUTIONS= for another number (docs/fuzzing.md)
	scripts/setup --fuzz
	scripts/fuzz --all $(EXECUTIONS)

# Words that `make sim` passes on, so that the line printed with a failure repeats it.
SIM = STORY SEED COUNT POINT OUTCOME DENSITY OUTCOMES FAULT BUG CREATION
sim: ## power cuts and failing disks, for longer; STORY=, SEED=, COUNT= and more (docs/simulation.md)
	cargo run --profile ci -p tanada-sim -- $(foreach word,$(SIM),$(if $($(word)),$(word)=$($(word))))

bench: ## the benchmarks in quick form; needs fio
	scripts/setup --bench
	cargo build --release -p tanada
	target/release/tanada bench io --quick
	target/release/tanada bench ooode --quick
	target/release/tanada bench ycsb --quick --media folder
	target/release/tanada bench hse --quick

release: setup ## what a tag publishes, in target/dist: stripped programs with the sample, for x86-64 and ARM64
	scripts/release
