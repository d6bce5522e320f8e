//! A source fed by hand, and a log of the answers it got.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    event::RawEvent,
    source::{Acker, Delivery, Source, SourceError},
};

/// What was answered, in order: `ack m1`, `nack m2`, `drop m3`, by transport id.
#[derive(Debug, Clone, Default)]
pub struct AckLog(Arc<Mutex<Vec<String>>>);

impl AckLog {
    /// A delivery whose answer is written down here.
    pub fn delivery(&self, raw: RawEvent) -> Delivery {
        let acker = LoggedAcker { name: raw.message_id.clone(), log: self.clone(), answered: false };
        Delivery { raw: Arc::new(raw), acker: Box::new(acker) }
    }

    /// The answers so far.
    #[must_use]
    pub fn answers(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, answer: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
    }
}

struct LoggedAcker {
    name: String,
    log: AckLog,
    answered: bool,
}

#[async_trait]
impl Acker for LoggedAcker {
    async fn ack(mut self: Box<Self>) {
        self.answered = true;
        self.log.write(format!("ack {}", self.name));
    }

    async fn nack(mut self: Box<Self>) {
        self.answered = true;
        self.log.write(format!("nack {}", self.name));
    }
}

impl Drop for LoggedAcker {
    fn drop(&mut self) {
        if !self.answered {
            self.log.write(format!("drop {}", self.name));
        }
    }
}

/// A source that delivers what its feed is given; ends when the feed is dropped.
#[derive(Debug)]
pub struct FedSource(mpsc::UnboundedReceiver<Delivery>);

/// Feeds a [`FedSource`].
pub type Feed = mpsc::UnboundedSender<Delivery>;

impl FedSource {
    /// A source and its feed.
    #[must_use]
    pub fn new() -> (Feed, Self) {
        let (feed, deliveries) = mpsc::unbounded_channel();
        (feed, Self(deliveries))
    }
}

#[async_trait]
impl Source for FedSource {
    fn name(&self) -> &'static str {
        "fed"
    }

    async fn next(&mut self) -> Result<Option<Delivery>, SourceError> {
        Ok(self.0.recv().await)
    }

    async fn close(self: Box<Self>, _deadline: Instant) -> Result<(), SourceError> {
        Ok(())
    }
}
