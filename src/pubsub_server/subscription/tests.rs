use super::*;
use crate::pubsub_server::proto::PubsubMessage;

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
fn a_late_ack_counts_until_the_message_is_out_again() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);
    bench.it.close(1, false);
    bench.after(11);

    assert_eq!(bench.ack(&id), Verdict::Done);

    assert_eq!(bench.it.counts().unacked, 0);
}

#[test]
fn an_ack_of_an_earlier_delivery_does_not_touch_the_newer_one() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let old = bench.one(1);
    bench.after(10);
    let new = bench.one(1);

    assert_eq!(bench.ack(&old), Verdict::Invalid);

    assert_eq!(bench.it.counts().unacked, 1);
    assert_eq!(bench.ack(&new), Verdict::Done);
}

#[test]
fn exactly_once_refuses_an_ack_after_the_lease_and_confirms_one_sent_twice() {
    let mut bench = Bench::new(Settings { exactly_once: true, ..Settings::default() });
    bench.open(1, Window { max_messages: Some(1), ..NO_LIMIT });
    bench.publish("a");
    let late = bench.one(1);
    bench.it.close(1, false);
    bench.after(10);

    assert_eq!(bench.ack(&late), Verdict::Invalid);
    assert_eq!(bench.modify(&late, 10), Verdict::Invalid);

    bench.open(2, NO_LIMIT);
    let current = bench.one(2);
    assert_eq!(bench.ack(&current), Verdict::Done);
    assert_eq!(bench.ack(&current), Verdict::Done);
}

#[test]
fn ack_ids_of_others_are_invalid() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    bench.one(1);

    for id in ["", "1", "run-2-1", "run-1-", "run-1-x", "run-1-99"] {
        assert_eq!(bench.ack(id), Verdict::Invalid, "{id}");
    }
}

#[test]
fn attempts_are_counted_only_with_a_policy_and_lead_to_the_dead_letters() {
    let policy = DeadLetter { topic: "projects/p/topics/dead".into(), max_attempts: 5 };
    let mut bench = Bench::new(Settings { dead_letter: Some(policy), ..Settings::default() });
    bench.open(1, NO_LIMIT);
    bench.publish("a");

    let mut attempts = Vec::new();
    for round in 0..5 {
        let taken = bench.it.take(1, bench.now);
        attempts.extend(taken.iter().map(|it| it.attempt));
        if round % 2 == 0 {
            bench.modify(&taken[0].ack_id, 0);
        } else {
            bench.after(10);
        }
    }

    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    assert_eq!(bench.data(1), [""; 0]);
    let dead: Vec<(Seq, u32)> =
        bench.it.dead().into_iter().map(|(message, attempts)| (message.seq, attempts)).collect();
    assert_eq!(dead, [(1, 5)]);
    bench.it.bury(1);
    assert_eq!(bench.it.counts().unacked, 0);
}

#[test]
fn a_dead_letter_with_nowhere_to_go_is_delivered_again() {
    let policy = DeadLetter { topic: "projects/p/topics/dead".into(), max_attempts: 5 };
    let mut bench = Bench::new(Settings { dead_letter: Some(policy), ..Settings::default() });
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    for _ in 0..5 {
        let id = bench.one(1);
        bench.modify(&id, 0);
    }

    assert_eq!(bench.it.dead().len(), 1);
    bench.it.revive(1);
    bench.it.dispatch(bench.now);

    assert_eq!(bench.data(1), ["a"]);
}

#[test]
fn without_a_policy_no_attempt_is_told() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");
    let id = bench.one(1);
    bench.modify(&id, 0);

    assert_eq!(bench.it.take(1, bench.now)[0].attempt, 0);
}

#[test]
fn a_stream_holds_no_more_than_its_window() {
    let mut bench = Bench::plain();
    bench.open(1, Window { max_messages: Some(2), ..NO_LIMIT });
    for data in ["a", "b", "c"] {
        bench.publish(data);
    }

    let held = bench.take(1);
    assert_eq!(held.len(), 2);
    assert_eq!(bench.data(1), [""; 0]);
    bench.ack(&held[0].1);

    assert_eq!(bench.data(1), ["c"]);
}

#[test]
fn bytes_are_a_limit_too_but_a_large_message_goes_alone() {
    let mut bench = Bench::plain();
    bench.open(1, Window { max_bytes: Some(100), ..NO_LIMIT });
    bench.publish(&"x".repeat(1_000));
    bench.publish("small");

    let large = bench.take(1);
    assert_eq!(large.len(), 1);
    assert_eq!(bench.data(1), [""; 0]);
    bench.ack(&large[0].1);

    assert_eq!(bench.data(1), ["small"]);
}

#[test]
fn small_messages_do_not_overtake_a_large_one_for_ever() {
    let mut bench = Bench::plain();
    bench.open(1, Window { max_bytes: Some(1_100), ..NO_LIMIT });
    bench.publish("first");
    bench.publish(&"x".repeat(1_080));
    bench.publish("last");

    let first = bench.take(1);
    assert_eq!(first.len(), 1);
    bench.ack(&first[0].1);

    assert_eq!(bench.data(1)[0].len(), 1_080);
}

