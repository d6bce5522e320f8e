//! bellhop takes Google Chat events from Pub/Sub and has each one handled once.
//!
//! The house has four floors; a file imports its own floor or lower ones, and a test holds it to that:
//!
//! | floor | modules |
//! |---|---|
//! | 0 words (no I/O) | [`clock`] [`secret`] [`event`] [`claim`] [`outcome`] [`retry`] [`rule`] |
//! | 1 ports | [`source`] [`store`] [`handler`] [`shutdown`] [`metrics`] |
//! | 2 engine | [`claims`] [`worker`] [`sweeper`] |
//! | 3 adapters | below the ports: `source::pubsub`, `store::{postgres,sqlite,memory}`, `handler::{http,exec,echo}`; [`pubsub_server`] |
//! | 4 application | [`server`] [`config`] [`telemetry`] [`app`] [`cli`] |
//!
//! Data goes one way: source → event → claim → handle → settle → ack or nack.

// Floor 0: words.
pub mod claim;
pub mod clock;
pub mod event;
pub mod outcome;
pub mod retry;
pub mod rule;
pub mod secret;

// Floor 1: ports.
pub mod handler;
pub mod metrics;
pub mod shutdown;
pub mod source;
pub mod store;

// Floor 2: engine.
pub mod claims;
pub mod sweeper;
pub mod worker;

// Floor 3: adapters.
pub mod pubsub_server;

// Floor 4: application.
pub mod app;
pub mod cli;
pub mod config;
pub mod server;
pub mod telemetry;

#[cfg(feature = "testing")]
pub mod testing;
