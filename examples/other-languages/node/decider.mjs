// Decider of the workflow type "order": its items are charged, one after the other. Any number of these may run.
import { hostname } from "node:os";
import { connect } from "@nats-io/transport-node";

const ns = process.env.DROVER_NAMESPACE ?? "default";
const inboxPrefix = process.env.NATS_INBOX ?? "_INBOX";
const nc = await connect({
  servers: (process.env.NATS_URL ?? "nats://127.0.0.1:4222").split(","), user: process.env.NATS_USER, pass: process.env.NATS_PASSWORD,
  inboxPrefix, maxReconnectAttempts: -1,
});

// decide gets what the last decision left, and the events since then. It returns decisions, and what to leave for the next.
function decide(state, events) {
  state ??= { items: [], charged: [], scheduled: 0 };
  for (const { type, attributes: a } of events) {
    switch (type) {
      case "WorkflowStarted": state.items = a.input.items; break;
      case "ActivitySuccess": state.charged.push(a.result); break;
      case "ActivityFailed": case "ActivityTimedOut": case "ActivityScheduledTimeout":
      case "ActivityCanceled": case "ActivityScheduleFailed":
        state.failed = a.reason ?? a.cause ?? type; break;
      case "WorkflowCancelRequested": state.canceled = true; break;
    }
  }
  const { items, charged, scheduled } = state;
  if (state.failed) return [[{ type: "FailWorkflow", attributes: { reason: state.failed } }], state];
  if (scheduled > charged.length) return [[], state]; // wait for the one that is open
  if (state.canceled) return [[{ type: "CancelWorkflow", attributes: { details: { charged } } }], state];
  if (charged.length === items.length) return [[{ type: "CompleteWorkflow", attributes: { result: { charged } } }], state];
  state.scheduled++;
  return [[{ type: "ScheduleActivity", attributes: {
    activityId: `charge-${scheduled + 1}`, activityType: "charge", list: "billing", input: items[scheduled],
    notIdempotent: true, startToCloseTimeout: 60,
  } }], state];
}

// window is what is new to the decider. A large one is continued in the history.
async function window(task) {
  const events = [...task.events];
  for (let last; task.more && (last = events.at(-1)?.id ?? task.previousStartedId) < task.startedId;) {
    const question = { workflowId: task.workflowId, run: task.run, after: last };
    const page = (await nc.request(`drover.${ns}.api.history`, JSON.stringify(question), { timeout: 5000 })).json();
    if (page.error) throw new Error(page.error.message);
    events.push(...page.events.filter((e) => e.id <= task.startedId));
  }
  return events;
}

async function answer(task) {
  const reply = { token: task.token, identity: `${hostname()}:${process.pid} in Node` };
  try {
    [reply.decisions, reply.context] = decide(task.context, await window(task));
  } catch (err) {
    reply.error = { reason: err.message, details: err.stack };
  }
  return JSON.stringify(reply);
}

nc.subscribe(`drover.${ns}.decide.order`, {
  queue: "deciders",
  callback: async (err, m) => err ? console.error(err) : m.respond(await answer(m.json())),
});
nc.publish(`drover.${ns}.announce.order`); // whoever waits for a decider is asked at once
process.once("SIGTERM", () => nc.drain());
await nc.closed();