#[test]
fn streams_share_what_comes() {
    let mut bench = Bench::plain();
    for stream in 1..=3 {
        bench.open(stream, NO_LIMIT);
    }
    for _ in 0..300 {
        bench.publish("a");
    }

    let shares: Vec<usize> = (1..=3).map(|stream| bench.data(stream).len()).collect();

    assert_eq!(shares, [100, 100, 100]);
}

#[test]
fn a_backlog_goes_to_whoever_has_room() {
    let mut bench = Bench::plain();
    for _ in 0..100 {
        bench.publish("a");
    }

    bench.open(1, Window { max_messages: Some(5), ..NO_LIMIT });
    bench.open(2, NO_LIMIT);

    assert_eq!(bench.data(1).len(), 5);
    assert_eq!(bench.data(2).len(), 95);
}

#[test]
fn a_stream_that_does_not_read_gets_one_batch_and_no_more() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);

    for _ in 0..BATCH_MESSAGES + 10 {
        bench.publish("a");
    }

    assert_eq!(bench.it.counts().leased, BATCH_MESSAGES);
    assert_eq!(bench.it.counts().ready, 10);
}

#[test]
fn a_closed_stream_gives_back_what_was_not_sent_and_keeps_the_rest_leased() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("sent");
    let sent = bench.one(1);
    bench.publish("unsent");

    bench.it.close(1, false);
    bench.open(2, NO_LIMIT);

    assert_eq!(bench.data(2), ["unsent"]);
    assert_eq!(bench.modify(&sent, 10), Verdict::Done);
    assert_eq!(bench.ack(&sent), Verdict::Done);
}

#[test]
fn a_lost_stream_gives_back_all_it_held_and_that_is_no_failure() {
    let mut bench = Bench::new(with_retry(60, 600));
    bench.open(1, NO_LIMIT);
    bench.publish("sent");
    bench.one(1);
    bench.publish("unsent");

    bench.it.close(1, true);
    bench.open(2, NO_LIMIT);

    assert_eq!(bench.data(2), ["sent", "unsent"]);
}

#[test]
fn a_lease_that_ends_before_it_was_sent_is_not_sent() {
    let mut bench = Bench::plain();
    bench.open(1, Window { max_messages: Some(1), ..NO_LIMIT });
    bench.publish("a");

    bench.after(10);

    assert_eq!(bench.data(1), ["a"], "once, with the new ack id");
    assert_eq!(bench.data(1), [""; 0]);
}

#[test]
fn a_lease_starts_when_it_is_sent() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.publish("a");

    bench.after(9);
    assert_eq!(bench.data(1), ["a"]);
    bench.after(9);

    assert_eq!(bench.data(1), [""; 0]);
}

fn ordered() -> Bench {
    let mut bench = Bench::new(Settings { ordered: true, ..Settings::default() });
    bench.open(1, NO_LIMIT);
    bench.open(2, NO_LIMIT);
    bench
}

#[test]
fn one_keys_messages_go_to_one_stream_in_order() {
    let mut bench = ordered();
    for (data, key) in [("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b"), ("a3", "a"), ("free", "")] {
        bench.publish_key(data, key);
    }

    assert_eq!(bench.data(1), ["a1", "a2", "a3"]);
    assert_eq!(bench.data(2), ["b1", "b2", "free"]);
}

#[test]
fn a_nack_brings_back_the_rest_of_its_key_in_order() {
    let mut bench = ordered();
    for data in ["a1", "a2", "a3"] {
        bench.publish_key(data, "a");
    }
    let out = bench.take(1);

    bench.modify(&out[1].1, 0);
    bench.publish_key("a4", "a");

    assert_eq!(bench.data(1), ["a2", "a3", "a4"]);
    assert_eq!(bench.modify(&out[2].1, 0), Verdict::Invalid, "its lease ended with the one before it");
}

#[test]
fn a_resting_message_holds_up_its_key_but_no_other() {
    let mut bench = Bench::new(Settings { ordered: true, ..with_retry(5, 600) });
    bench.open(1, NO_LIMIT);
    for (data, key) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        bench.publish_key(data, key);
    }
    let out = bench.take(1);

    bench.modify(&out[0].1, 0);
    bench.publish_key("b2", "b");
    assert_eq!(bench.data(1), ["b2"]);
    bench.after(5);

    assert_eq!(bench.data(1), ["a1", "a2"]);
}

#[test]
fn a_lost_stream_gives_back_a_key_in_order() {
    let mut bench = ordered();
    for data in ["a1", "a2", "a3"] {
        bench.publish_key(data, "a");
    }
    bench.take(1);

    bench.it.close(1, true);
    bench.it.dispatch(bench.now);

    assert_eq!(bench.data(2), ["a1", "a2", "a3"]);
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

#[test]
fn a_paused_subscription_hands_nothing_out() {
    let mut bench = Bench::plain();
    bench.open(1, NO_LIMIT);
    bench.it.pause(true);
    bench.publish("a");
    assert_eq!(bench.data(1), [""; 0]);

    bench.it.pause(false);
    bench.it.dispatch(bench.now);

    assert_eq!(bench.data(1), ["a"]);
}
