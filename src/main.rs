//! The `bellhop` binary.

fn main() {}
