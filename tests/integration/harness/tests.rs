//! The tools do what they say.

use std::time::Duration;

use sqlx::Executor;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};

use super::{
    Behaviour, Broker, Emulator, Postgres, Proxy, ScriptedHandler,
    event::{Message, chat_message},
    handler::OK,
    proxy::Network,
    wait::{eventually, when},
};

#[tokio::test]
async fn a_fresh_database_is_empty_and_ones_own() {
    let (one, other) = (Postgres::fresh().await, Postgres::fresh().await);

    one.connect().await.execute("CREATE TABLE t (x int)").await.expect("a table can be created");

    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!((one.count(tables).await, other.count(tables).await), (1, 0));
}

#[tokio::test]
async fn a_private_cluster_keeps_what_was_committed_when_it_is_stopped_or_killed() {
    let postgres = Postgres::own().await;
    let mut connection = postgres.connect().await;
    connection.execute("CREATE TABLE t (x int)").await.expect("a table can be created");

    postgres.stop();
    postgres.start();
    assert!(connection.execute("SELECT 1").await.is_err(), "the old connection is gone");
    postgres.connect().await.execute("INSERT INTO t VALUES (1)").await.expect("it answers again");
    postgres.kill();
    postgres.start();

    assert_eq!(postgres.count("SELECT count(*) FROM t").await, 1);
}

#[tokio::test]
async fn what_is_published_is_left_over_until_it_is_acknowledged() {
    let subscription = Broker::emulator().subscription().await;

    subscription.publish(&[chat_message("a"), Message::raw("b")]).await;

    assert_eq!(subscription.leftovers().await.len(), 2);
    assert!(subscription.pull().await.is_empty());
}

#[tokio::test]
async fn a_private_emulator_can_be_killed_and_comes_back_at_the_same_address() {
    let mut emulator = Emulator::own().await;
    let address = emulator.address().to_owned();

    emulator.kill();
    assert!(TcpStream::connect(&address).await.is_err());
    let broker = Broker::on(emulator.restarted().await);

    assert_eq!(broker.address(), address);
    let subscription = broker.subscription().await;
    subscription.publish(&[Message::raw("a")]).await;
    assert_eq!(subscription.pull().await.len(), 1);
}

#[tokio::test]
async fn the_handler_answers_hangs_cuts_and_goes_away_as_told() {
    let mut handler = ScriptedHandler::start(|call| match call.label.as_str() {
        "late" => Behaviour::After(Duration::from_millis(50), 503),
        "hang" => Behaviour::Hang,
        "cut" => Behaviour::CutAfter(Duration::ZERO),
        _ => OK,
    })
    .await;

    assert_eq!(post(&handler, "fine").await.expect("an answer"), 200);
    assert_eq!(post(&handler, "late").await.expect("an answer"), 503);
    assert!(post(&handler, "cut").await.expect_err("no answer").is_request());
    assert!(post(&handler, "hang").await.expect_err("no answer").is_timeout());
    assert_eq!(handler.calls_of("late")[0].status, Some(503));
    assert_eq!((handler.succeeded(), handler.unanswered()), (1, 2));

    handler.down().await;
    assert!(post(&handler, "fine").await.expect_err("nobody there").is_connect());
    handler.up().await;
    assert_eq!(post(&handler, "fine").await.expect("an answer"), 200);
    assert_eq!(handler.calls_of("fine")[1].earlier, 1);
}

async fn post(handler: &ScriptedHandler, label: &str) -> Result<u16, reqwest::Error> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500)).build()?;
    let request = client.post(handler.url()).header("bellhop-event-id", label);
    let request = request.header("bellhop-epoch", "1").header("bellhop-attempt", "1").body(chat_message(label).data);
    Ok(request.send().await?.status().as_u16())
}

#[tokio::test]
async fn the_proxy_passes_loses_and_cuts_as_told() {
    let (echo, _server) = echo_server().await;
    let proxy = Proxy::to(&echo).await;
    let mut open = TcpStream::connect(proxy.address()).await.expect("the proxy listens");

    assert!(echoes(&mut open).await);
    proxy.become_(Network::AnswersLost);
    assert!(!echoes(&mut open).await);
    proxy.become_(Network::Good);
    eventually("the lost answer to arrive", Duration::from_secs(5), async || when(echoes(&mut open).await)).await;
    proxy.cut();
    let ended = eventually("the cut", Duration::from_secs(5), async || open.read(&mut [0; 64]).await.ok()).await;
    assert_eq!(ended, 0);
    proxy.become_(Network::Refused);
    let mut refused = TcpStream::connect(proxy.address()).await.expect("the kernel accepts");
    assert!(!echoes(&mut refused).await);
    proxy.become_(Network::Slow(Duration::from_millis(1)));
    let mut slow = TcpStream::connect(proxy.address()).await.expect("the proxy listens");
    assert!(echoes(&mut slow).await);
}

async fn echo_server() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket").to_string();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ended = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, server)
}

async fn echoes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let answer = time::timeout(Duration::from_millis(300), async {
        stream.write_all(b"x").await?;
        stream.read_exact(&mut byte).await
    });
    matches!(answer.await, Ok(Ok(_)))
}
