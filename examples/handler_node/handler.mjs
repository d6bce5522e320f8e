// A bellhop handler without dependencies: node handler.mjs [PORT], or PORT in the environment.
import { createServer } from "node:http";

const answers = new Map(); // event id -> promise of an answer. A real bot keeps this in its database.

// The bot itself: gets an event, returns a reply or nothing.
async function handle(event) {
  const message = event.message ?? event.chat?.messagePayload?.message;
  if (message?.text) return { text: `Event ${answers.size + 1} said: ${message.text}` };
}

async function answer(body) {
  let event;
  try {
    event = JSON.parse(body);
  } catch {
    return { status: 400, reply: { error: "not an event" } }; // no retry will help
  }
  return { status: 200, reply: await handle(event) };
}

const server = createServer(async (request, response) => {
  const key = request.headers["idempotency-key"];
  const chunks = await request.toArray();
  try {
    // The same event may come again, with a higher Bellhop-Epoch: it gets the answer it got, or is about to get.
    if (!answers.has(key)) answers.set(key, answer(Buffer.concat(chunks)));
    const { status, reply } = await answers.get(key);
    response.writeHead(status).end(reply && JSON.stringify(reply));
  } catch (error) {
    answers.delete(key); // not done: bellhop comes again
    console.error(error);
    response.writeHead(500).end();
  }
});
server.listen(process.argv[2] ?? process.env.PORT ?? 9000, "127.0.0.1", () => {
  console.log(`Ready on http://127.0.0.1:${server.address().port}/events`);
});
