// The usual worker, in Node: one INSERT per event against doubles, the HTTP call, the ack. It finds its libraries
// through NODE_PATH. What bellhop promises beyond that (an event whose worker dies after the INSERT) it does not do.
'use strict';

const http = require('node:http');
const {PubSub} = require('@google-cloud/pubsub');
const {Pool} = require('pg');

const FLOW = 256;
const {PROJECT, SUBSCRIPTION, DATABASE_URL, HANDLER} = process.env;
const {hostname, port, pathname} = new URL(HANDLER);
const agent = new http.Agent({keepAlive: true, maxSockets: FLOW});
const pool = new Pool({connectionString: DATABASE_URL, max: 10});
const claim = {name: 'claim', text: 'INSERT INTO handled (id) VALUES ($1) ON CONFLICT DO NOTHING'};

function call(key, body) {
  return new Promise((resolve, reject) => {
    const headers = {'idempotency-key': key, 'content-type': 'application/json', 'content-length': body.length};
    const request = http.request({hostname, port, path: pathname, method: 'POST', agent, headers}, response => {
      response.resume();
      response.on('end', () => (response.statusCode === 204 ? resolve() : reject(new Error(response.statusCode))));
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function handle(message) {
  const event = JSON.parse(message.data);
  const key = `${event.message.name} ${event.eventTime}`;
  const {rowCount} = await pool.query({...claim, values: [key]});
  if (rowCount === 1) await call(key, message.data);
  message.ack();
}

const pubsub = new PubSub({projectId: PROJECT});
const subscription = pubsub.subscription(SUBSCRIPTION, {flowControl: {maxMessages: FLOW}});
subscription.on('error', error => {
  console.error(error);
  process.exit(1);
});
subscription.on('message', message => {
  handle(message).catch(error => {
    console.error(error);
    message.nack();
  });
});
