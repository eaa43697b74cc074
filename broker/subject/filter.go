package subject

import "strconv"

// The subjects in this file hold wildcards. They are for stream configurations, filters,
// subscriptions and permissions, never for publishing.

// AllSignals matches every published signal: drover.<ns>.signal.*.*.
func (ns Namespace) AllSignals() string { return ns.start("signal.*.*") }

// AllSignalsStored matches every signal in the signals stream: drover.<ns>.sig.>.
func (ns Namespace) AllSignalsStored() string { return ns.start("sig.>") }

// SignalsOf matches the stored signals of a partition: drover.<ns>.sig.<p>.>.
func (ns Namespace) SignalsOf(p int) string { return ns.part("sig", p) + ".>" }

// Unroutable matches the signals in the signals stream to which the server could give no partition:
// drover.<ns>.signal.>.
func (ns Namespace) Unroutable() string { return ns.start("signal.>") }

// AllIn matches a partition's inbox: drover.<ns>.in.<p>.>.
func (ns Namespace) AllIn(p int) string { return ns.part("in", p) + ".>" }

// AllActOutcomes matches what workers of a list may report, in every partition:
// drover.<ns>.in.*.*.act.<list>.
func (ns Namespace) AllActOutcomes(list string) string { return ns.start("in.*.*.act.") + list }

// AllHistory matches a partition's history, its fence included: drover.<ns>.history.<p>.>.
func (ns Namespace) AllHistory(p int) string { return ns.part("history", p) + ".>" }

// AllRuns matches a partition's runs without its fence: drover.<ns>.history.<p>.*.*.
func (ns Namespace) AllRuns(p int) string { return ns.part("history", p) + ".*.*" }

// AllAlarms matches a partition's alarms: drover.<ns>.alarm.<p>.>.
func (ns Namespace) AllAlarms(p int) string { return ns.part("alarm", p) + ".>" }

// AllTasks matches a list's tasks of all priorities: drover.<ns>.task.<list>.*.
func (ns Namespace) AllTasks(list string) string { return ns.start("task.") + list + ".*" }

// AllDead matches every dead letter: drover.<ns>.dead.>.
func (ns Namespace) AllDead() string { return ns.start("dead.>") }

// AllAPI matches every verb: drover.<ns>.api.*.
func (ns Namespace) AllAPI() string { return ns.start("api.*") }

// AllDecide matches every decision task, sticky ones too: drover.<ns>.decide.>.
func (ns Namespace) AllDecide() string { return ns.start("decide.>") }

// AllAnnounce matches every announcement: drover.<ns>.announce.*.
func (ns Namespace) AllAnnounce() string { return ns.start("announce.*") }

// AllPurged matches what is told of purged runs: drover.<ns>.purged.*.
func (ns Namespace) AllPurged() string { return ns.start("purged.*") }

// AllOwned matches what brokers say of partitions that they serve: drover.<ns>.owned.*.
func (ns Namespace) AllOwned() string { return ns.start("owned.*") }

// AllBeats matches a partition's heartbeats: drover.<ns>.beat.<p>.>.
func (ns Namespace) AllBeats(p int) string { return ns.part("beat", p) + ".>" }

// AllBeatsOf matches the heartbeats of a list in every partition: drover.<ns>.beat.*.*.<list>.
func (ns Namespace) AllBeatsOf(list string) string { return ns.start("beat.*.*.") + list }

// AllOutcomes matches what a partition's owner is given by workers: drover.<ns>.outcome.<p>.>.
func (ns Namespace) AllOutcomes(p int) string { return ns.part("outcome", p) + ".>" }

// AllOutcomesOf matches what workers of a list may give to owners, in every partition:
// drover.<ns>.outcome.*.*.<list>.
func (ns Namespace) AllOutcomesOf(list string) string { return ns.start("outcome.*.*.") + list }

// AllControl matches what nodes are told: drover.<ns>.control.*.
func (ns Namespace) AllControl() string { return ns.start("control.*") }

