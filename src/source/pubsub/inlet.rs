//! From a message of the client to a delivery in the engine's hands.

use std::sync::Arc;

use bytes::Bytes;
use chrono::DateTime;
use google_cloud_pubsub::{model::Message, subscriber::handler::Handler};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    acker::{Answers, PubsubAcker},
    budget::Budget,
    held::HeldMessages,
};
use crate::{clock::Clock, event::RawEvent, metrics::Metrics, source::Delivery};

/// Shared by all readers of the source.
#[derive(Debug)]
pub(super) struct Inlet {
    pub(super) budget: Arc<Budget>,
    pub(super) answers: Arc<Answers>,
    pub(super) held: Arc<HeldMessages>,
    pub(super) deliveries: mpsc::Sender<Delivery>,
    pub(super) stopping: CancellationToken,
    pub(super) metrics: Metrics,
    pub(super) clock: Arc<dyn Clock>,
}

impl Inlet {
    /// Waits for the budget, then hands the message over. Once stopping, its handle comes back: to be dropped when the
    /// stream is closed, since an open one would be sent the message again at once.
    pub(super) async fn hand_over(&self, message: Message, handle: Handler) -> Option<Handler> {
        let Some(permit) = self.budget.take(size(&message), &self.stopping).await else {
            self.metrics.pubsub_requests.with_label_values(&["nack", "drained"]).inc();
            return Some(handle);
        };
        let raw = Arc::new(raw_event(message, handle.delivery_attempt()));
        let delivery = match raw.delivery_attempt {
            None => "unknown",
            Some(0 | 1) => "first",
            Some(_) => "redelivered",
        };
        self.metrics.pubsub_messages_received.with_label_values(&[delivery]).inc();
        if let Some(attempt) = raw.delivery_attempt.filter(|attempt| *attempt > 0) {
            self.metrics.pubsub_delivery_attempts.observe(attempt.into());
        }
        self.metrics.pubsub_last_message_timestamp.set(seconds(&*self.clock));
        let (held, came_again) = self.held.hold(&raw.message_id);
        if came_again {
            self.metrics.pubsub_lease_expirations.inc();
        }
        let acker = PubsubAcker::new(handle, Arc::clone(&self.answers), held, permit);
        // Never full: it has a place for each message of the budget. Closed: the acker nacks.
        let _ = self.deliveries.send(Delivery { raw, acker: Box::new(acker) }).await;
        None
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit for 285,000 years")]
fn seconds(clock: &dyn Clock) -> f64 {
    clock.now().timestamp_millis() as f64 / 1_000.0
}

/// What it costs to hold it.
fn size(message: &Message) -> usize {
    let attributes: usize = message.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    message.data.len() + attributes + message.ordering_key.len()
}

fn raw_event(message: Message, attempt: Option<i32>) -> RawEvent {
    let publish_time = message
        .publish_time
        .and_then(|time| DateTime::from_timestamp(time.seconds(), u32::try_from(time.nanos()).unwrap_or_default()));
    RawEvent {
        // A copy of its own: as a slice it would keep the whole response of the server alive.
        data: Bytes::copy_from_slice(&message.data),
        attributes: message.attributes.into_iter().collect(),
        message_id: message.message_id,
        publish_time,
        ordering_key: message.ordering_key,
        delivery_attempt: attempt.and_then(|attempt| u32::try_from(attempt).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_an_event_untouched() {
        let message = Message::new()
            .set_data("payload")
            .set_attributes([("ce-type", "x")])
            .set_message_id("7")
            .set_ordering_key("key");

        assert_eq!(size(&message), 18);
        let raw = raw_event(message, Some(3));
        assert_eq!(&raw.data[..], b"payload");
        assert_eq!(raw.attributes["ce-type"], "x");
        assert_eq!((raw.message_id.as_str(), raw.ordering_key.as_str()), ("7", "key"));
        assert_eq!((raw.publish_time, raw.delivery_attempt), (None, Some(3)));
    }
}
