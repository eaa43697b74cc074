"""Activity worker of the task list "billing". Any number of these may run."""

import json
import os
import signal
import socket
import sys
import threading
import time
import uuid

from nats import Nats, new_inbox

NAMESPACE = os.environ.get("DROVER_NAMESPACE", "default")
LIST = "billing"
IDENTITY = f"{socket.gethostname()}:{os.getpid()} in Python"
MAX_RESULT = 256 << 10
stopping = threading.Event()
working = set()
strange = {}  # when a task of an unknown type was here last, by its sequence


class Stop(Exception):
    """The activity is canceled, or nobody waits for it any more."""


class Failure(Exception):
    """Fails the activity for a reason that a decider can compare."""

    def __init__(self, reason, details=None):
        json.dumps(details, allow_nan=False)  # what is no JSON fails here, and not when it is reported
        self.reason, self.details = str(reason), details


def charge(item, beat):
    if item == "poison":
        raise Failure("forbidden", "nobody may buy poison")
    beat({"asked": item})  # long activities do so again and again
    return f"{item}: charged by Python"


ACTIVITIES = {"charge": charge}  # what runs for each type of activity


class Delivery:
    """A task in hand."""

    def __init__(self, nats, message):
        self.nats, self.reply, self.task = nats, message.reply, message.json()
        t = message.reply.split(".")  # $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.…
        delivered, sequence = map(int, t[6:8] if len(t) > 9 else t[4:6])
        self.origin = {"identity": IDENTITY, "nonce": uuid.uuid4().hex, "taskSequence": sequence, "redelivered": delivered > 1}
        self.told = {}

    def store(self, report):
        """Publishes a report until JetStream has stored it."""
        while "error" in (ack := self.nats.ask(self.task["report"], report | {"token": self.task["token"]})):
            print("a report is not stored, trying again:", ack["error"], file=sys.stderr)
            time.sleep(0.5)

    def permission(self):
        """Asks the owner of the workflow whether this delivery may run, with one nonce however often it must ask."""
        inbox = new_inbox()
        with self.nats.subscribe(inbox) as answers:
            while True:
                self.store(self.origin | {"kind": "begin", "replyTo": inbox})
                m = answers.next(5)
                if m and m.json()["nonce"] == self.origin["nonce"]:
                    return m.json()

    def beat(self, details=None):
        told = self.nats.ask(self.task["beat"], {"token": self.task["token"], "details": details}, 2)
        if told.get("gone") or told.get("cancelRequested"):
            self.told = told
            raise Stop

    def run(self):
        """Returns the outcome, or nothing if it is no longer wanted."""
        try:
            result = ACTIVITIES[self.task["type"]](self.task.get("input"), self.beat)
            if len(json.dumps(result, allow_nan=False)) > MAX_RESULT:
                raise Failure("result-too-large", "store it elsewhere and return where")
            return {"kind": "success", "result": result}
        except Stop:
            return None if self.told.get("gone") else {"kind": "canceled"}
        except Failure as err:
            return {"kind": "failed", "reason": err.reason, "details": err.details}
        except Exception as err:
            return {"kind": "failed", "reason": type(err).__name__, "details": str(err)}

    def pass_on(self):
        """Hands a task of an unknown type to the next worker that waits. If it comes back at once nobody there knows it, and it rests for a while."""
        now, last = time.monotonic(), strange.get(self.origin["taskSequence"], 0)
        if len(strange) > 1000:
            strange.clear()
        strange[self.origin["taskSequence"]] = now
        return b'-NAK {"delay": 5000000000}' if now - last < 1 else b"-NAK"

    def work(self):
        if self.task["type"] not in ACTIVITIES:
            return self.nats.publish(self.reply, self.pass_on())
        done = threading.Event()
        threading.Thread(target=self.keep, args=(done,), daemon=True).start()
        try:
            if self.task.get("notIdempotent") or self.origin["redelivered"]:
                permission = self.permission()
                if permission.get("leave"):
                    return  # neither run nor settled: another worker is at it, and its message must stay
                if not permission["go"]:
                    return self.nats.publish(self.reply, b"+ACK")
                self.task |= {"token": permission["token"], "attempt": permission["attempt"]}
            else:
                self.store(self.origin | {"kind": "started"})
            if outcome := self.run():
                self.store(outcome)
            self.nats.publish(self.reply, b"+ACK")
        finally:
            done.set()

    def keep(self, done):
        while not done.wait(3):
            self.nats.publish(self.reply, b"+WPI")  # else the server gives the task to another


def pull(nats, consumer):
    """Takes one task after the other. Each priority has a consumer of its own, so that urgent tasks wait for no others."""
    subject = f"$JS.API.CONSUMER.MSG.NEXT.drover-{NAMESPACE}-tasks-{LIST}.{consumer}"
    while not stopping.is_set():
        m = nats.request(subject, {"batch": 1, "expires": 20_000_000_000}, 25)
        if not m or not m.reply:
            stopping.wait(0.2)  # nothing to do, or nobody there
            continue
        working.add(consumer)
        if stopping.is_set():
            nats.publish(m.reply, b"-NAK")  # somebody else gets it at once
        else:
            Delivery(nats, m).work()
        working.discard(consumer)


def fatal(failure):
    """A thread that has failed would take no more tasks: the process ends, and whoever watches over it starts it again."""
    sys.excepthook(failure.exc_type, failure.exc_value, failure.exc_traceback)
    os._exit(1)


def main():
    threading.excepthook = fatal
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    nats = Nats(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    while "error" in nats.ask(f"drover.{NAMESPACE}.api.tasklist", {"list": LIST}):  # its stream is made on the first use
        time.sleep(1)
    for consumer in ("workers-high", "workers", "workers-low"):
        threading.Thread(target=pull, args=(nats, consumer), daemon=True).start()
    stopping.wait()
    while working:
        time.sleep(0.1)


main()
