"""The usual worker, in Python: one INSERT per event against doubles, the HTTP call, the ack, in a pool of threads.

What bellhop promises beyond that (an event whose worker dies after the INSERT) it does not do.
"""

import concurrent.futures
import http.client
import json
import os
import threading
import urllib.parse

import psycopg
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler

FLOW = 256
THREADS = 16
URL = urllib.parse.urlsplit(os.environ["HANDLER"])
own = threading.local()  # each thread keeps its connections


def call(key, body):
    headers = {"idempotency-key": key, "content-type": "application/json", "content-length": str(len(body))}
    own.http.request("POST", URL.path, body, headers)
    response = own.http.getresponse()
    response.read()
    if response.status != 204:
        raise RuntimeError(f"the handler said {response.status}")


def handle(message):
    if not hasattr(own, "http"):
        own.database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        own.http = http.client.HTTPConnection(URL.hostname, URL.port)
    event = json.loads(message.data)
    key = f"{event['message']['name']} {event['eventTime']}"
    claim = own.database.execute("INSERT INTO handled (id) VALUES (%s) ON CONFLICT DO NOTHING", (key,))
    if claim.rowcount == 1:
        call(key, message.data)
    message.ack()


subscriber = pubsub_v1.SubscriberClient()
subscriber.subscribe(
    subscriber.subscription_path(os.environ["PROJECT"], os.environ["SUBSCRIPTION"]),
    callback=handle,
    flow_control=pubsub_v1.types.FlowControl(max_messages=FLOW),
    scheduler=ThreadScheduler(concurrent.futures.ThreadPoolExecutor(THREADS)),
).result()
