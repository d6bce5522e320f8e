//! Every sample event, as of now, through the whole of it to the Python example.

use std::{collections::HashSet, path::Path, process::Command, time::Duration};

use serde_json::Value;

use super::{
    super::harness::{Bellhop, event::sample_files, eventually, handler::OK, process::Process},
    Broker, World,
};

pub(super) async fn through_the_python_handler(broker: Broker) {
    // The world's own handler is not used here.
    let world = World::new(broker, |_| OK).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.arg(root.join("examples/handler_python/handler.py")).arg("0");
    let example = Process::spawn("the Python example", &mut command, &folder.path().join("example.log"));
    let url = eventually("the example to listen", Duration::from_secs(20), async || {
        example.log().lines().find_map(|line| line.strip_prefix("Ready on ").map(str::to_owned))
    })
    .await;
    let setup = world
        .setup(1)
        .handler(&url)
        .set("events.skip_widget_updated", false)
        .set("events.skip_app_home", false)
        .set("events.skip_bot_messages", false);
    let mut bellhop = Bellhop::start(&setup).await;

    let published = trigger_all(&world).await;

    let ledger = world.settled(published.len()).await;
    bellhop.acked(sample_files().len()).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!(ledger.quarantined, ledger.reason("undecodable"), "{ledger:?}");
    assert_eq!((ledger.done + ledger.quarantined, ledger.failures), (published.len(), 0), "{ledger:?}");
    assert!(ledger.done > 50, "most samples are events: {ledger:?}");
}

/// Publishes each file once, re-stamped, and gives the ids of the events they are.
async fn trigger_all(world: &World) -> HashSet<String> {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_bellhop"))
        .args(["trigger", "--output", "json", "--topic", &world.subscription.topic])
        .args(sample_files())
        .env("PUBSUB_EMULATOR_HOST", world.broker.address())
        .output()
        .await
        .expect("bellhop runs");
    assert!(output.status.success(), "trigger: {}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON on stdout");
    let messages = answer["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), sample_files().len());
    messages.iter().map(|message| message["event_id"].as_str().expect("an id").to_owned()).collect()
}
