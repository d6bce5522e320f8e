//! One line when trouble changes its kind, then one a minute; one line when it is over.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{error, info, warn};

use super::reason::{Failure, Reason};

const EVERY: Duration = Duration::from_secs(60);

/// One for the probe, one shared by all streams, so that they do not all say the same.
#[derive(Debug)]
pub(super) struct Notice {
    /// What the lines are about.
    subject: &'static str,
    trouble: Mutex<Option<Trouble>>,
}

#[derive(Debug, Clone, Copy)]
struct Trouble {
    since: Instant,
    reason: Reason,
    said: Instant,
}

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loudness {
    Warning,
    /// It has lasted for a minute: someone must look.
    Alarm,
}

impl Notice {
    pub(super) fn about(subject: &'static str) -> Self {
        Self { subject, trouble: Mutex::default() }
    }

    /// Something failed; it will be tried again.
    pub(super) fn failed(&self, subscription: &str, failure: &Failure) {
        let (reason, why, advice) = (failure.reason.as_str(), &failure.words, failure.reason.advice());
        match self.note(failure.reason, Instant::now()) {
            None => {}
            Some(Loudness::Warning) => {
                warn!(subscription, reason, why, advice, "{} failed ({reason}), trying again: {advice}", self.subject);
            }
            Some(Loudness::Alarm) => {
                error!(
                    subscription,
                    reason, why, advice, "{} still fails ({reason}), trying again: {advice}", self.subject
                );
            }
        }
    }

    /// It works.
    pub(super) fn recovered(&self, subscription: &str) {
        if let Some(trouble) = self.lock().take() {
            let seconds = trouble.since.elapsed().as_secs();
            info!(subscription, down_seconds = seconds, "{} works again after {seconds} s", self.subject);
        }
    }

    fn note(&self, reason: Reason, now: Instant) -> Option<Loudness> {
        let mut trouble = self.lock();
        let (since, speak) = match *trouble {
            None => (now, true),
            Some(known) => (known.since, known.reason != reason || now - known.said >= EVERY),
        };
        if !speak {
            return None;
        }
        *trouble = Some(Trouble { since, reason, said: now });
        Some(if now - since >= EVERY { Loudness::Alarm } else { Loudness::Warning })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_trouble_is_told_once_and_then_every_minute_louder() {
        let notice = Notice::about("The test");
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);

        assert_eq!(notice.note(Reason::NotFound, at(0)), Some(Loudness::Warning));
        assert_eq!(notice.note(Reason::NotFound, at(59)), None);
        assert_eq!(notice.note(Reason::NotFound, at(60)), Some(Loudness::Alarm));
        assert_eq!(notice.note(Reason::NotFound, at(119)), None);
        assert_eq!(notice.note(Reason::Unreachable, at(119)), Some(Loudness::Alarm));
        notice.recovered("s");
        assert_eq!(notice.note(Reason::Unreachable, at(120)), Some(Loudness::Warning));
    }
}
