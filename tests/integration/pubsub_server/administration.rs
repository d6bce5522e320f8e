//! Topics and subscriptions, limits, refusals.

use super::*;

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
