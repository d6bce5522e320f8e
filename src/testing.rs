//! Fakes of the ports, fault wrappers and conformance suites, for tests only (feature `testing`).

pub mod clock;
pub mod conformance;
pub mod faults;
pub mod handler;
pub mod source;
