//! A store that answers late, in part, or not at all.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_claim_is_asked_for_again_and_the_handler_runs_once() {
    let bench = Setup { faults: |store| store.on(Method::Enter, Fault::AfterWrite), ..Setup::default() }.start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_settle_is_repeated_and_acked_only_when_confirmed() {
    for fault in [Fault::BeforeWrite, Fault::AfterWrite, Fault::Contention] {
        let bench = Setup::default().start();
        for _ in 0..20 {
            bench.store.push(Method::Complete, fault);
        }
        bench.deliver(1, "m1");
        bench.calls(1).await;

        time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.log.answers(), [] as [&str; 0], "{fault:?}");

        assert_eq!(bench.answers(1).await, ["ack m1"], "{fault:?}");
        assert_eq!(bench.handler.calls().len(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_event_is_not_run_before_its_start_is_confirmed() {
    let bench =
        Setup { faults: |store| store.on(Method::Swap, Fault::AfterWrite), ..Setup::default() }.strict().start();
    for _ in 0..60 {
        bench.store.push(Method::Swap, Fault::BeforeWrite);
    }

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["nack m1"], "handed back when the lease was over");
    assert_eq!(bench.handler.calls().len(), 0);
    assert_eq!(bench.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_the_store_refuses_holds_that_event_and_lets_others_flow() {
    let bench = Setup { faults: |store| store.on(Method::Enter, Fault::Refused), ..Setup::default() }.start();
    bench.deliver(1, "refused");
    time::sleep(Duration::from_secs(1)).await;

    bench.deliver(2, "m2");

    assert_eq!(bench.answers(1).await, ["ack m2"]);
    assert_eq!(bench.answers(2).await, ["ack m2", "ack refused"], "tried again after the hold");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_pauses_intake_and_costs_nothing() {
    let bench = Setup::default().start();
    for _ in 0..10 {
        bench.store.push(Method::Enter, Fault::BeforeWrite);
    }

    for event in 1..=3 {
        bench.deliver(event, &format!("m{event}"));
    }
    bench.answers(3).await;

    assert_eq!(bench.handler.calls().len(), 3);
    for event in 1..=3 {
        assert_eq!(bench.state(event).await.map(|row| (row.0, row.1)), Some((State::Done, 0)));
    }
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["store"]).get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rerun_handler_whose_lease_is_lost_is_cut_and_a_strict_one_is_not() {
    let long = Duration::from_secs(300);
    let rule = || Rule { timeout: Some(Duration::from_secs(600)), ..Rule::default() };
    let outage = |store: FaultStore| (0..40).fold(store, |store, _| store.on(Method::Renew, Fault::BeforeWrite));

    let rerun = Setup { rule: rule(), faults: outage, ..Setup::acts([Act::SucceedAfter(long)]) }.start();
    rerun.deliver(1, "m1");
    let called = Instant::now();
    assert_eq!(rerun.answers(1).await, ["nack m1"]);
    assert!(called.elapsed() <= LEASE, "cut after {:?}, before anybody may take over", called.elapsed());
    assert_eq!(rerun.handler.cut(), 1);
    assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));

    let strict = Setup { rule: rule(), faults: outage, ..Setup::acts([Act::SucceedAfter(long)]) }.strict().start();
    strict.deliver(1, "m1");
    assert_eq!(strict.answers(1).await, ["ack m1"]);
    assert_eq!(strict.handler.cut(), 0);
    assert_eq!(strict.state(1).await.unwrap().0, State::Done);
}

#[tokio::test(start_paused = true)]
async fn leases_of_long_handlers_are_renewed() {
    let rule = Rule { timeout: Some(Duration::from_secs(900)), ..Rule::default() };
    let bench = Setup { rule, ..Setup::acts([Act::SucceedAfter(Duration::from_secs(600))]) }.start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
}
