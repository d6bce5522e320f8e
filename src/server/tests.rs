//! The endpoints over real connections.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::*;

/// A running server, and the way to stop it.
struct Running {
    url: String,
    health: Health,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn running() -> Running {
    let server = Server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}", server.address());
    let (health, stop) = (Health::new(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(server.run(health.clone(), Metrics::new().unwrap(), stop.clone()));
    Running { url, health, stop, tasks }
}

async fn get(url: &str, path: &str) -> (StatusCode, Value) {
    let answer = Client::new().get(format!("{url}{path}")).send().await.unwrap();
    let status = answer.status();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn the_three_questions_are_answered_one_by_one() {
    let Running { url, health, .. } = &running().await;

    assert_eq!(get(url, "/healthz/live").await.0, StatusCode::OK);
    assert_eq!(get(url, "/healthz/started").await.0, StatusCode::OK);
    assert_eq!(get(url, "/healthz/ready").await.0, StatusCode::SERVICE_UNAVAILABLE);

    for check in Check::ALL {
        health.set(check, true);
    }
    assert_eq!(get(url, "/healthz/ready").await.0, StatusCode::OK);

    health.task_died();
    let dead = json!({"status": "not_live", "checks": {"event_loop": "ok", "tasks": "failing"}});
    assert_eq!(get(url, "/healthz/live").await, (StatusCode::SERVICE_UNAVAILABLE, dead));
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let Running { url, .. } = &running().await;

    let answer = Client::new().get(format!("{url}/metrics")).send().await.unwrap();

    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4");
    assert!(answer.text().await.unwrap().contains("\nbellhop_shutting_down 0\n"));
}

#[tokio::test]
async fn anything_else_is_a_json_error_and_names_no_software() {
    let Running { url, .. } = &running().await;
    let client = Client::new();

    let missing = json!({"error": {"code": "not_found", "message": "no such endpoint"}});
    for path in ["/", "/healthz", "/healthz/ready/x", "/metrics/"] {
        assert_eq!(get(url, path).await, (StatusCode::NOT_FOUND, missing.clone()), "{path}");
    }
    let posted = client.post(format!("{url}/metrics")).send().await.unwrap();
    assert_eq!(
        (posted.status(), posted.headers()["allow"].to_str().unwrap()),
        (StatusCode::METHOD_NOT_ALLOWED, "GET,HEAD")
    );
    assert_eq!(
        serde_json::from_str::<Value>(&posted.text().await.unwrap()).unwrap()["error"]["code"],
        "method_not_allowed"
    );
    let head = client.request(Method::HEAD, format!("{url}/healthz/live")).send().await.unwrap();
    assert_eq!((head.status(), head.headers().contains_key("server")), (StatusCode::OK, false));
}

#[tokio::test]
async fn a_connection_that_never_reads_does_not_hold_the_stop_up() {
    let mut running = running().await;
    let mut deaf = TcpStream::connect(running.url.trim_start_matches("http://")).await.unwrap();
    // Until the answers fill both buffers and the server waits to write.
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
    while timeout(Duration::from_millis(200), deaf.write_all(&request)).await.is_ok() {}
    let stopped_at = Instant::now();

    running.stop.cancel();
    let ended = timeout(Duration::from_secs(10), running.tasks.join_next()).await;

    assert!(matches!(ended, Ok(Some(Ok(())))), "{ended:?}");
    let took = stopped_at.elapsed();
    assert!((FAREWELL..FAREWELL * 3).contains(&took), "it was let go after {took:?}");
}

#[tokio::test]
async fn an_idle_server_stops_at_once() {
    let mut running = running().await;
    assert_eq!(get(&running.url, "/healthz/live").await.0, StatusCode::OK);

    running.stop.cancel();

    let ended = timeout(FAREWELL / 2, running.tasks.join_next()).await;
    assert!(matches!(ended, Ok(Some(Ok(())))), "{ended:?}");
}

#[tokio::test]
async fn a_taken_port_is_named_with_its_key() {
    let first = Server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();

    let error = Server::bind(first.address()).await.unwrap_err();

    let expected = format!(
        "can not listen on {} (server.listen): another process uses the port; stop it or choose another one",
        first.address()
    );
    assert_eq!(error.to_string(), expected);
}