// AllOperations matches every operation: drover.<ns>.operation.>.
func (ns Namespace) AllOperations() string { return ns.start("operation.>") }

// AllEvents matches what is reserved for the live feed: drover.<ns>.event.>.
func (ns Namespace) AllEvents() string { return ns.start("event.>") }

// All matches every subject of the namespace: drover.<ns>.>.
func (ns Namespace) All() string { return ns.start(">") }

// tasksInfix separates namespace and list in the name of a task stream; see ValidateNamespace.
const tasksInfix = "-tasks-"

func (ns Namespace) name(what string) string { return Root + "-" + string(ns) + "-" + what }

// StreamIn is the inbox stream of a partition: drover-<ns>-in-<p>.
func (ns Namespace) StreamIn(p int) string { return ns.name("in-") + strconv.Itoa(p) }

// StreamHistory is the history stream of a partition: drover-<ns>-history-<p>.
func (ns Namespace) StreamHistory(p int) string { return ns.name("history-") + strconv.Itoa(p) }

// StreamAlarms is the alarm stream of a partition: drover-<ns>-alarms-<p>.
func (ns Namespace) StreamAlarms(p int) string { return ns.name("alarms-") + strconv.Itoa(p) }

// StreamSignals is the signals stream: drover-<ns>-signals.
func (ns Namespace) StreamSignals() string { return ns.name("signals") }

// StreamTasks is the work queue of a list: drover-<ns>-tasks-<list>.
func (ns Namespace) StreamTasks(list string) string {
	return Root + "-" + string(ns) + tasksInfix + list
}

// The durable consumers of each list's stream.
const (
	// ConsumerHigh gives the tasks of a priority above 0.
	ConsumerHigh = "workers-high"
	// Consumer gives the tasks without priority.
	Consumer = "workers"
	// ConsumerLow gives the tasks of a priority below 0.
	ConsumerLow = "workers-low"
)

// Consumers are the consumers of each list's stream in the order in which a worker should ask them.
func Consumers() []string { return []string{ConsumerHigh, Consumer, ConsumerLow} }

// ConsumerOf is the consumer that gives the tasks of a priority.
func ConsumerOf(priority int) string {
	switch {
	case priority > 0:
		return ConsumerHigh
	case priority < 0:
		return ConsumerLow
	}
	return Consumer
}

// StreamOperations holds what was done by the namespace itself and by operators:
// drover-<ns>-operations.
func (ns Namespace) StreamOperations() string { return ns.name("operations") }

// StreamDead is the stream of dead letters: drover-<ns>-dead.
func (ns Namespace) StreamDead() string { return ns.name("dead") }

// BucketClaims holds the leases: drover-<ns>-claims.
func (ns Namespace) BucketClaims() string { return ns.name("claims") }

// BucketCheckpoints holds the positions: drover-<ns>-checkpoints.
func (ns Namespace) BucketCheckpoints() string { return ns.name("checkpoints") }

// BucketLocks holds the locks: drover-<ns>-locks.
func (ns Namespace) BucketLocks() string { return ns.name("locks") }

// BucketState holds the flows' state keys: drover-<ns>-state.
func (ns Namespace) BucketState() string { return ns.name("state") }

// BucketTypes holds the registered types: drover-<ns>-types.
func (ns Namespace) BucketTypes() string { return ns.name("types") }

// BucketFlows holds the deployed flows and step types: drover-<ns>-flows.
func (ns Namespace) BucketFlows() string { return ns.name("flows") }

// BucketSchedules holds schedules, periods, always-on workflows and the recycle:
// drover-<ns>-schedules.
func (ns Namespace) BucketSchedules() string { return ns.name("schedules") }

// StorePayloads is the object store of large payloads: drover-<ns>-payloads.
func (ns Namespace) StorePayloads() string { return ns.name("payloads") }

// BucketNodes holds the nodes; they serve all namespaces.
const BucketNodes = "drover-nodes"
