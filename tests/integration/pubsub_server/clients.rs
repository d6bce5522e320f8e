//! Google's clients for Python and Node, each in its own process. `tests/integration/clients/setup.sh` installs them.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use tokio::{process::Command, time::timeout};

use super::{Counts, PATIENCE, PubsubServer};

#[tokio::test]
async fn googles_python_client_publishes_pulls_acks_and_nacks() {
    let server = PubsubServer::start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let python = installed("python/bin/python");

    let seen = run(&server, Command::new(python).arg(script("pubsub_python.py"))).await;

    check(&server, "python", &seen).await;
    let lists = |kind: &str| ["exactly-once", "pulled", "streamed"].map(|id| format!("projects/python/{kind}/{id}"));
    assert_eq!(seen["lists"]["topics"], Value::from(lists("topics").to_vec()));
    assert_eq!(seen["lists"]["subscriptions"], Value::from(lists("subscriptions").to_vec()));
    server.stop().await;
}

#[tokio::test]
async fn googles_node_client_publishes_pulls_acks_and_nacks() {
    let server = PubsubServer::start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let modules = installed("node/node_modules");

    let mut node = Command::new("node");
    let seen = run(&server, node.arg(script("pubsub_node/main.js")).env("NODE_PATH", modules)).await;

    check(&server, "node", &seen).await;
    server.stop().await;
}

/// What both clients must have seen, and what they must have left behind.
async fn check(server: &PubsubServer, project: &str, seen: &Value) {
    assert_eq!(seen["streamed"]["distinct"], 50, "{seen}");
    assert_eq!(seen["streamed"]["intact"], true, "{seen}");
    assert_eq!(seen["streamed"]["twice_is_the_nacked_one"], true, "{seen}");
    assert_eq!(seen["exactly_once"]["confirmed"], 50, "{seen}");
    let pulled = &seen["pulled"];
    assert_eq!((&pulled["ack_ids"], &pulled["message_ids"]), (&3.into(), &1.into()), "{seen}");
    let seconds = |field: &str| pulled[field].as_f64().unwrap();
    assert!((9.0..20.0).contains(&seconds("expired_after")), "{seen}");
    assert!(seconds("nacked_after") < 5.0, "{seen}");
    // The process is gone, but the server may not have noticed yet.
    let over = async {
        for id in ["streamed", "exactly-once", "pulled"] {
            let subscription = format!("projects/{project}/subscriptions/{id}");
            while server.admin().counts(&subscription).unwrap() != Counts::default() {
                tokio::task::yield_now().await;
            }
        }
    };
    timeout(PATIENCE, over).await.expect("nothing left unacked, no stream open");
}

/// Runs a client to its end; answers the JSON it printed.
async fn run(server: &PubsubServer, client: &mut Command) -> Value {
    client.env("PUBSUB_EMULATOR_HOST", server.address().to_string()).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(3 * PATIENCE, client.output()).await.expect("an end in time").expect("the client starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/clients").join(name)
}

/// Something `setup.sh` puts there.
fn installed(path: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
    let path = target.join("clients").join(path);
    assert!(path.exists(), "{} is missing: run tests/integration/clients/setup.sh", path.display());
    path
}
