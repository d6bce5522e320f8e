//! The embedded Pub/Sub server under Google's own clients: Rust, Python, Node.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use bellhop::pubsub_server::{
    Counts, Method, Options, PubsubServer,
    proto::{DeadLetterPolicy, PubsubMessage, RetryPolicy, Subscription},
};
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::{
    client::{Publisher, Subscriber, SubscriptionAdmin, TopicAdmin},
    model::{Message, SeekRequest},
    subscriber::{MessageStream, handler::Handler},
};
use tokio::time::timeout;
use tonic::{Code, Status};

mod administration;
mod clients;
mod faults;

const TOPIC: &str = "projects/p/topics/events";
const SUBSCRIPTION: &str = "projects/p/subscriptions/events";
const DEAD_TOPIC: &str = "projects/p/topics/dead";
const DEAD_SUBSCRIPTION: &str = "projects/p/subscriptions/dead";
/// Nothing here should take longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with one topic and one subscription.
struct House {
    server: PubsubServer,
}

impl House {
    async fn open(subscription: Subscription) -> Self {
        Self::open_with(Options::default(), subscription).await
    }

    async fn open_with(options: Options, subscription: Subscription) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = PubsubServer::start_with(address, options).await.unwrap();
        server.admin().create_topic(TOPIC).unwrap();
        let subscription = Subscription { name: SUBSCRIPTION.to_owned(), topic: TOPIC.to_owned(), ..subscription };
        server.admin().create_subscription(subscription).unwrap();
        Self { server }
    }

    fn publish(&self, data: impl IntoIterator<Item = &'static str>) -> Vec<String> {
        let message = |data: &str| PubsubMessage { data: data.into(), ..PubsubMessage::default() };
        self.server.admin().publish(TOPIC, data.into_iter().map(message).collect()).unwrap()
    }

    fn counts(&self) -> Counts {
        self.server.admin().counts(SUBSCRIPTION).unwrap()
    }

    async fn subscriber(&self) -> Subscriber {
        Subscriber::builder().with_endpoint(self.server.endpoint()).with_credentials(nobody()).build().await.unwrap()
    }

    async fn stream(&self) -> MessageStream {
        self.subscriber().await.subscribe(SUBSCRIPTION).set_max_lease_extension(Duration::from_secs(10)).build()
    }

    async fn publisher(&self) -> Publisher {
        Publisher::builder(TOPIC)
            .with_endpoint(self.server.endpoint())
            .with_credentials(nobody())
            .build()
            .await
            .unwrap()
    }

    async fn admin(&self) -> SubscriptionAdmin {
        SubscriptionAdmin::builder()
            .with_endpoint(self.server.endpoint())
            .with_credentials(nobody())
            .with_retry_policy(NeverRetry)
            .build()
            .await
            .unwrap()
    }

    async fn topics(&self) -> TopicAdmin {
        TopicAdmin::builder()
            .with_endpoint(self.server.endpoint())
            .with_credentials(nobody())
            .with_retry_policy(NeverRetry)
            .build()
            .await
            .unwrap()
    }

    /// Waits until the subscription looks so: there is no event for it to wait on.
    async fn until(&self, wanted: impl Fn(Counts) -> bool) {
        let looking = async {
            while !wanted(self.counts()) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("it stayed {:?}", self.counts()));
    }
}

fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}

fn exactly_once() -> Subscription {
    Subscription { enable_exactly_once_delivery: true, ..Subscription::default() }
}

fn retry(seconds: i64) -> Option<RetryPolicy> {
    let seconds = Some(prost_types::Duration { seconds, nanos: 0 });
    Some(RetryPolicy { minimum_backoff: seconds, maximum_backoff: seconds })
}

async fn next(stream: &mut MessageStream) -> (Message, Handler) {
    timeout(PATIENCE, stream.next()).await.expect("a message in time").expect("an open stream").expect("no error")
}

