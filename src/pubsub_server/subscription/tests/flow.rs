//! Who gets how much, and what happens to it when the reader goes.

use super::*;

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
