//! The examples do their work once per event, and what the documentation shows works.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use bellhop::{
    event::{Event, EventId},
    handler::{
        Handler, HandlerContext, HandlerError,
        exec::{self, ExecHandler},
        http::{self, HttpHandler},
    },
};
use bytes::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::handlers::{self, cx, server::Server, verdict};

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

fn event(id: &str, body: &'static str) -> Event {
    let mut event = handlers::with_body(Bytes::from_static(body.as_bytes()));
    event.id = EventId::new(id);
    event
}

/// A running example; ends when dropped.
struct Example {
    _process: Child,
    handler: HttpHandler,
}

impl Example {
    async fn start(program: &str, path: &str) -> Self {
        let mut command = Command::new(program);
        command.arg(root().join("examples").join(path)).arg("0").kill_on_drop(true);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = timeout(Duration::from_secs(20), lines.next_line()).await.expect("ready in 20 s").unwrap().unwrap();
        let url = line.strip_prefix("Ready on ").expect("says where it listens").to_owned();
        let config = http::Config { url, ..http::Config::default() };
        Self { _process: process, handler: HttpHandler::new(&config, false).unwrap().reading_replies() }
    }
}

/// What a handler must do to be an example for others; replies are compared as JSON.
async fn keeps_the_contract(handler: &dyn Handler) {
    let message = event("e1", r#"{"type":"MESSAGE","message":{"text":"hé"}}"#);
    let reply = async |event: &Event, epoch| {
        let handled = handler.handle(event, &HandlerContext { epoch, ..cx() }).await.unwrap();
        handled.reply.map(|reply| serde_json::from_slice::<Value>(&reply).unwrap())
    };

    let first = reply(&message, 1).await;
    let again = reply(&message, 2).await;
    let other = reply(&event("e2", r#"{"type":"MESSAGE","message":{"text":"hé!"}}"#), 1).await;
    let refused = handler.handle(&event("e4", "no event"), &cx()).await;

    assert!(first.is_some_and(|first| first["text"].is_string()));
    assert_eq!(reply(&message, 3).await, again);
    assert_ne!(again, other);
    assert!(matches!(refused, Err(HandlerError::Permanent { .. })), "{refused:?}");
}

#[tokio::test]
async fn the_python_example_keeps_the_contract() {
    let example = Example::start("python3", "handler_python/handler.py").await;

    keeps_the_contract(&example.handler).await;

    let addon = event("e5", r#"{"chat":{"messagePayload":{"message":{"text":"x"}}}}"#);
    assert_eq!(verdict(&example.handler.handle(&addon, &cx()).await), ("done", r#"{"text": "Event 4 said: x"}"#));
    let silent = event("e6", r#"{"type":"ADDED_TO_SPACE"}"#);
    assert_eq!(verdict(&example.handler.handle(&silent, &cx()).await), ("done", ""));
}

#[tokio::test]
async fn the_node_example_keeps_the_contract() {
    let example = Example::start("node", "handler_node/handler.mjs").await;

    keeps_the_contract(&example.handler).await;

    let addon = event("e5", r#"{"chat":{"messagePayload":{"message":{"text":"x"}}}}"#);
    assert_eq!(verdict(&example.handler.handle(&addon, &cx()).await), ("done", r#"{"text":"Event 4 said: x"}"#));
    let silent = event("e6", r#"{"type":"ADDED_TO_SPACE"}"#);
    assert_eq!(verdict(&example.handler.handle(&silent, &cx()).await), ("done", ""));
}

#[tokio::test]
async fn the_shell_example_keeps_the_contract() {
    let state = TempDir::new().unwrap();
    let script = root().join("examples/handler_shell/handler.sh");
    let state_dir = format!("STATE_DIR={}", state.path().display());
    let command = ["env", &state_dir, script.to_str().unwrap()].map(str::to_owned).to_vec();
    let handler = ExecHandler::new(&exec::Config { command, ..exec::Config::default() }, false).unwrap();

    keeps_the_contract(&handler.reading_replies()).await;
}

/// The first block of this language in the documentation that holds `part`.
fn snippet(language: &str, part: &str) -> String {
    let text = fs::read_to_string(root().join("docs/HANDLERS.md")).unwrap();
    let start = format!("```{language}\n");
    let mut blocks = text.split(&start).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(part)).expect("the documentation shows it").to_owned()
}

/// Runs a documented check of signatures on a request as bellhop signs it, as it is and forged; its answers.
async fn check_signatures(program: &[&str], code: &str) -> String {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let config = http::Config { url: server.url(), signing_secret: secret.into(), ..http::Config::default() };
    HttpHandler::new(&config, false).unwrap().handle(&handlers::event(), &cx()).await.unwrap();
    let request = &server.requests()[0];
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: Vec<_> = names.iter().map(|name| (*name, request.header(name).unwrap().to_owned())).collect();
    let input = json!({
        "secret": secret,
        "headers": headers.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "body": String::from_utf8(request.body.clone()).unwrap(),
    });
    let output = Command::new(program[0]).args(&program[1..]).arg(code).env("INPUT", input.to_string()).output().await;
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_documented_check_of_signatures_works_in_python() {
    let code = snippet("python", "is_from_bellhop")
        + r#"
import json, os
i = json.loads(os.environ["INPUT"])
s, h, b = i["secret"], i["headers"], i["body"].encode()
late = {**h, "webhook-timestamp": str(int(h["webhook-timestamp"]) - 1000)}
print([is_from_bellhop(s, h, b), is_from_bellhop(s, h, b + b" "), is_from_bellhop(s[:-4] + "AAAA", h, b),
       is_from_bellhop(s, late, b), is_from_bellhop(s, {**h, "webhook-signature": "v1,x " + h["webhook-signature"]}, b)])
"#;

    assert_eq!(check_signatures(&["python3", "-c"], &code).await, "[True, False, False, False, True]\n");
}

#[tokio::test]
async fn the_documented_check_of_signatures_works_in_node() {
    let code = snippet("js", "isFromBellhop")
        + r#"
const { secret: s, headers: h, body } = JSON.parse(process.env.INPUT);
const b = Buffer.from(body);
const late = { ...h, "webhook-timestamp": String(Number(h["webhook-timestamp"]) - 1000) };
console.log(JSON.stringify([isFromBellhop(s, h, b), isFromBellhop(s, h, body + " "), isFromBellhop(s.slice(0, -4) + "AAAA", h, b),
  isFromBellhop(s, late, b), isFromBellhop(s, { ...h, "webhook-signature": "v1,x " + h["webhook-signature"] }, b)]));
"#;

    let answers = check_signatures(&["node", "--input-type=module", "-e"], &code).await;

    assert_eq!(answers, "[true,false,false,false,true]\n");
}
