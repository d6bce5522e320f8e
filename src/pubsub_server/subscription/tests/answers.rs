//! Late, repeated and wrong answers; messages that fail too often.

use super::*;

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
