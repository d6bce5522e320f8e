"""Google's Python client against the server at PUBSUB_EMULATOR_HOST: prints what it saw as one JSON object."""

import json
import queue
import time

from google.cloud import pubsub_v1

PROJECT = "python"
COUNT = 50


def main():
    publisher = pubsub_v1.PublisherClient()
    subscriber = pubsub_v1.SubscriberClient()
    seen = {"streamed": streamed(publisher, subscriber)}
    seen["exactly_once"] = exactly_once(publisher, subscriber)
    seen["pulled"] = pulled(publisher, subscriber)
    seen["lists"] = lists(publisher, subscriber)
    print(json.dumps(seen))


def fresh(publisher, subscriber, name, **settings):
    """A topic and a subscription of the same name."""
    topic = publisher.topic_path(PROJECT, name)
    subscription = subscriber.subscription_path(PROJECT, name)
    publisher.create_topic(name=topic)
    subscriber.create_subscription(
        request={"name": subscription, "topic": topic, "ack_deadline_seconds": 10, **settings}
    )
    return topic, subscription


def publish(publisher, topic, count):
    futures = [publisher.publish(topic, str(n).encode(), number=str(n)) for n in range(count)]
    return [future.result(timeout=30) for future in futures]


def streamed(publisher, subscriber):
    """Acks all but the first delivery of message 7, which is nacked."""
    topic, subscription = fresh(publisher, subscriber, "streamed")
    ids = publish(publisher, topic, COUNT)
    deliveries = queue.Queue()

    def callback(message):
        deliveries.put((message.message_id, message.data == message.attributes["number"].encode()))
        if message.data == b"7" and nacked == []:
            nacked.append(message.message_id)
            message.nack()
        else:
            message.ack()

    nacked = []
    pull = subscriber.subscribe(subscription, callback=callback)
    got = [deliveries.get(timeout=30) for _ in range(COUNT + 1)]
    # Only a shutdown that waits sends the acks that are still queued.
    pull.cancel()
    pull.result(timeout=30)
    twice = sorted(i for i in set(i for i, _ in got) if sum(1 for j, _ in got if i == j) == 2)
    return {
        "distinct": len(set(i for i, _ in got) & set(ids)),
        "intact": all(intact for _, intact in got),
        "twice_is_the_nacked_one": twice == nacked,
    }


def exactly_once(publisher, subscriber):
    """Every ack is confirmed."""
    topic, subscription = fresh(publisher, subscriber, "exactly-once", enable_exactly_once_delivery=True)
    publish(publisher, topic, COUNT)
    acks = queue.Queue()
    pull = subscriber.subscribe(subscription, callback=lambda message: acks.put(message.ack_with_response()))
    results = [acks.get(timeout=30).result(timeout=30).name for _ in range(COUNT)]
    pull.cancel()
    pull.result(timeout=30)
    return {"confirmed": results.count("SUCCESS")}


def pulled(publisher, subscriber):
    """Without an answer the message comes back after its deadline; with deadline 0 at once."""
    topic, subscription = fresh(publisher, subscriber, "pulled")
    publish(publisher, topic, 1)

    def pull():
        while True:
            response = subscriber.pull(subscription=subscription, max_messages=5, timeout=60)
            if response.received_messages:
                return response.received_messages

    first = pull()
    began = time.monotonic()
    second = pull()
    expired_after = time.monotonic() - began
    subscriber.modify_ack_deadline(
        subscription=subscription, ack_ids=[second[0].ack_id], ack_deadline_seconds=0
    )
    began = time.monotonic()
    third = pull()
    nacked_after = time.monotonic() - began
    subscriber.acknowledge(subscription=subscription, ack_ids=[third[0].ack_id])
    return {
        "ack_ids": len({batch[0].ack_id for batch in (first, second, third)}),
        "message_ids": len({batch[0].message.message_id for batch in (first, second, third)}),
        "expired_after": expired_after,
        "nacked_after": nacked_after,
    }


def lists(publisher, subscriber):
    project = f"projects/{PROJECT}"
    return {
        "topics": sorted(topic.name for topic in publisher.list_topics(project=project)),
        "subscriptions": sorted(it.name for it in subscriber.list_subscriptions(project=project)),
    }


main()
