//! Faults on order, broken connections, stops and starts.

use super::*;

#[tokio::test]
async fn a_stream_ended_by_order_is_opened_again_by_the_client() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    next(&mut stream).await.1.ack();

    assert_eq!(house.server.admin().end_streams(SUBSCRIPTION, &Status::unavailable("ordered")), 1);
    let (message, ()) = tokio::join!(next(&mut stream), async {
        house.publish(["b"]);
    });

    assert_eq!(message.0.data, "b");
    assert_eq!(house.server.faults().calls(Method::StreamingPull), 2);
}

#[tokio::test]
async fn a_swallowed_ack_leads_to_a_second_delivery() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    house.server.faults().swallow_share(Method::Acknowledge, 1.0);

    next(&mut stream).await.1.ack();
    let (message, handler) = next(&mut stream).await;
    house.server.faults().swallow_share(Method::Acknowledge, 0.0);
    handler.ack();

    assert_eq!(message.data, "a");
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn the_next_calls_fail_on_order() {
    let house = House::open(Subscription::default()).await;
    let admin = house.admin().await;
    house.server.faults().fail_next(Method::GetSubscription, 1, &Status::permission_denied("ordered"));

    let first = admin.get_subscription().set_subscription(SUBSCRIPTION).send().await.unwrap_err();
    let second = admin.get_subscription().set_subscription(SUBSCRIPTION).send().await.unwrap();

    assert_eq!(first.status().unwrap().code.name(), "PERMISSION_DENIED");
    assert_eq!(second.topic, TOPIC);
    assert_eq!(second.ack_deadline_seconds, 10);
}

#[tokio::test]
async fn a_message_delivered_twice_on_order_has_two_live_handles() {
    let house = House::open(Subscription::default()).await;
    let ids = house.publish(["a"]);
    let mut stream = house.stream().await;
    let (_, first) = next(&mut stream).await;

    assert!(house.server.admin().deliver_again(SUBSCRIPTION, &ids[0]));
    let (message, second) = next(&mut stream).await;
    second.ack();
    drop(first);

    assert_eq!(message.message_id, ids[0]);
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn ids_differ_between_two_runs_of_a_server() {
    let first = House::open(Subscription::default()).await;
    let ids = first.publish(["a", "b"]);
    let address = first.server.address();
    first.server.stop().await;

    let again = PubsubServer::start(address).await.unwrap();
    again.admin().create_topic(TOPIC).unwrap();
    let message = PubsubMessage { data: b"a".into(), ..PubsubMessage::default() };
    let later = again.admin().publish(TOPIC, vec![message]).unwrap();

    assert!(ids.iter().chain(&later).all(|id| id.bytes().all(|byte| byte.is_ascii_digit())));
    assert_eq!(ids.iter().chain(&later).collect::<BTreeSet<_>>().len(), 3);
}

#[tokio::test]
async fn stopping_ends_streams_and_waits_for_nobody() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    let (_, _kept) = next(&mut stream).await;

    timeout(Duration::from_secs(4), house.server.stop()).await.expect("a stop in time");
}

/// Passes bytes to the server, until it is dropped: then both sides see a reset or an end.
async fn proxy(to: SocketAddr) -> (SocketAddr, tokio::task::JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
            });
        }
    });
    (address, tasks)
}

async fn held_through_a_broken_connection(options: Options) -> (House, Handler) {
    let house = House::open_with(options, Subscription::default()).await;
    house.publish(["a"]);
    let (address, proxy) = proxy(house.server.address()).await;
    let subscriber = Subscriber::builder()
        .with_endpoint(format!("http://{address}"))
        .with_credentials(nobody())
        .build()
        .await
        .unwrap();
    let mut stream = subscriber.subscribe(SUBSCRIPTION).build();
    let (_, handler) = next(&mut stream).await;
    drop(proxy);
    house.until(|counts| counts.streams == 0).await;
    (house, handler)
}

#[tokio::test]
async fn what_a_broken_connection_held_is_delivered_again_at_once() {
    let (house, _handler) = held_through_a_broken_connection(Options::default()).await;

    assert_eq!((house.counts().ready, house.counts().leased), (1, 0));
}

#[tokio::test]
async fn what_a_broken_connection_held_stays_leased_where_that_is_wanted() {
    let options = Options { release_on_disconnect: false, ..Options::default() };
    let (house, _handler) = held_through_a_broken_connection(options).await;

    assert_eq!((house.counts().ready, house.counts().leased), (0, 1));
}
