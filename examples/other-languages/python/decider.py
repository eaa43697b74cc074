"""Decider of the workflow type "order": its items are charged, one after the other. Any number of these may run."""

import json
import os
import signal
import socket
import sys
import traceback

from nats import Nats

NAMESPACE = os.environ.get("DROVER_NAMESPACE", "default")
IDENTITY = f"{socket.gethostname()}:{os.getpid()} in Python"
FAILURES = {"ActivityFailed", "ActivityTimedOut", "ActivityScheduledTimeout", "ActivityCanceled", "ActivityScheduleFailed"}


def decide(state, events):
    """Gets what the last decision left, and the events since then. Returns decisions, and what to leave for the next."""
    state = state or {"items": [], "charged": [], "scheduled": 0}
    for event in events:
        kind, attributes = event["type"], event["attributes"]
        if kind == "WorkflowStarted":
            state["items"] = attributes["input"]["items"]
        elif kind == "ActivitySuccess":
            state["charged"].append(attributes.get("result"))  # null is left out
        elif kind in FAILURES:
            state["failed"] = attributes.get("reason") or attributes.get("cause") or kind
        elif kind == "WorkflowCancelRequested":
            state["canceled"] = True
    return [{"type": kind, "attributes": attributes} for kind, attributes in step(state)], state


def step(state):
    charged, scheduled = state["charged"], state["scheduled"]
    if "failed" in state:
        yield "FailWorkflow", {"reason": state["failed"]}
    elif scheduled > len(charged):
        pass  # wait for the one that is open
    elif "canceled" in state:
        yield "CancelWorkflow", {"details": {"charged": charged}}
    elif len(charged) == len(state["items"]):
        yield "CompleteWorkflow", {"result": {"charged": charged}}
    else:
        state["scheduled"] += 1
        yield "ScheduleActivity", {
            "activityId": f"charge-{scheduled + 1}", "activityType": "charge", "list": "billing",
            "input": state["items"][scheduled], "notIdempotent": True, "startToCloseTimeout": 60,
        }


def window(nats, task):
    """What is new to the decider. A large window is continued in the history."""
    events, last = task["events"], task["previousStartedId"]
    while task.get("more") and (last := events[-1]["id"] if events else last) < task["startedId"]:
        question = {"workflowId": task["workflowId"], "run": task["run"], "after": last}
        page = nats.ask(f"drover.{NAMESPACE}.api.history", question)
        if "error" in page:
            raise RuntimeError(f"the history cannot be read: {page['error']}")
        events += [e for e in page["events"] if e["id"] <= task["startedId"]]
    return events


def answer(nats, task):
    reply = {"token": task["token"], "identity": IDENTITY}
    try:
        reply["decisions"], reply["context"] = decide(task.get("context"), window(nats, task))
    except Exception as err:
        reply["error"] = {"reason": str(err), "details": traceback.format_exc()}
    return json.dumps(reply).encode()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    nats = Nats(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    with nats.subscribe(f"drover.{NAMESPACE}.decide.order", "deciders") as tasks:
        nats.publish(f"drover.{NAMESPACE}.announce.order")  # whoever waits for a decider is asked at once
        while True:
            m = tasks.next()
            nats.publish(m.reply, answer(nats, m.json()))


main()
