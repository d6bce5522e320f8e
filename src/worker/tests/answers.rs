//! What a delivery is answered with, and when the handler is called.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_handled_event_is_settled_then_acked() {
    let bench = Setup::default().start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
    assert_eq!(bench.state(1).await.unwrap().0, State::Done);
    assert_eq!(bench.stop().await.0, Drained::Clean);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_settled_event_is_acked_without_a_call() {
    let bench = Setup::default().start();
    bench.deliver(1, "m1");
    bench.answers(1).await;

    bench.deliver(1, "m2");

    assert_eq!(bench.answers(2).await, ["ack m1", "ack m2"]);
    assert_eq!(bench.handler.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn copies_that_arrive_while_it_runs_get_one_answer_newest_first() {
    let bench = Setup::acts([Act::SucceedAfter(Duration::from_secs(5))]).start();
    bench.deliver(1, "m1");
    bench.calls(1).await;

    bench.deliver(1, "m1-again");
    bench.deliver(1, "m2");

    assert_eq!(bench.answers(3).await, ["ack m2", "ack m1-again", "ack m1"]);
    assert_eq!(bench.handler.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_chat_event_is_quarantined_without_a_call() {
    let bench = Setup::default().start();
    let raw = RawEvent {
        data: "not json".into(),
        message_id: "m1".into(),
        publish_time: Some(bench.clock.now()),
        ..RawEvent::default()
    };

    bench.feed.send(bench.log.delivery(raw)).unwrap();

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.handler.calls().len(), 0);
    assert_eq!(bench.metrics.quarantined.with_label_values(&["undecodable"]).get(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_skip_and_put_aside_without_a_call() {
    let rule = |action| Rule { action, ..Rule::default() };
    let skips = Setup { rule: rule(Action::Skip), ..Setup::default() }.start();
    skips.deliver(1, "m1");
    assert_eq!(skips.answers(1).await, ["ack m1"]);
    assert_eq!(skips.state(1).await, None);

    let puts_aside = Setup { rule: rule(Action::Quarantine), ..Setup::default() }.start();
    puts_aside.deliver(1, "m1");
    assert_eq!(puts_aside.answers(1).await, ["ack m1"]);
    assert_eq!(puts_aside.state(1).await.unwrap().2, "operator");
    assert_eq!(skips.handler.calls().len() + puts_aside.handler.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn over_the_lot_s_size_the_latest_due_is_nacked_after_a_second() {
    let bench = Setup { parking: 2, ..Setup::acts(vec![Act::Fail; 3]) }.start();
    for event in 1..=3 {
        bench.deliver(event, "m");
    }
    bench.answers(3).await;

    for event in 1..=3 {
        bench.deliver(event, &format!("early{event}"));
    }
    let surplus = bench.answers(4).await;

    assert!(surplus[3].starts_with("nack early"), "{surplus:?}");
    assert_eq!(bench.metrics.parked_over_cap.get(), 1);
    let all = bench.answers(6).await;
    assert_eq!(all.iter().filter(|answer| answer.starts_with("ack early")).count(), 2);
}
