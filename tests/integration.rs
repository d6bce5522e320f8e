//! The one integration-test binary: real servers, the real binary.
//!
//! The modules live in `tests/integration/`. Run it with `make test`, or one test of it with
//! `tests/run.sh cargo test --features testing --test integration -- NAME`.

/// Holds the modules, so that their files stand in a folder of the same name.
#[cfg(test)]
mod integration {
    mod cli;
    mod compose;
    mod demo;
    mod end_to_end;
    mod examples;
    mod fuzz;
    mod handlers;
    mod harness;
    mod house;
    mod logs;
    mod postgres_store;
    mod pubsub_server;
    mod pubsub_source;
    mod readme;
    mod sqlite_store;
}