async fn confirmed_ack(handler: Handler) -> Result<(), String> {
    let Handler::ExactlyOnce(handler) = handler else { panic!("not exactly once: {handler:?}") };
    timeout(PATIENCE, handler.confirmed_ack()).await.unwrap().map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn what_is_published_is_streamed_and_an_ack_ends_it() {
    let house = House::open(Subscription::default()).await;
    let id =
        house.publisher().await.publish(Message::new().set_data("hello").set_attributes([("k", "v")])).await.unwrap();
    let mut stream = house.stream().await;

    let (message, handler) = next(&mut stream).await;
    handler.ack();

    assert_eq!(message.data, "hello");
    assert_eq!(message.attributes["k"], "v");
    assert_eq!(message.message_id, id);
    assert!(message.publish_time.is_some());
    house.until(|counts| counts.unacked == 0).await;
    house.server.stop().await;
}

#[tokio::test]
async fn a_nack_comes_back_at_once_and_without_a_policy_no_attempt_is_told() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;

    for _ in 0..3 {
        let (_, handler) = next(&mut stream).await;
        assert_eq!(handler.delivery_attempt(), None);
        handler.nack();
    }
    next(&mut stream).await.1.ack();

    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn a_message_nobody_answers_comes_back_after_its_deadline() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let subscriber = house.subscriber().await;
    // Its lease is not extended: the client gives it up at once.
    let mut deaf = subscriber
        .subscribe(SUBSCRIPTION)
        .set_max_lease_extension(Duration::from_secs(10))
        .set_max_lease(Duration::from_millis(1))
        .build();
    let began = Instant::now();

    let (_, _kept) = next(&mut deaf).await;
    next(&mut deaf).await.1.ack();

    assert!((9..15).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn a_lease_that_is_extended_is_not_delivered_twice() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;

    let (_, handler) = next(&mut stream).await;
    let again = timeout(Duration::from_secs(12), stream.next()).await;

    assert!(again.is_err(), "delivered again: {again:?}");
    assert!(house.server.faults().modacks().iter().any(|modack| modack.seconds == 10));
    handler.ack();
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn the_retry_policy_holds_a_nacked_message_back() {
    let house = House::open(Subscription { retry_policy: retry(2), ..Subscription::default() }).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    next(&mut stream).await.1.nack();
    let began = Instant::now();

    next(&mut stream).await.1.ack();

    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_message_that_fails_too_often_moves_to_the_dead_letter_topic() {
    let policy = DeadLetterPolicy { dead_letter_topic: DEAD_TOPIC.to_owned(), max_delivery_attempts: 5 };
    let house = House::open(Subscription { dead_letter_policy: Some(policy), ..Subscription::default() }).await;
    house.server.admin().create_topic(DEAD_TOPIC).unwrap();
    let dead = Subscription { name: DEAD_SUBSCRIPTION.into(), topic: DEAD_TOPIC.into(), ..Subscription::default() };
    house.server.admin().create_subscription(dead).unwrap();
    let ids = house.publish(["bad"]);
    let mut stream = house.stream().await;

    let mut attempts = Vec::new();
    for _ in 0..5 {
        let (_, handler) = next(&mut stream).await;
        attempts.extend(handler.delivery_attempt());
        handler.nack();
    }
    let mut dead = house.subscriber().await.subscribe(DEAD_SUBSCRIPTION).build();
    let (letter, handler) = next(&mut dead).await;
    handler.ack();

    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    assert_eq!(letter.data, "bad");
    assert_ne!(letter.message_id, ids[0]);
    assert_eq!(letter.attributes["CloudPubSubDeadLetterSourceSubscription"], "events");
    assert_eq!(letter.attributes["CloudPubSubDeadLetterSourceSubscriptionProject"], "p");
    assert_eq!(letter.attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5");
    assert!(letter.attributes["CloudPubSubDeadLetterSourceTopicPublishTime"].starts_with("20"));
    assert_eq!(house.counts().unacked, 0);
}

#[tokio::test]
async fn exactly_once_confirms_each_ack() {
    let house = House::open(exactly_once()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;

    let (_, handler) = next(&mut stream).await;

    assert_eq!(confirmed_ack(handler).await, Ok(()));
    assert_eq!(house.counts().unacked, 0);
}

#[tokio::test]
async fn exactly_once_refuses_one_ack_and_confirms_the_others_of_the_call() {
    let house = House::open(exactly_once()).await;
    house.publish(["a", "b", "c"]);
    let mut stream = house.stream().await;
    let handlers = [next(&mut stream).await.1, next(&mut stream).await.1, next(&mut stream).await.1];
    house.server.faults().invalidate_next_acks(1);

    let results = futures::future::join_all(handlers.map(confirmed_ack)).await;

    let failed: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(failed.len(), 1, "{results:?}");
    assert!(failed[0].contains("PERMANENT_FAILURE_INVALID_ACK_ID"), "{}", failed[0]);
    assert_eq!(house.counts().unacked, 1);
}

#[tokio::test]
async fn exactly_once_retries_an_ack_that_fails_for_the_moment() {
    let house = House::open(exactly_once()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    let (_, handler) = next(&mut stream).await;
    house.server.faults().fail_next_acks_for_the_moment(1);

    assert_eq!(confirmed_ack(handler).await, Ok(()));

    assert_eq!(house.server.faults().calls(Method::Acknowledge), 2);
    assert_eq!(house.counts().unacked, 0);
}

#[tokio::test]
async fn a_client_that_drops_its_stream_keeps_the_lease_of_what_it_works_on() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a"]);
    let mut stream = house.stream().await;
    let (_, handler) = next(&mut stream).await;

    drop(stream);
    house.until(|counts| counts.streams == 0).await;

    assert_eq!(house.counts().leased, 1);
    handler.ack();
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_leaves_no_stream_behind() {
    let house = House::open(Subscription::default()).await;
    let mut stream = house.stream().await;

    tokio::select! {
        message = stream.next() => panic!("nothing was published: {message:?}"),
        () = house.until(|counts| counts.streams == 1) => {}
    }
    drop(stream);
    house.until(|counts| counts.streams == 0).await;
    house.publish(["a"]);

    next(&mut house.stream().await).await.1.ack();
    house.until(|counts| counts.unacked == 0).await;
}

#[tokio::test]
async fn two_clients_share_the_messages_between_them() {
    let house = House::open(Subscription::default()).await;
    let (mut one, mut two) = (house.stream().await, house.stream().await);
    let (first, second) = tokio::join!(
        async {
            house.until(|counts| counts.streams == 2).await;
            house.publish(["a", "b"]);
        },
        async { tokio::join!(next(&mut one), next(&mut two)) }
    );
    let () = first;

    let got: BTreeSet<&[u8]> = [&second.0.0.data[..], &second.1.0.data[..]].into();
    assert_eq!(got, [b"a", b"b"].map(|data| &data[..]).into());
}

#[tokio::test]
async fn a_stream_gets_no_more_than_it_asked_for() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a", "b", "c"]);
    let subscriber = house.subscriber().await;
    let mut stream = subscriber.subscribe(SUBSCRIPTION).set_max_outstanding_messages(2).build();

    let (_, first) = next(&mut stream).await;
    let (_, _second) = next(&mut stream).await;
    assert_eq!(house.counts(), Counts { unacked: 3, ready: 1, leased: 2, delayed: 0, streams: 1 });
    first.ack();
    let (third, _) = next(&mut stream).await;

    assert_eq!(third.data, "c");
}

#[tokio::test]
async fn ordering_keys_keep_their_order_and_a_nack_brings_back_what_follows() {
    let house = House::open(Subscription { enable_message_ordering: true, ..Subscription::default() }).await;
    let publisher = house.publisher().await;
    for data in ["1", "2", "3"] {
        publisher.publish(Message::new().set_data(data).set_ordering_key("k")).await.unwrap();
    }
    let mut stream = house.stream().await;

    let (first, kept) = next(&mut stream).await;
    let (second, nacked) = next(&mut stream).await;
    let (third, _late) = next(&mut stream).await;
    nacked.nack();
    let again = [next(&mut stream).await, next(&mut stream).await];

    let data: Vec<&[u8]> = [&first, &second, &third, &again[0].0, &again[1].0].map(|it| &it.data[..]).into();
    assert_eq!(data, ["1", "2", "3", "2", "3"].map(str::as_bytes));
    kept.ack();
}
