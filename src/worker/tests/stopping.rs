//! Drains and aborts.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_settle_that_is_never_confirmed_is_never_acked() {
    let bench = Setup::default().start();
    for _ in 0..10_000 {
        bench.store.push(Method::Complete, Fault::BeforeWrite);
    }
    bench.deliver(1, "m1");
    bench.calls(1).await;

    let (drained, answers) = bench.stop().await;

    assert_eq!(drained, Drained::Abandoned);
    assert_eq!(answers, ["nack m1"]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_what_runs_and_hands_back_what_has_not_begun() {
    let bench = Setup { concurrency: 1, ..Setup::acts([Act::SucceedAfter(Duration::from_secs(20))]) }.start();
    bench.deliver(1, "running");
    bench.calls(1).await;
    bench.deliver(2, "waiting");
    time::sleep(Duration::from_millis(10)).await;

    let (drained, answers) = bench.stop().await;

    assert_eq!(drained, Drained::Clean);
    assert_eq!(answers, ["nack waiting", "ack running"]);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_drain_rerun_is_handed_back_and_strict_quarantined() {
    let rerun = Setup::acts([Act::Hang]).start();
    rerun.deliver(1, "m1");
    rerun.calls(1).await;
    rerun.shutdown.abort();
    assert_eq!(rerun.answers(1).await, ["nack m1"]);
    assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
    assert_eq!(rerun.stop().await.0, Drained::Abandoned);

    let strict = Setup::acts([Act::Hang]).strict().start();
    strict.deliver(1, "m1");
    strict.calls(1).await;
    strict.shutdown.abort();
    assert_eq!(strict.answers(1).await, ["ack m1"]);
    assert_eq!(strict.state(1).await.unwrap().2, "outcome_unknown");
}

#[tokio::test(start_paused = true)]
async fn a_drain_nacks_parked_copies_at_once() {
    let bench = Setup::acts([Act::Fail]).start();
    bench.deliver(1, "m1");
    bench.answers(1).await;
    bench.deliver(1, "parked");
    time::sleep(Duration::from_millis(100)).await;

    let stopped = Instant::now();
    let (drained, answers) = bench.stop().await;

    assert_eq!((drained, answers), (Drained::Clean, vec!["nack m1".into(), "nack parked".into()]));
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}
