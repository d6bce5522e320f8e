//! From a delivery to an attempt: decoded, judged by the rules, merged with the copies that are here.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Worker, processor::Attempt};
use crate::{
    claim::Key,
    event::{self, Event, RawEvent},
    rule::Action,
    source::{Acker, Delivery},
};

/// Payloads larger than this are decoded on a thread of their own, so that others flow meanwhile.
const LARGE: usize = 64 * 1024;

impl Worker {
    /// Decodes a delivery, applies skip rules, merges it with a copy that is here, or starts its attempt.
    pub(super) async fn accept(self: &Arc<Self>, Delivery { raw, acker }: Delivery) {
        let received_at = Instant::now();
        if raw.data.len() <= LARGE {
            let event = Arc::new(event::decode(&raw));
            return self.board(event, acker, received_at).await;
        }
        let worker = Arc::clone(self);
        self.tasks.spawn(async move {
            match worker.decode_apart(raw).await {
                Some(event) => worker.board(event, acker, received_at).await,
                None => acker.nack().await,
            }
        });
    }

    async fn decode_apart(&self, raw: Arc<RawEvent>) -> Option<Arc<Event>> {
        match self.tasks.spawn_blocking(move || Arc::new(event::decode(&raw))).await {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::error!(panicked = error.is_panic(), "Decoding died; the delivery is nacked");
                None
            }
        }
    }

    async fn board(self: &Arc<Self>, event: Arc<Event>, acker: Box<dyn Acker>, received_at: Instant) {
        let ruling = self.rules.ruling(&event);
        if ruling.action == Action::Skip {
            self.processor.report.skipped(&event, &ruling);
            return acker.ack().await;
        }
        let key = Key::derive(&self.scope, &event);
        match self.flights.board((key, event.fingerprint), acker) {
            None => self.processor.report.merged(&event),
            Some(flight) => {
                self.processor.report.noticed(&event);
                self.start(Attempt { event, key, ruling, flight, received_at }, None);
            }
        }
    }
}
