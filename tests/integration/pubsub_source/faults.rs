//! What Google's emulator can not do: statuses on streams and probes, acks that fail, noticing a cut connection.

use std::{
    net::SocketAddr,
    time::{Duration, Instant as Wall},
};

use bellhop::{
    pubsub_server::{Method, PubsubServer},
    source::{Source, pubsub::Config},
};
use tonic::{Code, Status};

use super::{
    LIMITS, Opened,
    fixture::{Subscription, eventually},
    network::{Door, Street},
    text,
};

const ANYWHERE: &str = "127.0.0.1:0";

async fn server() -> PubsubServer {
    PubsubServer::start(ANYWHERE.parse::<SocketAddr>().unwrap()).await.unwrap()
}

fn config(server: &PubsubServer, subscription: &Subscription) -> Config {
    Config { endpoint: server.endpoint(), ..super::config(subscription) }
}

#[tokio::test]
async fn whatever_a_stream_ends_with_it_comes_back_and_is_counted() {
    for (code, reason) in [
        (Code::Cancelled, "cancelled"),
        (Code::Unknown, "unknown"),
        (Code::NotFound, "not_found"),
        (Code::PermissionDenied, "permission_denied"),
        (Code::Unauthenticated, "unauthenticated"),
        (Code::InvalidArgument, "invalid_argument"),
        (Code::FailedPrecondition, "failed_precondition"),
        (Code::Unimplemented, "other"),
    ] {
        let server = server().await;
        let subscription = Subscription::on(&server.address().to_string()).await;
        server.faults().fail_next(Method::StreamingPull, 1, &Status::new(code, "on order"));
        let mut opened = Opened::on(&config(&server, &subscription), LIMITS);
        subscription.publish(["a"]).await;

        let delivery = opened.next().await;

        assert_eq!((text(&delivery).as_str(), opened.restarts(reason)), ("a", 1), "{code:?}");
        delivery.acker.ack().await;
        opened.close().await.unwrap();
        server.stop().await;
    }
}

