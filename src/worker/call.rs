//! Calling the handler: deadline, fence, drain, panic.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

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

/// How long a call that is to be cut may still show an answer that came in time. Far below any grace.
const LAST_LOOK: Duration = Duration::from_millis(50);

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
    let mut call = pin!(AssertUnwindSafe(handler.handle(event, cx)).catch_unwind().map(|ended| match ended {
        Ok(answer) => Verdict::Answered(answer),
        Err(_panic) => Verdict::Panicked,
    }));
    let (cut, loss) = tokio::select! {
        biased;
        verdict = &mut call => return (verdict, None),
        () = time::sleep(cx.timeout) => (Verdict::TimedOut, None),
        loss = held.lost(), if !claim.strict => (Verdict::Fenced, Some(loss)),
        () = shutdown.aborting() => (Verdict::Drained, None),
    };
    // An answer that is there counts. After a freeze the timer fires before the answer in the socket was read.
    match time::timeout(LAST_LOOK, call).await {
        Ok(verdict) => (verdict, None),
        Err(_elapsed) => (cut, loss),
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
