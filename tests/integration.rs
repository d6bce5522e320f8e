//! The one integration-test binary: real servers, the real binary.
