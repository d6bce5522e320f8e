//! The state machine under a clock moved by hand.

use super::*;
use crate::pubsub_server::proto::PubsubMessage;

mod answers;
mod flow;
mod ordering;

const NO_LIMIT: Window = Window { ack_deadline: Duration::from_secs(10), max_messages: None, max_bytes: None };

/// A subscription and the time, moved by hand.
struct Bench {
    it: Subscription,
    now: Instant,
    seq: Seq,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        Self { it: Subscription::new(settings, "run-1-".to_owned()), now: Instant::now(), seq: 0 }
    }

    fn plain() -> Self {
        Self::new(Settings::default())
    }

    fn publish(&mut self, data: &str) {
        self.publish_key(data, "");
    }

    fn publish_key(&mut self, data: &str, key: &str) {
        self.seq += 1;
        let wire = PubsubMessage {
            data: data.into(),
            message_id: self.seq.to_string(),
            ordering_key: key.to_owned(),
            publish_time: Some(prost_types::Timestamp { seconds: self.seq.try_into().unwrap(), nanos: 0 }),
            ..PubsubMessage::default()
        };
        self.it.publish(Arc::new(Message::new(self.seq, wire, self.now)));
        self.it.dispatch(self.now);
    }

    fn open(&mut self, id: StreamId, window: Window) {
        self.it.open(id, window);
        self.it.dispatch(self.now);
    }

    /// Data and ack id of what a stream gets now.
    fn take(&mut self, id: StreamId) -> Vec<(String, String)> {
        let taken = self.it.take(id, self.now);
        self.it.dispatch(self.now);
        taken.into_iter().map(|it| (String::from_utf8(it.message.wire.data.clone()).unwrap(), it.ack_id)).collect()
    }

    fn data(&mut self, id: StreamId) -> Vec<String> {
        self.take(id).into_iter().map(|(data, _)| data).collect()
    }

    /// The ack id of the one message a stream gets now.
    fn one(&mut self, id: StreamId) -> String {
        let mut taken = self.take(id);
        assert_eq!(taken.len(), 1, "{taken:?}");
        taken.remove(0).1
    }

    fn after(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.it.advance(self.now);
        self.it.dispatch(self.now);
    }

    fn ack(&mut self, id: &str) -> Verdict {
        let verdict = self.it.acknowledge(id);
        self.it.dispatch(self.now);
        verdict
    }

    fn modify(&mut self, id: &str, seconds: u64) -> Verdict {
        let verdict = self.it.modify(id, Duration::from_secs(seconds), self.now);
        self.it.dispatch(self.now);
        verdict
    }
}

fn with_retry(min: u64, max: u64) -> Settings {
    Settings {
        retry: Some(Backoff { min: Duration::from_secs(min), max: Duration::from_secs(max) }),
        ..Settings::default()
    }
}

#[test]
fn an_acked_message_is_gone_for_good() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);

    assert_eq!(bench.ack(&id), Verdict::Done);

    bench.after(1_000);
    assert_eq!(bench.data(1), [""; 0]);
    assert_eq!(bench.it.counts().unacked, 0);
    assert_eq!(bench.it.bytes(), 0);
    assert_eq!(bench.it.next_timer(), None);
}

#[test]
fn an_expired_lease_delivers_again_with_a_new_ack_id() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let first = bench.one(1);
    assert_eq!(bench.it.next_timer(), Some(bench.now + Duration::from_secs(10)));

    bench.after(9);
    assert_eq!(bench.data(1), [""; 0]);
    bench.after(1);
    let second = bench.one(1);

    assert_ne!(first, second);
}

#[test]
fn an_extended_lease_lasts_from_the_extension_on() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);

    bench.after(9);
    assert_eq!(bench.modify(&id, 30), Verdict::Done);
    bench.after(29);
    assert_eq!(bench.data(1), [""; 0]);
    bench.after(1);

    assert_eq!(bench.data(1), ["a"]);
}

#[test]
fn a_nack_delivers_again_at_once_without_a_retry_policy() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);

    bench.modify(&id, 0);

    assert_eq!(bench.data(1), ["a"]);
}

#[test]
fn the_retry_policy_spaces_nacks_and_expiries_of_one_message() {
    let mut bench = Bench::new(with_retry(3, 600));
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);

    bench.modify(&id, 0);
    bench.after(2);
    assert_eq!(bench.data(1), [""; 0]);
    bench.after(1);
    assert_eq!(bench.data(1), ["a"]);
    bench.after(10);
    bench.after(5);
    assert_eq!(bench.data(1), [""; 0]);
    bench.after(1);

    assert_eq!(bench.data(1), ["a"]);
}

#[test]
fn a_backoff_holds_up_only_its_own_message() {
    let mut bench = Bench::new(with_retry(60, 600));
    bench.open(1, NO_LIMIT);
    bench.publish("bad");
    let id = bench.one(1);

    bench.modify(&id, 0);
    bench.publish("good");

    assert_eq!(bench.data(1), ["good"]);
    assert_eq!(bench.it.counts().delayed, 1);
}

#[test]
fn messages_past_retention_are_forgotten() {
    let mut bench = Bench::new(Settings { retention: Duration::from_secs(600), ..Settings::default() });
    bench.publish("old");
    bench.after(300);
    bench.publish("new");

    bench.after(300);

    bench.open(1, NO_LIMIT);
    assert_eq!(bench.data(1), ["new"]);
}

#[test]
fn a_seek_forward_purges_and_a_seek_behind_an_ack_is_refused() {
    let at = |seconds| DateTime::<Utc>::from_timestamp(seconds, 0).unwrap();
    let mut bench = Bench::plain();
    bench.open(1, Window { max_messages: Some(1), ..NO_LIMIT });
    for data in ["a", "b", "c"] {
        bench.publish(data);
    }
    let a = bench.one(1);
    bench.ack(&a);

    assert!(!bench.it.seek(at(1)));
    assert!(bench.it.seek(at(3)));

    bench.after(10);
    assert_eq!(bench.data(1), ["c"]);
}

#[test]
fn deliver_again_makes_a_second_delivery_of_what_is_out() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let first = bench.one(1);

    assert!(bench.it.deliver_again("1"));
    bench.it.dispatch(bench.now);

    assert_ne!(bench.one(1), first);
    assert!(!bench.it.deliver_again("no such message"));
}
