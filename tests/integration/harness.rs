//! What the integration tests stand on: servers, the real process, a handler that does as it is told, a bad network.
//!
//! Nothing here sleeps to let something happen: tests wait for a condition with a deadline ([`eventually`]).

pub(crate) mod bellhop;
pub(crate) mod broker;
pub(crate) mod emulator;
pub(crate) mod event;
pub(crate) mod front;
pub(crate) mod handler;
pub(crate) mod metrics;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod wait;

mod tests;

pub(crate) use self::{
    bellhop::{Bellhop, Setup},
    broker::Broker,
    emulator::Emulator,
    front::Front,
    handler::{Behaviour, ScriptedHandler},
    postgres::Postgres,
    proxy::Proxy,
    wait::eventually,
};

/// A name no other test and no other run uses.
pub(crate) fn unique(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::new_v4().simple())
}

/// The value that `tests/run.sh` hands over; without it no test can run.
pub(crate) fn from_run(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set: these tests need servers. Run `make test`, or \
             `tests/run.sh cargo test --features testing --test integration -- NAME` for one test"
        )
    })
}
