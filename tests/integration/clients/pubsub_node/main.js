// Google's Node client against the server at PUBSUB_EMULATOR_HOST: prints what it saw as one JSON object.
// It finds the library through NODE_PATH.
'use strict';

const {PubSub, v1} = require('@google-cloud/pubsub');
const {grpc} = require('google-gax');

const COUNT = 50;
const projectId = 'node';
const pubsub = new PubSub({projectId});

async function main() {
  const seen = {
    streamed: await streamed(),
    exactly_once: await exactlyOnce(),
    pulled: await pulled(),
  };
  console.log(JSON.stringify(seen));
}

// A topic and a subscription of the same name.
async function fresh(name, settings = {}) {
  const [topic] = await pubsub.createTopic(name);
  const [subscription] = await topic.createSubscription(name, {ackDeadlineSeconds: 10, ...settings});
  return {topic, subscription};
}

function publish(topic, count) {
  const numbers = [...Array(count).keys()].map(String);
  return Promise.all(numbers.map(number => topic.publishMessage({data: Buffer.from(number), attributes: {number}})));
}

// Hands each message to `handle` until that returned `count` times.
function receive(subscription, count, handle) {
  return new Promise((resolve, reject) => {
    const results = [];
    subscription.on('error', reject);
    subscription.on('message', message => {
      results.push(handle(message));
      if (results.length === count) resolve(Promise.all(results));
    });
  });
}

// Acks all but the first delivery of message 7, which is nacked.
async function streamed() {
  const {topic, subscription} = await fresh('streamed');
  const ids = await publish(topic, COUNT);
  const nacked = [];
  const got = await receive(subscription, COUNT + 1, message => {
    if (message.data.toString() === '7' && nacked.length === 0) {
      nacked.push(message.id);
      message.nack();
    } else {
      message.ack();
    }
    return {id: message.id, intact: message.data.toString() === message.attributes.number};
  });
  await subscription.close();
  const twice = ids.filter(id => got.filter(it => it.id === id).length === 2);
  return {
    distinct: ids.filter(id => got.some(it => it.id === id)).length,
    intact: got.every(it => it.intact),
    twice_is_the_nacked_one: JSON.stringify(twice) === JSON.stringify(nacked),
  };
}

// Every ack is confirmed.
async function exactlyOnce() {
  const {topic, subscription} = await fresh('exactly-once', {enableExactlyOnceDelivery: true});
  await publish(topic, COUNT);
  const results = await receive(subscription, COUNT, message => message.ackWithResponse());
  await subscription.close();
  return {confirmed: results.filter(result => result === 'SUCCESS').length};
}

// Without an answer the message comes back after its deadline; with deadline 0 at once.
async function pulled() {
  const {topic, subscription: {name: subscription}} = await fresh('pulled');
  await publish(topic, 1);
  const [servicePath, port] = process.env.PUBSUB_EMULATOR_HOST.split(':');
  const client = new v1.SubscriberClient({
    projectId, servicePath, port: Number(port), sslCreds: grpc.credentials.createInsecure(),
  });
  const pull = async () => {
    for (;;) {
      const [response] = await client.pull({subscription, maxMessages: 5});
      if (response.receivedMessages.length > 0) return response.receivedMessages[0];
    }
  };
  const timed = async () => {
    const began = process.hrtime.bigint();
    const message = await pull();
    return {message, seconds: Number(process.hrtime.bigint() - began) / 1e9};
  };

  const first = await pull();
  const second = await timed();
  await client.modifyAckDeadline({subscription, ackIds: [second.message.ackId], ackDeadlineSeconds: 0});
  const third = await timed();
  await client.acknowledge({subscription, ackIds: [third.message.ackId]});
  await client.close();
  const all = [first, second.message, third.message];
  return {
    ack_ids: new Set(all.map(it => it.ackId)).size,
    message_ids: new Set(all.map(it => it.message.messageId)).size,
    expired_after: second.seconds,
    nacked_after: third.seconds,
  };
}

main().then(() => process.exit(0), error => {
  console.error(error);
  process.exit(1);
});
