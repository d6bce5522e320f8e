//! One suite per port, run for every adapter.
