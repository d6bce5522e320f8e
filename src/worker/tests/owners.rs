//! Owners that die, and rows that are gone.

use super::*;
use crate::claim::Key;

/// Events of a process that died with them.
async fn left_behind(events: std::ops::RangeInclusive<u32>, strict: bool) -> Bench {
    let setup = Setup { concurrency: 100, ..Setup::acts(vec![Act::Hang; events.clone().count()]) };
    let dies = if strict { setup.strict() } else { setup }.start();
    for event in events.clone() {
        dies.deliver(event, "m");
    }
    dies.calls(events.count()).await;
    dies.store.set_down(true);
    time::sleep(LEASE * 2).await;
    dies
}

#[tokio::test(start_paused = true)]
async fn what_a_claim_finds_dead_does_not_put_the_brake_on() {
    let dies = left_behind(1..=70, true).await;
    let lives = Setup::default().start_on(dies.memory.clone(), Arc::clone(&dies.clock));
    for event in 1..=70 {
        lives.deliver(event, "lost");
    }
    lives.answers(70).await;
    let began = Instant::now();

    lives.deliver(100, "fresh");

    assert_eq!(lives.answers(71).await.last().map(String::as_str), Some("ack fresh"));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(lives.metrics.quarantined.with_label_values(&["owner_lost"]).get(), 70);
}

#[tokio::test(start_paused = true)]
async fn suspects_run_one_after_the_other_beside_the_others() {
    let dies = left_behind(1..=3, false).await;
    let acts = vec![Act::SucceedAfter(Duration::from_secs(2)); 4];
    let lives = Setup::acts(acts).start_on(dies.memory.clone(), Arc::clone(&dies.clock));
    let began = Instant::now();

    for event in 1..=3 {
        lives.deliver(event, &format!("lost{event}"));
    }
    lives.deliver(9, "fresh");

    let answers = lives.answers(4).await;
    assert!(answers[..2].contains(&"ack fresh".to_owned()), "{answers:?}");
    let took = began.elapsed();
    assert!((Duration::from_secs(6)..Duration::from_secs(7)).contains(&took), "{took:?}");
    assert_eq!(lives.metrics.events_claimed.with_label_values(&["MESSAGE", "takeover"]).get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_strict_event_whose_row_is_gone_is_not_called_a_second_time() {
    for act in [Act::HangUpAfter(Duration::from_secs(5)), Act::SucceedAfter(Duration::from_secs(5))] {
        let bench = Setup::acts([act.clone()]).strict().start();
        bench.deliver(1, "m1");
        bench.calls(1).await;

        bench.lose(1);
        assert_eq!(bench.answers(1).await, ["ack m1"], "{act:?}");
        bench.deliver(1, "copy");
        assert_eq!(bench.answers(2).await, ["ack m1", "ack copy"], "{act:?}");

        assert_eq!(bench.handler.calls().len(), 1, "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_gone_is_back_with_the_next_renewal() {
    let rule = Rule { timeout: Some(Duration::from_secs(300)), ..Rule::default() };
    let bench = Setup { rule, ..Setup::acts([Act::SucceedAfter(Duration::from_secs(200))]) }.start();
    bench.deliver(1, "m1");
    bench.calls(1).await;
    bench.lose(1);
    time::sleep(LEASE / 4 + Duration::from_secs(1)).await;
    assert_eq!(bench.state(1).await.unwrap().0, State::Running);

    let other = Setup::default().start_on(bench.memory.clone(), Arc::clone(&bench.clock));
    other.deliver(1, "copy");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(other.answers(1).await, ["ack copy"]);
    assert_eq!(other.handler.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_outcome_cannot_be_written() {
    let bench = Setup::default().start();
    for _ in 0..100 {
        bench.store.push(Method::Complete, Fault::Contention);
    }
    bench.deliver(1, "m1");
    bench.calls(1).await;
    time::sleep(LEASE * 2).await;

    let other = Setup::default().start_on(bench.memory.clone(), Arc::clone(&bench.clock));
    other.deliver(1, "copy");

    bench.answers(1).await;
    assert_eq!(other.answers(1).await, ["ack copy"]);
    assert_eq!(other.handler.calls().len(), 0, "the owner lives");
}

impl Bench {
    /// The row of event `number` is gone, as after a failover to a server that lagged.
    fn lose(&self, number: u32) {
        let event = decode(&Arc::new(self.raw(number, "m")));
        self.memory.lose(Key::derive(SCOPE, &event));
    }
}
