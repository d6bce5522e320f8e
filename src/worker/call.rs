//! Calling the handler: deadline, fence, drain, panic.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::time;

use super::{
    renewal::{Held, Loss},
    verdict::Verdict,
};
use crate::{
    claim::Claim,
    event::Event,
    handler::{Handler, HandlerContext},
    shutdown::Shutdown,
};

/// Calls the handler once. Whatever cuts it drops its future, which ends it.
///
/// A strict attempt runs to its own deadline although its lease is lost: no machine runs it again, so cutting it would
/// only make its outcome unknown.
pub(super) async fn handler(
    handler: &Arc<dyn Handler>,
    event: &Event,
    claim: &Claim,
    cx: &HandlerContext,
    held: &mut Held,
    shutdown: &Shutdown,
) -> (Verdict, Option<Loss>) {
    let call = time::timeout(cx.timeout, AssertUnwindSafe(handler.handle(event, cx)).catch_unwind());
    tokio::select! {
        biased;                                   // an answer that is there counts, whatever else happened
        ended = call => (match ended {
            Ok(Ok(answer)) => Verdict::Answered(answer),
            Ok(Err(_panic)) => Verdict::Panicked,
            Err(_elapsed) => Verdict::TimedOut,
        }, None),
        loss = held.lost(), if !claim.strict => (Verdict::Fenced, Some(loss)),
        () = shutdown.aborting() => (Verdict::Drained, None),
    }
}

/// What the handler is told about this attempt.
pub(super) fn context(
    claim: &Claim,
    now: chrono::DateTime<chrono::Utc>,
    timeout: Duration,
    source: &str,
) -> HandlerContext {
    HandlerContext {
        epoch: claim.epoch,
        attempt: u32::from(claim.failures) + u32::from(claim.lost) + 1,
        replay: 0,
        timeout,
        deadline: now + timeout,
        strict: claim.strict,
        source: source.to_owned(),
    }
}
