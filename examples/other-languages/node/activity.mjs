// Activity worker of the task list "billing". Any number of these may run.
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, createInbox } from "@nats-io/transport-node";

const ns = process.env.DROVER_NAMESPACE ?? "default";
const list = "billing";
const maxResult = 256 << 10;
const inboxPrefix = process.env.NATS_INBOX ?? "_INBOX";
const nc = await connect({
  servers: (process.env.NATS_URL ?? "nats://127.0.0.1:4222").split(","), user: process.env.NATS_USER, pass: process.env.NATS_PASSWORD,
  inboxPrefix, maxReconnectAttempts: -1,
});
const ask = async (subject, body, timeout = 5000) => (await nc.request(subject, JSON.stringify(body), { timeout })).json();

// What runs for each type of activity. What it throws fails the activity; the reason is the error's code, if that is a text, or its name.
const activities = {
  async charge(item, beat) {
    if (item === "poison") throw Object.assign(new Error("nobody may buy poison"), { code: "forbidden" });
    await beat({ asked: item }); // long activities do so again and again
    return `${item}: charged by Node`;
  },
};

class Stop extends Error {} // the activity is canceled, or nobody waits for it any more

// store publishes a report until JetStream has stored it.
async function store(task, report) {
  for (;; await sleep(500)) {
    const ack = await ask(task.report, { ...report, token: task.token }).catch((err) => ({ error: err }));
    if (!ack.error) return;
    console.error("a report is not stored, trying again:", ack.error);
  }
}

// permission asks the owner of the workflow whether this delivery may run, with one nonce however often it must ask.
async function permission(task, origin) {
  const replyTo = createInbox(inboxPrefix);
  let answered;
  const answer = new Promise((resolve) => { answered = resolve; });
  const sub = nc.subscribe(replyTo, { callback: (_, m) => m.json().nonce === origin.nonce && answered(m.json()) });
  try {
    for (;;) {
      await store(task, { ...origin, kind: "begin", replyTo });
      const permission = await Promise.race([answer, sleep(5000)]);
      if (permission) return permission;
    }
  } finally {
    sub.unsubscribe();
  }
}

// run returns the outcome, or nothing if it is no longer wanted.
async function run(task) {
  let told = {};
  const beat = async (details) => {
    told = await ask(task.beat, { token: task.token, details }, 2000).catch(() => ({})); // the next one may get through
    if (told.gone || told.cancelRequested) throw new Stop(told.reason);
  };
  try {
    const result = await activities[task.type](task.input, beat, task);
    if (Buffer.byteLength(JSON.stringify(result ?? null)) > maxResult) {
      return { kind: "failed", reason: "result-too-large", details: "store it elsewhere and return where" };
    }
    return { kind: "success", result };
  } catch (err) {
    if (err instanceof Stop) return told.gone ? undefined : { kind: "canceled" };
    const code = typeof err?.code === "string" && err.code; // those of fetch that is out of time, and others, are numbers
    return { kind: "failed", reason: code || err?.name || "failed", details: err?.message ?? String(err) };
  }
}

async function work(m) {
  const task = m.json();
  if (!activities[task.type]) return nc.publish(m.reply, '-NAK {"delay": 5000000000}'); // others may know it
  const t = m.reply.split("."); // $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.…
  const [delivered, taskSequence] = t.slice(t.length > 9 ? 6 : 4).map(Number);
  const origin = { identity: `${hostname()}:${process.pid} in Node`, nonce: randomUUID(), taskSequence, redelivered: delivered > 1 };
  const lease = setInterval(() => nc.publish(m.reply, "+WPI"), 3000); // else the server gives the task to another
  try {
    if (task.notIdempotent || origin.redelivered) {
      const { go, leave, token, attempt } = await permission(task, origin);
      if (leave) return; // neither run nor settled: another worker is at it, and its message must stay
      if (!go) return nc.publish(m.reply, "+ACK");
      Object.assign(task, { token, attempt });
    } else {
      await store(task, { ...origin, kind: "started" });
    }
    const outcome = await run(task);
    if (outcome) await store(task, outcome);
    nc.publish(m.reply, "+ACK");
  } finally {
    clearInterval(lease);
  }
}

const working = new Set();
let stopping = false;

// pull takes one task after the other from a consumer. Each priority has its own, so that urgent tasks wait for no others.
async function pull(consumer) {
  while (!stopping) {
    // noMux: a task comes to the reply subject under a subject of its own, by which nats.js would not find the request
    const m = await nc.request(`$JS.API.CONSUMER.MSG.NEXT.drover-${ns}-tasks-${list}.${consumer}`,
      JSON.stringify({ batch: 1, expires: 20e9 }), { timeout: 25000, noMux: true }).catch(() => undefined);
    if (!m?.reply) { await sleep(200); continue; } // nothing to do, or nobody there
    if (stopping) { m.respond("-NAK"); continue; } // somebody else gets it at once
    const job = work(m).catch(console.error);
    working.add(job);
    await job;
    working.delete(job);
  }
}

process.once("SIGTERM", async () => {
  stopping = true;
  await Promise.all(working);
  await nc.drain();
});
while (!stopping) { // the list's stream is made on its first use
  const answer = await ask(`drover.${ns}.api.tasklist`, { list }).catch((err) => ({ error: err }));
  if (!answer.error) break;
  await sleep(1000);
}
["workers-high", "workers", "workers-low"].forEach(pull);
await nc.closed();
process.exit();
