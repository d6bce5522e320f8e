//! `bellhop healthcheck` beside a server.

use bellhop::{
    metrics::Metrics,
    server::{Check, Health, Server},
};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{bellhop, error_of, run};
use crate::integration::harness::ports;

async fn asked(listen: String, arguments: &'static [&'static str]) -> (i32, String, String) {
    let ask = move || run(bellhop(arguments).env("BELLHOP__SERVER__LISTEN", listen));
    spawn_blocking(ask).await.unwrap()
}

#[tokio::test]
async fn the_answer_of_the_running_process_is_the_exit_code() {
    let server = Server::bind(([0, 0, 0, 0], 0).into()).await.unwrap();
    let listen = server.address().to_string();
    let (health, mut tasks) = (Health::new(), JoinSet::new());
    tasks.spawn(server.run(health.clone(), Metrics::new().unwrap(), CancellationToken::new()));

    assert_eq!(asked(listen.clone(), &["healthcheck", "live"]).await.0, 0);
    assert_eq!(asked(listen.clone(), &["healthcheck", "started"]).await.0, 0);
    let (code, stdout, stderr) = asked(listen.clone(), &["healthcheck"]).await;
    assert_eq!((code, stderr.as_str()), (1, ""));
    assert_eq!(
        stdout,
        "status    not_ready\nstore     failing\nschema    failing\nsource    failing\nbreaker   ok\ndraining  ok\n"
    );

    Check::ALL.into_iter().for_each(|check| health.set(check, true));
    let (code, stdout, _) = asked(listen, &["healthcheck", "-o", "json"]).await;
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stdout).unwrap()["status"], "ready");
}

#[tokio::test]
async fn no_answer_is_exit_6() {
    let listen = format!("127.0.0.1:{}", ports::free());

    let (code, stdout, stderr) = asked(listen.clone(), &["healthcheck", "live", "-o", "json"]).await;

    assert_eq!((code, stdout.as_str()), (6, ""));
    let error = error_of(&stderr);
    assert_eq!((&error["code"], &error["hint"]), (&"unreachable".into(), &"is bellhop running here?".into()));
    assert_eq!(error["message"], format!("nothing answers at http://{listen}/healthz/live"));
}
