//! SIGTERM: in the middle of work, in the middle of the start, and twice.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::{
    super::harness::{Bellhop, event::chat_message, handler::OK},
    Behaviour, Broker, World,
};

pub(super) async fn drains(broker: Broker) {
    const RUNNING: usize = 8;
    let world = World::new(broker, |_| Behaviour::After(Duration::from_secs(3), 200)).await;
    let mut bellhop = Bellhop::start(&world.setup(1).set("worker.concurrency", RUNNING)).await;
    // Twice as many as can run: the rest must be given back untouched.
    let events: Vec<_> = (0..2 * RUNNING).map(|n| chat_message(&format!("event {n}"))).collect();
    world.subscription.publish(&events).await;
    world.called(RUNNING).await;

    bellhop.terminate();

    assert_eq!(bellhop.exit_code(Duration::from_secs(15)).await, 0);
    assert_eq!((world.handler.count(), world.handler.unanswered()), (RUNNING, 0));
    assert_eq!(world.ledger().await.done, RUNNING);
    // What ran is acked; what did not run comes again, to somebody else.
    world.handler.now(|_| OK);
    let mut next = Bellhop::start(&world.setup(1)).await;
    let ledger = world.settled(2 * RUNNING).await;
    next.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.failures, ledger.lost), (0, 0));
    assert_eq!(world.handler.count(), 2 * RUNNING);
}

pub(super) async fn during_start(broker: Broker) {
    /// `kill -TERM` reached it before it could say what it does then: just as gone.
    const BY_SIGNAL: i32 = 128 + 15;
    let world = World::new(broker, |_| OK).await;
    let unreachable = world.setup(1).postgres("postgres://nobody@127.0.0.1:1/none", 1);
    for setup in [world.setup(1), unreachable] {
        for delay in [0, 2, 5, 10, 20, 50, 100, 200, 350, 500].map(Duration::from_millis) {
            let mut bellhop = Bellhop::spawn(&setup);
            // The moment of the signal is what is tested.
            time::sleep(delay).await;

            let asked = Instant::now();
            bellhop.terminate();

            let code = bellhop.exit_code(Duration::from_secs(10)).await;
            assert!(code == 0 || code == BY_SIGNAL, "exit code {code} after SIGTERM at {delay:?}");
            assert!(asked.elapsed() < Duration::from_secs(3), "{:?} after SIGTERM at {delay:?}", asked.elapsed());
        }
    }
}

pub(super) async fn second_signal(broker: Broker) {
    let world = World::new(broker, |_| Behaviour::Hang).await;
    // The cut handler may run until its deadline, so long must the next attempt wait.
    let setup = world.setup(1).set("handler.timeout", "8s");
    let mut bellhop = Bellhop::start(&setup).await;
    world.subscription.publish(&[chat_message("hangs")]).await;
    world.called(1).await;

    bellhop.terminate();
    bellhop.draining().await;
    assert!(bellhop.runs());
    bellhop.terminate();

    assert_eq!(bellhop.exit_code(Duration::from_secs(5)).await, 130);
    // Nobody could see the process that was aborted count it: the next one does.
    world.handler.now(|_| OK);
    let next = Bellhop::start(&setup).await;
    let ledger = world.settled(1).await;
    assert_eq!((ledger.done, ledger.failures, ledger.lost), (1, 0, 0));
    let cut: f64 = next.metrics().await.sum("bellhop_drain_aborted_total", &[]);
    assert!((cut - 1.0).abs() < f64::EPSILON, "{cut} attempts counted");
}
