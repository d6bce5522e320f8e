//! A handler that does what the test says, and writes down every call.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::time;

use crate::{
    event::Event,
    handler::{Handled, Handler, HandlerContext, HandlerError},
    outcome::Detail,
};

/// What the handler does on one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Succeeds.
    Succeed,
    /// Succeeds after so long.
    SucceedAfter(Duration),
    /// Answers "error".
    Fail,
    /// Says that nothing was done.
    NotRun,
    /// Says that no retry will help.
    Refuse,
    /// Was ended at its deadline.
    TimeOut,
    /// Hangs up: nobody knows.
    HangUp,
    /// Hangs up after this time.
    HangUpAfter(Duration),
    /// Can not be reached.
    Unreachable,
    /// Panics.
    Panic,
    /// Never answers.
    Hang,
}

/// One call: event id, epoch, attempt.
pub type Call = (String, u32, u32);

/// Does the scripted acts in order, then succeeds.
#[derive(Debug, Clone, Default)]
pub struct ScriptedHandler {
    acts: Arc<Mutex<VecDeque<Act>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    cut: Arc<Mutex<u32>>,
}

impl ScriptedHandler {
    /// A handler with these acts.
    #[must_use]
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self { acts: Arc::new(Mutex::new(acts.into_iter().collect())), ..Self::default() }
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    /// How many calls were cut (their future was dropped before it ended).
    #[must_use]
    pub fn cut(&self) -> u32 {
        *lock(&self.cut)
    }
}

#[async_trait]
impl Handler for ScriptedHandler {
    async fn handle(&self, event: &Event, cx: &HandlerContext) -> Result<Handled, HandlerError> {
        lock(&self.calls).push((event.id.to_string(), cx.epoch, cx.attempt));
        let act = lock(&self.acts).pop_front().unwrap_or(Act::Succeed);
        let mut cut = CountCut { cut: &self.cut, armed: true };
        let answer = perform(act).await;
        cut.armed = false;
        answer
    }
}

async fn perform(act: Act) -> Result<Handled, HandlerError> {
    let what = String::from("scripted");
    let detail = Detail::default();
    match act {
        Act::Succeed => Ok(Handled::default()),
        Act::SucceedAfter(time) => {
            time::sleep(time).await;
            Ok(Handled::default())
        }
        Act::Fail => Err(HandlerError::Failed { what, after: None, detail }),
        Act::NotRun => Err(HandlerError::NotRun { what, after: None, detail }),
        Act::Refuse => Err(HandlerError::Permanent { what, detail }),
        Act::TimeOut => Err(HandlerError::TimedOut { what, detail }),
        Act::HangUpAfter(time) => {
            time::sleep(time).await;
            Err(HandlerError::Unknown { what, detail, over: false })
        }
        Act::HangUp => Err(HandlerError::Unknown { what, detail, over: false }),
        Act::Unreachable => Err(HandlerError::TargetTrouble { what, detail }),
        Act::Panic => std::panic::panic_any("scripted"),
        Act::Hang => std::future::pending().await,
    }
}

struct CountCut<'a> {
    cut: &'a Mutex<u32>,
    armed: bool,
}

impl Drop for CountCut<'_> {
    fn drop(&mut self) {
        if self.armed && !std::thread::panicking() {
            *lock(self.cut) += 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
