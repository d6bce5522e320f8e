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

mod clients;

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
async fn leases_of_a_client_that_does_not_read_run_out_again_and_again() {
    let house = House::open(Subscription::default()).await;
    let mut stream = house.stream().await;
    house.publish(["a"]);
    let (_, first) = next(&mut stream).await;
    // Its lease ends unanswered, and what comes instead is not read by anybody.
    house.server.faults().swallow_share(Method::ModifyAckDeadline, 1.0);
    let attempts = |house: &House| house.server.admin().deliveries(SUBSCRIPTION).unwrap();

    let again = async {
        while attempts(&house) < 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.expect("a third delivery after two deadlines");
    drop(first);
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
async fn ten_megabytes_pass_and_more_is_refused() {
    let house = House::open(Subscription::default()).await;
    let publisher = house.publisher().await;
    let mut stream = house.stream().await;

    publisher.publish(Message::new().set_data(vec![7; 9_999_900])).await.unwrap();
    let (message, handler) = next(&mut stream).await;
    handler.ack();
    let refused = publisher.publish(Message::new().set_data(vec![7; 10_000_001])).await;

    assert_eq!(message.data.len(), 9_999_900);
    assert!(format!("{refused:?}").contains("10 MB"), "{refused:?}");
}

#[tokio::test]
async fn a_full_server_refuses_a_publish() {
    let options = Options { max_bytes: 100_000, ..Options::default() };
    let house = House::open_with(options, Subscription::default()).await;
    let large = |_| PubsubMessage { data: vec![7; 60_000], ..PubsubMessage::default() };
    let admin = house.server.admin();
    admin.publish(TOPIC, (0..1).map(large).collect()).unwrap();

    let refused = admin.publish(TOPIC, (0..1).map(large).collect()).unwrap_err();

    assert_eq!(refused.code(), Code::ResourceExhausted);
    let (_, handler) = next(&mut house.stream().await).await;
    handler.ack();
    house.until(|counts| counts.unacked == 0).await;
    admin.publish(TOPIC, (0..1).map(large).collect()).unwrap();
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

#[tokio::test]
async fn a_deleted_subscription_ends_its_streams_with_not_found() {
    let house = House::open(Subscription::default()).await;
    let mut stream = house.stream().await;

    let (error, ()) =
        tokio::join!(async { timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap_err() }, async {
            house.until(|counts| counts.streams == 1).await;
            house.admin().await.delete_subscription().set_subscription(SUBSCRIPTION).send().await.unwrap();
        });

    assert_eq!(error.status().unwrap().code.name(), "NOT_FOUND");
}

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
async fn topics_and_subscriptions_are_made_listed_changed_and_deleted() {
    let house = House::open(Subscription::default()).await;
    let (topics, subscriptions) = (house.topics().await, house.admin().await);

    for id in ["one", "two"] {
        topics.create_topic().set_name(format!("projects/p/topics/{id}")).send().await.unwrap();
    }
    let twice = topics.create_topic().set_name("projects/p/topics/one").send().await.unwrap_err();
    assert_eq!(twice.status().unwrap().code.name(), "ALREADY_EXISTS");
    let page = topics.list_topics().set_project("projects/p").set_page_size(2).send().await.unwrap();
    let rest =
        topics.list_topics().set_project("projects/p").set_page_token(page.next_page_token).send().await.unwrap();
    let names: Vec<String> = page.topics.into_iter().chain(rest.topics).map(|topic| topic.name).collect();
    assert_eq!(names, [TOPIC, "projects/p/topics/one", "projects/p/topics/two"]);
    assert_eq!(rest.next_page_token, "");

    let of_topic = topics.list_topic_subscriptions().set_topic(TOPIC).send().await.unwrap();
    assert_eq!(of_topic.subscriptions, [SUBSCRIPTION]);
    let changed = google_cloud_pubsub::model::Subscription::new().set_name(SUBSCRIPTION).set_ack_deadline_seconds(60);
    let mask = google_cloud_wkt::FieldMask::default().set_paths(["ack_deadline_seconds"]);
    let changed =
        subscriptions.update_subscription().set_subscription(changed).set_update_mask(mask).send().await.unwrap();
    assert_eq!((changed.ack_deadline_seconds, &changed.topic[..]), (60, TOPIC));

    topics.delete_topic().set_topic(TOPIC).send().await.unwrap();
    let orphan = subscriptions.get_subscription().set_subscription(SUBSCRIPTION).send().await.unwrap();
    assert_eq!(orphan.topic, "_deleted-topic_");
    let gone = topics.get_topic().set_topic(TOPIC).send().await.unwrap_err();
    assert_eq!(gone.status().unwrap().code.name(), "NOT_FOUND");
}

#[tokio::test]
async fn what_can_not_be_done_is_refused_by_the_name_of_its_field() {
    let house = House::open(Subscription::default()).await;
    let admin = house.server.admin();
    let base =
        || Subscription { name: "projects/p/subscriptions/new".into(), topic: TOPIC.into(), ..Subscription::default() };
    let refused = |subscription: Subscription| admin.create_subscription(subscription).unwrap_err();

    let answers = [
        refused(Subscription { name: "new".into(), ..base() }),
        refused(Subscription { topic: String::new(), ..base() }),
        refused(Subscription { ack_deadline_seconds: 9, ..base() }),
        refused(Subscription { ack_deadline_seconds: 601, ..base() }),
        refused(Subscription { filter: "attributes:a".into(), ..base() }),
        refused(Subscription { retain_acked_messages: true, ..base() }),
        refused(Subscription { retry_policy: retry(601), ..base() }),
        refused(Subscription {
            dead_letter_policy: Some(DeadLetterPolicy {
                dead_letter_topic: DEAD_TOPIC.into(),
                max_delivery_attempts: 4,
            }),
            ..base()
        }),
    ];

    let fields = [
        "name",
        "topic",
        "ack_deadline_seconds",
        "ack_deadline_seconds",
        "filter",
        "retain_acked_messages",
        "retry_policy",
        "dead_letter_policy.max_delivery_attempts",
    ];
    for (answer, field) in answers.iter().zip(fields) {
        assert_eq!(answer.code(), Code::InvalidArgument, "{answer:?}");
        assert!(answer.message().starts_with(&format!("{field}: ")), "{answer:?}");
    }
    let missing = refused(Subscription { topic: "projects/p/topics/missing".into(), ..base() });
    assert_eq!(missing.code(), Code::NotFound);
}

#[tokio::test]
async fn a_seek_to_now_purges() {
    let house = House::open(Subscription::default()).await;
    house.publish(["a", "b"]);
    let later = google_cloud_wkt::Timestamp::clamp(chrono::Utc::now().timestamp() + 1, 0);

    let request = SeekRequest::new().set_subscription(SUBSCRIPTION).set_time(later);
    let admin = house.admin().await;
    admin.seek().with_request(request).send().await.unwrap();

    assert_eq!(house.counts().unacked, 0);
    let back = SeekRequest::new().set_subscription(SUBSCRIPTION).set_time(google_cloud_wkt::Timestamp::clamp(1, 0));
    let refused = admin.seek().with_request(back).send().await.unwrap_err();
    assert_eq!(refused.status().unwrap().code.name(), "FAILED_PRECONDITION");
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
