//! The one integration-test binary: real servers, the real binary.

/// Holds the modules, so that their files stand in a folder of the same name.
#[cfg(test)]
mod integration {
    mod postgres_store;
    mod pubsub_source;
    mod sqlite_store;
}
