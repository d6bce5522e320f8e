//! Handlers that fail, refuse, hang or can not be reached.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_clean_failure_is_nacked_and_an_early_copy_waits_for_its_time() {
    let bench = Setup::acts([Act::Fail]).start();
    bench.deliver(1, "m1");
    assert_eq!(bench.answers(1).await, ["nack m1"]);
    let nacked = Instant::now();

    bench.deliver(1, "m1-early");

    assert_eq!(bench.answers(2).await, ["nack m1", "ack m1-early"]);
    assert!(nacked.elapsed() >= Duration::from_secs(5), "called again after {:?}", nacked.elapsed());
    assert_eq!(bench.calls(2).await, [(1, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_spent_budget_quarantines_and_acks() {
    let bench = Setup::acts([Act::Fail, Act::Fail, Act::Fail]).start();

    for copy in 1..=3 {
        bench.deliver(1, &format!("m{copy}"));
        bench.answers(copy).await;
    }

    assert_eq!(bench.log.answers(), ["nack m1", "nack m2", "ack m3"]);
    assert_eq!(bench.state(1).await, Some((State::Quarantined, 3, "failures_exhausted".into())));
}

#[tokio::test(start_paused = true)]
async fn what_the_handler_refuses_is_quarantined_at_once() {
    let bench = Setup::acts([Act::Refuse]).start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.state(1).await.unwrap().2, "permanent");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_run_again_or_quarantined_by_its_rule() {
    for act in [Act::Hang, Act::TimeOut, Act::Panic, Act::HangUp] {
        let rerun = Setup::acts([act.clone()]).start();
        rerun.deliver(1, "m1");
        assert_eq!(rerun.answers(1).await, ["nack m1"], "{act:?}");
        assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 1)), "{act:?}");

        let strict = Setup::acts([act.clone()]).strict().start();
        strict.deliver(1, "m1");
        assert_eq!(strict.answers(1).await, ["ack m1"], "{act:?}");
        assert_eq!(strict.state(1).await.unwrap().2, "outcome_unknown", "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_event_whose_handler_did_nothing_is_tried_again() {
    let bench = Setup::acts([Act::NotRun]).strict().start();
    bench.deliver(1, "m1");
    bench.answers(1).await;

    bench.deliver(1, "m2");

    assert_eq!(bench.answers(2).await, ["nack m1", "ack m2"]);
    assert_eq!(bench.calls(2).await, [(1, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn target_trouble_costs_no_failure_and_opens_the_breaker() {
    let bench = Setup { concurrency: 1, ..Setup::acts(vec![Act::Unreachable; 6]) }.start();
    for event in 1..=5 {
        bench.deliver(event, "m");
        bench.answers(event as usize).await;
    }
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["breaker"]).get(), 1);
    let opened = Instant::now();

    bench.deliver(6, "probe");
    bench.calls(6).await;
    assert_eq!(opened.elapsed().as_secs(), 1, "the first probe goes after a second");
    bench.deliver(7, "good");
    bench.calls(7).await;

    assert!(opened.elapsed().as_secs() >= 3, "the second probe waits twice as long");
    bench.answers(7).await;
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["breaker"]).get(), 0);
    for event in 1..=6 {
        assert_eq!(bench.state(event).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_there_when_the_timer_fires_counts() {
    let bench = Setup::acts([Act::SucceedAfter(TIMEOUT + Duration::from_millis(20))]).strict().start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.state(1).await.unwrap().0, State::Done);
}

#[tokio::test(start_paused = true)]
async fn noise_never_puts_the_brake_on() {
    let bench = Setup { concurrency: 1, ..Setup::default() }.start();
    for number in 0..100 {
        let raw = RawEvent { data: "noise".into(), message_id: format!("n{number}"), ..RawEvent::default() };
        bench.feed.send(bench.log.delivery(raw)).unwrap();
    }
    let started = Instant::now();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(101).await.len(), 101);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}
