//! Ordering keys: one key, one reader, one order.

use super::*;

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
