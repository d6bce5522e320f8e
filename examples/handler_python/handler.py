#!/usr/bin/env python3
"""A bellhop handler with nothing but the standard library: handler.py [PORT], or PORT in the environment."""
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

answers = {}  # event id -> (status, reply), or a mark while it runs. A real bot keeps it in its database.


def handle(event):
    """The bot itself: gets an event, returns a reply or None."""
    message = event.get("message") or event.get("chat", {}).get("messagePayload", {}).get("message", {})
    return {"text": f"Event {len(answers)} said: {message['text']}"} if message.get("text") else None


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        key, body = self.headers["Idempotency-Key"], self.rfile.read(int(self.headers["Content-Length"]))
        mine = object()
        known = answers.setdefault(key, mine)  # the same event may come again, with a higher Bellhop-Epoch
        if known is not mine:
            return self.answer(*known) if isinstance(known, tuple) else self.answer(409)  # 409: still at it
        try:
            answers[key] = (200, handle(json.loads(body)))
        except (ValueError, AttributeError):
            answers[key] = (400, {"error": "not an event"})  # no retry will help
        except Exception as error:
            del answers[key]  # not done: bellhop comes again
            return self.answer(500, {"error": repr(error)})
        self.answer(*answers[key])

    def answer(self, status, reply=None):
        body = json.dumps(reply).encode() if reply else b""
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int((sys.argv[1:] or [os.environ.get("PORT", 9000)])[0])), Handler)
print(f"Ready on http://127.0.0.1:{server.server_port}/events", flush=True)
server.serve_forever()
