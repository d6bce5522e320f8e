//! How long a start takes.

use std::time::{Duration, Instant};

use super::{
    super::harness::{Bellhop, handler::OK},
    Broker, World,
};

pub(super) async fn to_ready(broker: Broker) {
    let world = World::new(broker, |_| OK).await;
    let setup = world.setup(1);
    Bellhop::start(&setup).await.drain().await;

    let began = Instant::now();
    let mut bellhop = Bellhop::start(&setup).await;
    let took = began.elapsed();

    report(&format!("start to ready: {took:?}"));
    bellhop.drain().await;
    // Under 500 ms alone on a machine (`make measure`); here other tests keep it busy.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[expect(clippy::print_stdout, reason = "a measurement, shown by the test runner on request")]
fn report(text: &str) {
    println!("{text}");
}
