//! How a handler is called: connections, what is sent, and when certainly nothing was done.

use std::{env, process::Stdio, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bellhop::{
    event::Event,
    handler::{
        Handler, HandlerError,
        http::{Auth, BuildError, Config, HttpHandler},
    },
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::{net::TcpListener, process::Command, time::timeout};

use super::{
    BODY, cx, event,
    server::{Server, Step},
    strict, verdict, with_body,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn config(server: &Server) -> Config {
    Config { url: server.url(), ..Config::default() }
}

async fn call(config: &Config, event: &Event) -> &'static str {
    verdict(&HttpHandler::new(config, false).unwrap().handle(event, &cx()).await).0
}

#[tokio::test]
async fn an_attempt_that_made_no_connection_was_certainly_not_run() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = Server::answering(OK).await;
    for url in [
        format!("http://{closed}/"),
        "http://bot.invalid/".to_owned(),
        format!("https://127.0.0.1:{}/", plain.port),
        format!("https://{}/", silent.local_addr().unwrap()),
    ] {
        let connect_timeout = Duration::from_millis(500);
        let config = Config { url: url.clone(), unauthenticated: true, connect_timeout, ..Config::default() };
        let handler = HttpHandler::new(&config, false).unwrap();
        for cx in [cx(), strict()] {
            let result = handler.handle(&event(), &cx).await;

            assert!(matches!(result, Err(HandlerError::TargetTrouble { .. })), "{url}: {result:?}");
        }
    }
}

#[tokio::test]
async fn the_event_goes_out_byte_for_byte_with_its_length() {
    let server = Server::answering(OK).await;
    let body = format!("{{ \"b\": 1.0,  \"a\": \"{}\" }}", "é".repeat(500_000));

    assert_eq!(call(&config(&server), &with_body(body.clone())).await, "done");

    let [request] = &server.requests()[..] else { panic!() };
    assert!(request.head.starts_with("POST /events?x=1 HTTP/1.1\r\n"));
    assert!(request.body == body.as_bytes());
    assert_eq!(request.header("content-length"), Some(body.len().to_string().as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("idempotency-key"), Some("bh1-ix-0123456789abcdef0123456789abcdef"));
    for absent in ["expect", "transfer-encoding", "authorization", "webhook-signature", "accept-encoding", "cookie"] {
        assert_eq!(request.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn credentials_are_left_out_unless_they_are_to_be_passed_on() {
    let server = Server::answering(OK).await;
    let body =
        r#"{"z":1,"configCompleteRedirectUrl":"https://x/secret","a":{"authorizationEventObject":{"t":"secret"}}}"#;
    for pass in [false, true] {
        HttpHandler::new(&config(&server), pass).unwrap().handle(&with_body(body), &cx()).await.unwrap();
    }

    let bodies: Vec<_> =
        server.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect();
    assert_eq!(bodies, [r#"{"z":1,"a":{}}"#, body]);
}

#[tokio::test]
async fn a_signed_request_can_be_verified_as_standard_webhooks() {
    let server = Server::answering(OK).await;
    let secret = format!("whsec_{}", STANDARD.encode(b"a key of some bytes"));
    let started = chrono::Utc::now().timestamp();

    assert_eq!(call(&Config { signing_secret: secret.as_str().into(), ..config(&server) }, &event()).await, "done");

    let [request] = &server.requests()[..] else { panic!() };
    let (id, time) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    let mut mac = Hmac::<Sha256>::new_from_slice(b"a key of some bytes").unwrap();
    mac.update(format!("{id}.{time}.{BODY}").as_bytes());
    assert_eq!(id, "bh1-ix-0123456789abcdef0123456789abcdef:1");
    assert!((started..started + 20).contains(&time.parse().unwrap()));
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(request.header("webhook-signature"), Some(signature.as_str()));
}

#[tokio::test]
async fn a_bearer_token_goes_into_the_authorization_header() {
    let server = Server::answering(OK).await;

    assert_eq!(
        call(&Config { auth: Auth::Bearer, bearer_token: "t0ken".into(), ..config(&server) }, &event()).await,
        "done"
    );

    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer t0ken"));
}

#[tokio::test]
async fn a_strict_event_gets_a_connection_of_its_own() {
    let server = Server::answering(OK).await;
    let handler = HttpHandler::new(&config(&server), false).unwrap();
    for cx in [cx(), strict(), strict(), cx()] {
        handler.handle(&event(), &cx).await.unwrap();
    }

    let requests = server.requests();
    let connections: Vec<_> = requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 2, 0]);
    let told: Vec<_> = requests.iter().map(|request| request.header("connection")).collect();
    assert_eq!(told, [None, Some("close"), Some("close"), None]);
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_a_moment() {
    let server = Server::answering(OK).await;
    let handler = HttpHandler::new(&config(&server), false).unwrap();
    handler.handle(&event(), &cx()).await.unwrap();

    timeout(Duration::from_secs(5), server.got_closed(1)).await.expect("closed by the client");

    handler.handle(&event(), &cx()).await.unwrap();
    assert_eq!(server.requests()[1].connection, 1);
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    for cx in [cx(), strict()] {
        let server = Server::start(&[Step::Hold]).await;
        let (handler, event) = (HttpHandler::new(&config(&server), false).unwrap(), event());
        let mut call = Box::pin(handler.handle(&event, &cx));
        tokio::select! {
            result = &mut call => panic!("{result:?}"),
            () = server.got_requests(1) => {}
        }

        drop(call);

        server.got_closed(1).await;
    }
}

#[tokio::test]
async fn a_proxy_is_used_where_it_is_configured() {
    let proxy = Server::answering(OK).await;
    let config = Config {
        url: "http://bot.invalid/events".to_owned(),
        proxy: format!("http://127.0.0.1:{}", proxy.port),
        unauthenticated: true,
        ..Config::default()
    };

    assert_eq!(call(&config, &event()).await, "done");

    assert!(proxy.requests()[0].head.starts_with("POST http://bot.invalid/events HTTP/1.1\r\n"));
}

/// Runs the named test of this file again in a process whose environment has these variables too.
async fn again(test: &str, variables: &[(&str, String)]) {
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", &name])
        .env("BELLHOP_TEST_AGAIN", "1")
        .envs(variables.iter().cloned())
        .stdout(Stdio::piped())
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success() && output.contains("1 passed"), "{output}");
}

fn is_again() -> bool {
    env::var_os("BELLHOP_TEST_AGAIN").is_some()
}

#[tokio::test]
async fn the_proxy_variables_of_the_environment_are_not_read() {
    if is_again() {
        let server = Server::answering(OK).await;
        assert_eq!(call(&config(&server), &event()).await, "done");
        return;
    }

    let nowhere = "http://127.0.0.1:1".to_owned();
    let variables = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, nowhere.clone()));
    again("the_proxy_variables_of_the_environment_are_not_read", &variables).await;
}

#[tokio::test]
async fn an_identity_token_of_the_default_credentials_goes_into_the_authorization_header() {
    if is_again() {
        let server = Server::answering(OK).await;
        let config = Config { auth: Auth::GoogleIdToken, audience: "https://bot".to_owned(), ..config(&server) };
        assert_eq!(call(&config, &event()).await, "done");
        let authorization = server.requests()[0].header("authorization").unwrap().to_owned();
        assert!(authorization.starts_with("Bearer e30.") && authorization.ends_with(".c2ln"), "{authorization}");
        return;
    }

    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"exp":4102444800}"#);
    let token = format!("e30.{claims}.c2ln");
    let metadata =
        format!("HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\ncontent-length: {}\r\n\r\n{token}", token.len());
    let server = Server::answering(&metadata).await;
    again(
        "an_identity_token_of_the_default_credentials_goes_into_the_authorization_header",
        &[("GCE_METADATA_HOST", format!("127.0.0.1:{}", server.port)), ("HOME", "/nonexistent".to_owned())],
    )
    .await;
    let asked = server.requests()[0].head.clone();
    assert!(asked.contains("/identity?") && asked.contains("audience=https"), "{asked}");
}

#[tokio::test]
async fn without_an_identity_token_the_handler_is_certainly_not_run() {
    if is_again() {
        let server = Server::answering(OK).await;
        let config = Config { auth: Auth::GoogleIdToken, ..config(&server) };
        assert_eq!(call(&config, &event()).await, "target trouble");
        assert!(server.requests().is_empty());
        return;
    }

    let server = Server::answering("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n").await;
    again(
        "without_an_identity_token_the_handler_is_certainly_not_run",
        &[("GCE_METADATA_HOST", format!("127.0.0.1:{}", server.port)), ("HOME", "/nonexistent".to_owned())],
    )
    .await;
}

#[tokio::test]
async fn a_wrong_configuration_makes_no_handler() {
    let config = Config { url: "http://bot.example/".to_owned(), ..Config::default() };

    assert!(matches!(HttpHandler::new(&config, false), Err(BuildError::Config { key: "url", .. })));
}