#[tokio::test]
async fn a_running_stream_whose_server_goes_away_does_not_spin() {
    // Google's emulator goes on sending to a stream whose connection was cut, for a whole lease each time.
    let server = server().await;
    let subscription = Subscription::on(&server.address().to_string()).await;
    let street = Street::new(server.address().to_string(), Door::Open).await;
    let config =
        Config { endpoint: street.address(), silence: Duration::from_secs(2), ..config(&server, &subscription) };
    let mut opened = Opened::on(&config, LIMITS);
    subscription.publish(["a"]).await;
    opened.next().await.acker.ack().await;

    street.becomes(Door::Shut);
    eventually("the probe to fail", || opened.requests("probe", "unreachable") >= 1).await;
    let before = street.visits();
    eventually("the probe to fail thrice", || opened.requests("probe", "unreachable") >= 4).await;
    let visits = street.visits() - before;
    // One for each probe. A stream that spins opens hundreds a second.
    assert!(visits <= 4, "{visits} connections");
    street.becomes(Door::Open);
    subscription.publish(["b"]).await;

    while text(&opened.next().await) != "b" {}
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_source_that_is_refused_again_and_again_tries_ever_more_seldom() {
    let server = server().await;
    let subscription = Subscription::on(&server.address().to_string()).await;
    server.faults().fail_next(Method::StreamingPull, 1_000, &Status::unauthenticated("on order"));
    let opened = Opened::on(&config(&server, &subscription), LIMITS);
    let (health, begun) = (opened.source.health(), Wall::now());

    eventually("four refusals", || opened.restarts("unauthenticated") >= 4).await;

    // Pauses of at least 0.5 s, 1 s and 2 s lie between them.
    assert!(begun.elapsed() >= Duration::from_millis(3_500), "{:?}", begun.elapsed());
    assert_eq!(server.faults().calls(Method::StreamingPull), 4);
    assert!(!health());
    opened.close().await.unwrap();
}

#[tokio::test]
async fn no_stream_is_opened_before_a_probe_got_through() {
    let server = server().await;
    let subscription = Subscription::on(&server.address().to_string()).await;
    server.faults().fail_next(Method::GetSubscription, 2, &Status::permission_denied("on order"));
    let mut opened = Opened::on(&config(&server, &subscription), LIMITS);

    eventually("two refused probes", || opened.requests("probe", "permission_denied") >= 2).await;
    assert_eq!(server.faults().calls(Method::StreamingPull), 0);
    subscription.publish(["a"]).await;

    opened.next().await.acker.ack().await;
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_restarts_is_found_again() {
    let first = server().await;
    let (address, endpoint) = (first.address(), first.endpoint());
    let subscription = Subscription::on(&address.to_string()).await;
    let config = Config { endpoint, ..super::config(&subscription) };
    let mut opened = Opened::on(&config, LIMITS);
    subscription.publish(["a"]).await;
    opened.next().await.acker.ack().await;

    first.stop().await;
    let second = PubsubServer::start(address).await.unwrap();
    subscription.create().await;
    subscription.publish(["b"]).await;

    assert_eq!(text(&opened.next().await), "b");
    opened.close().await.unwrap();
    second.stop().await;
}

#[tokio::test]
async fn acks_that_an_exactly_once_subscription_refuses_are_counted_and_do_not_hold_up_close() {
    let server = server().await;
    let subscription = Subscription::exactly_once_on(&server.address().to_string()).await;
    let mut opened = Opened::on(&config(&server, &subscription), LIMITS);
    subscription.publish(["a", "b", "c"]).await;
    let mut held = vec![opened.next().await, opened.next().await, opened.next().await];
    server.faults().invalidate_next_acks(1);

    held.remove(0).acker.ack().await;
    let failed = || -> u64 {
        ["lease_expired", "failed_precondition", "invalid_argument", "other"]
            .iter()
            .map(|result| opened.requests("ack", result))
            .sum()
    };
    eventually("the refusal", || failed() == 1).await;
    for delivery in held {
        delivery.acker.ack().await;
    }

    let requests = opened.metrics.pubsub_requests.clone();
    opened.source.close(tokio::time::Instant::now() + Duration::from_secs(20)).await.unwrap();
    assert_eq!(requests.with_label_values(&["ack", "ok"]).get(), 2);
}

#[tokio::test]
async fn a_stream_that_ends_while_it_is_read_comes_back_beside_the_handles_of_the_old_one() {
    for (status, reason) in
        [(Status::permission_denied("on order"), "permission_denied"), (Status::ok("a clean end"), "ended")]
    {
        let server = server().await;
        let subscription = Subscription::on(&server.address().to_string()).await;
        let mut opened = Opened::on(&config(&server, &subscription), LIMITS);
        subscription.publish(["a"]).await;
        let old = opened.next().await;

        assert_eq!(server.admin().end_streams(&subscription.name, &status), 1);
        eventually("the end", || opened.restarts(reason) == 1).await;
        old.acker.ack().await;
        subscription.publish(["b"]).await;

        let mut new = opened.next().await;
        if text(&new) == "a" {
            // The ack went out after the server had given up on the old stream.
            new.acker.ack().await;
            new = opened.next().await;
        }
        assert_eq!(text(&new), "b");
        new.acker.ack().await;
        opened.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_silent_stream_is_replaced_and_the_old_handles_still_answer() {
    let server = server().await;
    let subscription = Subscription::on(&server.address().to_string()).await;
    let config = Config { silence: Duration::from_secs(1), ..config(&server, &subscription) };
    let mut opened = Opened::on(&config, LIMITS);
    subscription.publish(["a"]).await;
    let old = opened.next().await;

    // Google's emulator goes on sending to streams that closed; this server does not.
    eventually("two replacements", || opened.restarts("silence") >= 2).await;
    old.acker.ack().await;
    subscription.publish(["b"]).await;
    let new = opened.next().await;

    assert_eq!(text(&new), "b");
    new.acker.ack().await;
    opened.close().await.unwrap();
    let counts = || server.admin().counts(&subscription.name).unwrap();
    eventually("every stream to be closed", || counts().streams == 0).await;
    assert_eq!(counts().unacked, 0);
}

#[tokio::test]
async fn a_message_that_comes_again_while_it_is_held_counts_as_an_expired_lease() {
    let server = server().await;
    let subscription = Subscription::on(&server.address().to_string()).await;
    // The client extends, and takes the server's word that it did.
    server.faults().swallow_share(Method::ModifyAckDeadline, 1.0);
    let mut opened = Opened::on(&config(&server, &subscription), LIMITS);
    subscription.publish(["a"]).await;
    let held = opened.next().await;
    assert_eq!(opened.metrics.pubsub_lease_expirations.get(), 0);

    let again = opened.next().await;

    assert_eq!((text(&again), &again.raw.message_id), ("a".to_owned(), &held.raw.message_id));
    assert_eq!(opened.metrics.pubsub_lease_expirations.get(), 1);
    again.acker.ack().await;
    held.acker.ack().await;
    opened.close().await.unwrap();
}
