//! Waiting for a condition, with a deadline.

use std::time::Duration;

use tokio::time::{self, Instant};

const POLL: Duration = Duration::from_millis(20);

/// Asks `met` until it gives a value; panics naming `what` when `within` is over first.
pub(crate) async fn eventually<T>(what: &str, within: Duration, mut met: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + within;
    loop {
        if let Some(value) = met().await {
            return value;
        }
        assert!(Instant::now() < end, "waited {within:?} in vain for: {what}");
        time::sleep(POLL).await;
    }
}

/// `Some(())` when the condition holds, for use with [`eventually`].
pub(crate) fn when(holds: bool) -> Option<()> {
    holds.then_some(())
}

/// Asserts that something stays true for as long as the rule under test says it does.
pub(crate) async fn throughout(what: &str, long: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + long;
    while Instant::now() < end {
        assert!(holds().await, "did not stay true for {long:?}: {what}");
        time::sleep(POLL).await;
    }
}
