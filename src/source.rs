//! The port events come in by, and the only way back to where they came from.

use std::{error::Error, fmt, sync::Arc};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::event::RawEvent;

pub mod pubsub;

/// Any error, as a cause.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A stream of deliveries.
#[async_trait]
pub trait Source: Send {
    /// The source's name in logs, metrics and the `Bellhop-Source` header.
    fn name(&self) -> &str;

    /// The next delivery, `None` at the end. Cancel-safe: a dropped call loses nothing.
    ///
    /// # Errors
    /// Only what no supervisor can mend; outages are waited for inside.
    async fn next(&mut self) -> Result<Option<Delivery>, SourceError>;

    /// Stops intake and gives back what was not yet handed over; returns once every delivery handed over is answered
    /// and every answer has reached the other side, or the deadline passed. Called as soon as a drain begins, beside
    /// the handlers that still run.
    ///
    /// # Errors
    /// When answers may not have reached the other side: those events will be delivered again.
    async fn close(self: Box<Self>, deadline: Instant) -> Result<(), SourceError>;
}

/// One copy of an event, with the way to answer it.
#[must_use = "an unanswered delivery is redelivered"]
pub struct Delivery {
    /// What was delivered.
    pub raw: Arc<RawEvent>,
    /// Answers exactly this copy.
    pub acker: Box<dyn Acker>,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("message_id", &self.raw.message_id).finish_non_exhaustive()
    }
}

/// Answers one delivery, once. Returns when the answer is handed over; [`Source::close`] waits for confirmations.
/// Dropped unanswered, it nacks.
#[async_trait]
pub trait Acker: Send {
    /// The event is settled: never deliver it again.
    async fn ack(self: Box<Self>);

    /// Deliver it again.
    async fn nack(self: Box<Self>);
}

/// Why a source ended.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It can not be used as configured.
    #[error("source refused the request")]
    Refused(#[source] BoxError),
    /// Answers were not confirmed before the deadline.
    #[error("{unconfirmed} answers were not confirmed before the deadline")]
    Unconfirmed {
        /// How many.
        unconfirmed: usize,
    },
}
