"""As much of NATS's protocol as a worker needs, with the standard library alone. It knows no TLS and does not reconnect:
when the connection is lost the process ends, and whoever watches over it starts it again."""

import json
import os
import queue
import socket
import sys
import threading
import urllib.parse
import uuid


def new_inbox():
    return os.environ.get("NATS_INBOX", "_INBOX") + "." + uuid.uuid4().hex


class Message:
    def __init__(self, reply, data, status):
        self.reply, self.data, self.status = reply, data, status  # status: "" of a real message, "408" and so on of the server's

    def json(self):
        return json.loads(self.data)


class Subscription:
    """What comes by a subject: in a with statement, to end it."""

    def __init__(self, nats, subject, group):
        self.nats, self.sid, self.queue = nats, uuid.uuid4().hex, queue.SimpleQueue()
        nats.subscriptions[self.sid] = self
        nats.send(f"SUB {subject} {group} {self.sid}\r\n".encode())

    def next(self, timeout=None):
        """The next message, or None after so many seconds."""
        try:
            return self.queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.nats.send(f"UNSUB {self.sid}\r\n".encode())
        del self.nats.subscriptions[self.sid]


def connect(urls):
    """Connects to the first address that answers."""
    for i, url in enumerate(urls):
        at = urllib.parse.urlsplit(url.strip())
        try:
            return socket.create_connection((at.hostname, at.port or 4222))
        except OSError:
            if i == len(urls) - 1:
                raise


class Nats:
    """A connection. All methods may be called by several threads."""

    def __init__(self, urls):
        self.socket = connect(urls.split(","))
        self.stream, self.lock, self.subscriptions = self.socket.makefile("rb"), threading.Lock(), {}
        self.stream.readline()  # INFO
        options = {"verbose": False, "headers": True, "no_responders": True, "lang": "python", "version": "1"}
        if user := os.environ.get("NATS_USER"):
            options |= {"user": user, "pass": os.environ.get("NATS_PASSWORD", "")}
        self.send(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
        if (answer := self.stream.readline()) != b"PONG\r\n":
            raise ConnectionError(answer.decode().strip())
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line):
        with self.lock:
            self.socket.sendall(line)

    def publish(self, subject, body=b"", reply=""):
        self.send(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def subscribe(self, subject, group=""):
        return Subscription(self, subject, group)

    def request(self, subject, body, timeout=5):
        """The answer's message, or None if there is none in time; its status is "503" if nobody listens."""
        inbox = new_inbox()
        with self.subscribe(inbox) as answers:
            self.publish(subject, json.dumps(body).encode(), inbox)
            return answers.next(timeout)

    def ask(self, subject, body, timeout=5):
        """The answer's JSON, or an object with "error"."""
        m = self.request(subject, body, timeout)
        return m.json() if m and m.data else {"error": f"nobody answers to {subject}"}

    def _read(self):
        try:
            while line := self.stream.readline():
                verb, *args = line.decode().split()
                if verb == "PING":
                    self.send(b"PONG\r\n")
                elif verb in ("MSG", "HMSG"):  # subject, sid, reply if there is one, size of the headers in HMSG, size
                    data, head = self.stream.read(int(args[-1]) + 2)[:-2], b""
                    if verb == "HMSG":
                        size = int(args.pop(-2))
                        head, data = data[:size], data[size:]
                    status = head.split(b"\r\n")[0].decode().split()[1:2]  # NATS/1.0 408 Request Timeout
                    if sub := self.subscriptions.get(args[1]):
                        sub.queue.put(Message(args[2] if len(args) == 4 else "", data, "".join(status)))
                elif verb == "-ERR":
                    print(line.decode().strip(), file=sys.stderr)
        finally:
            print("the connection to NATS is lost", file=sys.stderr)
            os._exit(1)
