"""A handler that costs next to nothing: answers 204 to every POST and counts the calls of each Idempotency-Key.

    handler.py EVENTS

Prints its port, `first` at the first call, `all` when EVENTS different keys were seen, and at the end of its standard
input a JSON object: calls, events (different keys), seconds from the first call to the last new key.
"""

import json
import select
import socket
import sys
import time

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
expected = int(sys.argv[1])
seen = set()
calls = 0
began = ended = 0.0


def say(what):
    print(what, flush=True)


def value(head, lower, name):
    start = lower.index(b"\r\n" + name + b":") + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else None].strip()


def take(buffer):
    """Counts the requests that are whole in the buffer; gives their number and what is left."""
    global calls, began, ended
    count = 0
    while (cut := buffer.find(b"\r\n\r\n")) >= 0:
        head = buffer[:cut]
        lower = head.lower()
        end = cut + 4 + int(value(head, lower, b"content-length"))
        if len(buffer) < end:
            break
        buffer = buffer[end:]
        count += 1
        calls += 1
        key = value(head, lower, b"idempotency-key")
        if key not in seen:
            seen.add(key)
            ended = time.monotonic()
            if len(seen) == 1:
                began = ended
                say("first")
            if len(seen) == expected:
                say("all")
    return count, buffer


def serve():
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    say(listener.getsockname()[1])
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    connections = {}
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                return  # nothing is ever written there: this is its end
            if fd == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = [connection, b""]
                poll.register(connection, select.EPOLLIN)
                continue
            entry = connections[fd]
            try:
                got = entry[0].recv(65536)
                if got:
                    count, entry[1] = take(entry[1] + got)
                    if count:
                        entry[0].sendall(ANSWER * count)
                    continue
            except OSError:
                pass
            poll.unregister(fd)
            connections.pop(fd)[0].close()


serve()
say(json.dumps({"calls": calls, "events": len(seen), "seconds": ended - began}))
