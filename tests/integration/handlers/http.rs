//! What an answer means, row by row.

use std::time::{Duration, Instant};

use bellhop::handler::{
    Handled, Handler, HandlerContext, HandlerError,
    http::{Config, HttpHandler},
};

use super::{
    cx, event,
    server::{Server, Step},
    strict, verdict, within,
};

const OK_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";

fn handler(server: &Server) -> HttpHandler {
    HttpHandler::new(&Config { url: server.url(), ..Config::default() }, false).unwrap()
}

fn send(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

/// The verdict on an answer, which must be the same for both kinds of events, and must take one request.
async fn of(steps: &[Step]) -> Result<Handled, HandlerError> {
    let server = Server::start(steps).await;
    let handler = handler(&server);
    let kept = handler.handle(&event(), &cx()).await;
    let new = handler.handle(&event(), &strict()).await;
    assert_eq!(verdict(&kept), verdict(&new), "{steps:?}");
    assert_eq!(server.requests().len(), 2, "{steps:?}");
    kept
}

async fn reply(steps: &[Step], cx: &HandlerContext) -> Result<Handled, HandlerError> {
    let server = Server::start(steps).await;
    handler(&server).reading_replies().handle(&event(), cx).await
}

#[tokio::test]
async fn each_status_means_what_the_table_says() {
    for (expected, statuses) in [
        ("done", &[200, 201, 202, 204, 299][..]),
        ("not run", &[409, 425, 429]),
        ("failed", &[408, 500, 502, 503, 504, 505, 507, 511, 599]),
        ("permanent", &[400, 410, 413, 415, 422, 501]),
        ("target trouble", &[300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 405, 407, 421]),
    ] {
        for status in statuses {
            let head = format!("HTTP/1.1 {status} X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
            let result = of(&[send(head)]).await;

            assert_eq!(verdict(&result), (expected, ""), "{status}");
        }
    }
}

#[tokio::test]
async fn the_answer_says_when_to_come_back() {
    let after = async |lines: &str| match of(&[send(format!("HTTP/1.1 {lines}\r\ncontent-length: 0\r\n\r\n"))]).await {
        Err(HandlerError::NotRun { after, .. }) => after.map(|after| after.as_secs()),
        other => panic!("{other:?}"),
    };

    assert_eq!(after("503 X\r\nretry-after: 7").await, Some(7));
    assert_eq!(after("429 X\r\nretry-after: 8").await, Some(8));
    assert_eq!(after("429 X").await, None);
    let dates = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:50:37 GMT";
    assert_eq!(after(&format!("503 X\r\n{dates}")).await, Some(60));
    assert_eq!(after("500 X\r\nbellhop-outcome: not-run").await, None);
}

#[tokio::test]
async fn a_handler_can_refuse_an_event_under_any_status_and_say_why() {
    let result = of(&[send("HTTP/1.1 500 X\r\nbellhop-outcome: permanent\r\ncontent-length: 3\r\n\r\nwhy")]).await;

    assert_eq!(verdict(&result), ("permanent", "why"));
}

#[tokio::test]
async fn the_first_2_kb_of_what_a_handler_says_are_kept() {
    let body = "x".repeat(5_000);
    for (status, expected) in [(400, "permanent"), (500, "failed"), (409, "not run"), (404, "target trouble")] {
        let result = of(&[send(format!("HTTP/1.1 {status} X\r\ncontent-length: 5000\r\n\r\n{body}"))]).await;

        assert_eq!(verdict(&result), (expected, &body[..2_048]));
    }
}

#[tokio::test]
async fn a_handler_that_never_ends_its_excuse_is_not_waited_for() {
    let started = Instant::now();

    let result = of(&[send("HTTP/1.1 400 X\r\ncontent-length: 100\r\n\r\nwhy"), Step::Hold]).await;

    assert_eq!(verdict(&result), ("permanent", "why"));
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn after_sending_every_error_leaves_the_outcome_unknown() {
    for steps in [
        &[Step::Close][..],
        &[Step::Reset],
        &[send("HTTP/1.1 200"), Step::Close],
        &[send("HTTP/1.1 200 OK\r\ncontent-le"), Step::Reset],
        &[send("220 mail.example ESMTP\r\n"), Step::Close],
        &[send("<html>\r\n\r\n"), Step::Close],
        &[send("HTTP/1.1 2000 OK\r\n\r\n"), Step::Close],
        &[send("HTTP/1.1 200 OK\r\nbad header\r\n\r\n"), Step::Close],
        &[send("HTTP/2.0 200 OK\r\n\r\n"), Step::Close],
        &[send("HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"), Step::Close],
        &[send("HTTP/1.1 700 X\r\ncontent-length: 0\r\n\r\n")],
    ] {
        let result = of(steps).await;

        assert!(matches!(result, Err(HandlerError::Unknown { over: false, .. })), "{steps:?}: {result:?}");
    }
}

#[tokio::test]
async fn an_interim_answer_is_no_answer() {
    let result = of(&[send("HTTP/1.1 102 X\r\n\r\nHTTP/1.1 422 X\r\ncontent-length: 0\r\n\r\n")]).await;

    assert_eq!(verdict(&result), ("permanent", ""));
}

#[tokio::test]
async fn a_2xx_head_is_done_whatever_happens_to_the_body() {
    for steps in [
        &[send(OK_HEAD), Step::Hold][..],
        &[send(OK_HEAD), send("half"), Step::Close],
        &[send(OK_HEAD), Step::Reset],
        &[send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), Step::Close],
        &[send("HTTP/1.1 200 OK\r\n\r\n"), Step::SendForEver(vec![b'x'; 65_536])],
    ] {
        let result = of(steps).await;

        assert_eq!(result.unwrap(), Handled::default(), "{steps:?}");
    }
}

#[tokio::test]
async fn a_json_body_is_the_reply() {
    for head in ["HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
        let result = reply(&[send(head), send(r#"{"text":"oui"}"#), Step::Close], &cx()).await;

        assert_eq!(verdict(&result), ("done", r#"{"text":"oui"}"#));
    }
}

#[tokio::test]
async fn an_empty_body_is_no_reply() {
    for answer in [
        "HTTP/1.1 204 X\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\r\n",
    ] {
        assert_eq!(reply(&[send(answer)], &cx()).await.unwrap(), Handled::default());
    }
}

#[tokio::test]
async fn a_body_that_is_cut_too_long_or_not_json_is_done_with_an_unreadable_reply() {
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    for steps in [
        &[send(OK_HEAD), send("{\"text\":"), Step::Close][..],
        &[send(OK_HEAD), Step::Reset],
        &[send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), Step::Close],
        &[send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{long}", long.len()))],
        &[send("HTTP/1.1 200 OK\r\n\r\n"), Step::SendForEver(vec![b' '; 65_536])],
        &[send("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")],
        &[send(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\"\xff\"")],
    ] {
        assert_eq!(verdict(&reply(steps, &cx()).await), ("done, unreadable", ""), "{steps:?}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_in_5_s_is_an_unreadable_reply() {
    let started = Instant::now();

    let result = reply(&[send(OK_HEAD), send("{"), Step::Hold], &cx()).await;

    assert_eq!(verdict(&result), ("done, unreadable", ""));
    assert!((5_000..8_000).contains(&started.elapsed().as_millis()));
}

#[tokio::test]
async fn the_status_line_is_told_before_the_attempt_is_cut_however_slow_the_body() {
    let timeout = Duration::from_millis(600);
    for (head, expected) in
        [(OK_HEAD, "done, unreadable"), ("HTTP/1.1 400 X\r\ncontent-length: 9\r\n\r\n", "permanent")]
    {
        let cx = within(timeout);
        let result = tokio::time::timeout(timeout, reply(&[send(head), Step::Hold], &cx)).await.expect("in time");

        assert_eq!(verdict(&result), (expected, ""));
    }
}
