//! Google's clients for Python and Node, each in its own process.
