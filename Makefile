# What a developer does, by name. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

.PHONY: help setup test chart unit check fmt sqlx audit fuzz bench measure throughput

help: ## List what can be done here.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## Install or ask for what the tests need.
	@tests/setup.sh

test: setup chart ## Run every test, beside a PostgreSQL and Google's emulator of their own.
	@tests/run.sh

chart: setup ## Render and test the Helm chart, its alert rules and its autoscaling.
	cargo build --locked --features testing --bin bellhop
	tests/run.sh tests/chart/run.sh
	tests/rules/run.sh
	tests/autoscaling/run.sh

unit: ## Run the tests that need no server (quick).
	cargo test --locked --features testing --lib --bins

fuzz: ## Throw mutated payloads at the decoder for ten minutes (BELLHOP_FUZZ_SECONDS).
	BELLHOP_FUZZ_SECONDS=$${BELLHOP_FUZZ_SECONDS:-600} cargo test --locked --features testing --test integration -- fuzz::

bench: setup ## Measure decoding beside a plain JSON parse, claims beside bare tables; fails when a bound is broken.
	cargo bench --locked --bench decode
	tests/run.sh cargo bench --locked --bench claims

check: setup ## Formatting, lints, queries against a migrated database, Terraform, documentation.
	cargo fmt --all --check
	cargo clippy --locked --all-targets --features testing -- --deny warnings
	tests/run.sh tests/queries.sh check
	tests/lint/run.sh
	tests/terraform/run.sh any
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --no-deps --document-private-items --features testing

.PHONY: lint terraform image

lint: ## Scripts, YAML, Dockerfile, workflows.
	@tests/lint/run.sh

terraform: ## Format, validate and test deploy/terraform (needs terraform; make check does it where it is there).
	@tests/terraform/run.sh

image: ## Build the image from bases made here and run it (root, a quarter of an hour).
	@tests/image/run.sh

fmt: ## Format the code.
	cargo fmt --all

sqlx: setup ## Renew .sqlx/ after a query or a migration changed.
	@tests/run.sh tests/queries.sh renew

audit: ## Licences, banned crates, sources (installs cargo-deny when it is missing).
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny --all-features check licenses bans sources

measure: setup ## Time to ready, memory and processor time of the release build.
	cargo build --locked --release
	tests/run.sh tests/measure.py

throughput: setup ## Events per second of the release build beside two usual workers (ARGS: see tests/throughput.py).
	cargo build --locked --release
	tests/run.sh tests/throughput.py $(ARGS)
