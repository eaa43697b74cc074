package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric is one of the metrics that a server shows.
type Metric struct {
	Name   string // with its prefix
	Kind   Kind
	Labels []string
	Help   string

	desc *prometheus.Desc
	at   int // in the table
}

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Table returns all metrics, in the order of the reference.
func Table() []Metric {
	all := make([]Metric, len(table))
	for i, m := range table {
		all[i] = *m
	}
	return all
}

var table []*Metric

// metric adds one to the table. Labels are words; their order is that of the values in a sample.
func metric(kind Kind, name, labels, help string) *Metric {
	m := &Metric{Name: "drover_" + name, Kind: kind, Labels: strings.Fields(labels), Help: help}
	m.desc = prometheus.NewDesc(m.Name, help, m.Labels, nil)
	m.at = len(table)
	table = append(table, m)
	return m
}

// The metrics. Names are append-only.
var (
	runsStarted = metric(Counter, "runs_started_total", "namespace type",
		"Runs that began, by workflow type.")
	runsClosed = metric(Counter, "runs_closed_total", "namespace type status",
		"Runs that closed, by workflow type and how.")
	runDuration = metric(Histogram, "run_duration_seconds", "namespace type",
		"Time from the start of a run to its close.")

	runsOpen = metric(Gauge, "runs_open", "namespace type",
		"Open runs, paused ones among them, by type, as the index has them; not while it is built.")
	runsPaused = metric(Gauge, "runs_paused", "namespace cause",
		"Paused runs, by cause, as the last full audit of the master saw them.")

	decisions = metric(Counter, "decisions_total", "namespace type outcome",
		"Decision tasks that ended, by workflow type; untaken: no decider took it in time.")
	decisionWait = metric(Histogram, "decision_wait_seconds", "namespace type",
		"Time that a decision task waited for a decider.")
	decisionDuration = metric(Histogram, "decision_duration_seconds", "namespace type",
		"Time that a decider took for a decision.")

	activities = metric(Counter, "activities_total", "namespace list type outcome",
		"Activities that ended, by task list and type; untaken: no worker took it in time.")
	activityWait = metric(Histogram, "activity_wait_seconds", "namespace list type",
		"Time that an attempt of an activity waited for a worker.")
	activityDuration = metric(Histogram, "activity_duration_seconds", "namespace list type",
		"Time that the last attempt of an activity ran.")
	activityRetries = metric(Counter, "activity_retries_total", "namespace list type",
		"Attempts that failed and that another one follows.")
	activitiesInterrupted = metric(Counter, "activities_interrupted_total", "namespace list type",
		"Attempts whose worker was lost or gave the task back.")

	listBacklog = metric(Gauge, "list_backlog", "namespace list",
		"Tasks of a task list that wait for a worker.")
	listInHand = metric(Gauge, "list_in_hand", "namespace list",
		"Tasks of a task list that workers have.")
	listWorkers = metric(Gauge, "list_workers_waiting", "namespace list",
		"Workers that wait for tasks of a task list.")
	listOldest = metric(Gauge, "list_oldest_seconds", "namespace list",
		"Age of the oldest task of a task list that is not done.")

	signals = metric(Counter, "signals_total", "namespace outcome",
		"Signals that came into the history of a run, or became dead letters.")
	lockWait = metric(Histogram, "lock_wait_seconds", "namespace",
		"Time that a run waited for a lock that it got.")

	apiRequests = metric(Counter, "api_requests_total", "namespace verb code",
		"Requests to the API that were answered, by the code of the error, or ok.")
	apiDuration = metric(Histogram, "api_duration_seconds", "namespace verb",
		"Time from a request to its answer; history and result wait if they are asked to.")

	partitions = metric(Gauge, "partitions", "namespace",
		"Partitions that the namespace has.")
	partitionOwned = metric(Gauge, "partition_owned", "namespace partition",
		"1 for each partition that this server owns.")
	takeovers = metric(Counter, "partition_takeovers_total", "namespace why",
		"Partitions that this server took over; lost: the owner before had not handed it over.")
	takeoverDuration = metric(Histogram, "partition_takeover_seconds", "namespace",
		"Time from the claim of a partition until it is served.")
	inboxLag = metric(Gauge, "inbox_lag_messages", "namespace partition",
		"Messages of a partition's inbox that its owner has not read.")
	inboxLagSeconds = metric(Gauge, "inbox_lag_seconds", "namespace partition",
		"Age of the first of these messages.")
	effectsBehind = metric(Gauge, "effects_behind_records", "namespace partition",
		"Records of a partition after the last one whose effects are all done.")

	commitDuration = metric(Histogram, "commit_seconds", "namespace",
		"Time from the sending of a record to its acknowledgement.")
	commitRecords = metric(Counter, "commit_records_total", "namespace",
		"Records that were written to histories.")
	commitEvents = metric(Counter, "commit_events_total", "namespace",
		"Events in these records.")
	commitBytes = metric(Counter, "commit_bytes_total", "namespace",
		"Bytes of these records.")
	commitRefused = metric(Counter, "commit_refused_total", "namespace code",
		"Records that were not stored: conflict, full or other.")

	alarmsPending = metric(Gauge, "alarms_pending", "namespace partition",
		"Alarms of a partition that this server rings and that are not due.")
	alarmLate = metric(Histogram, "alarm_late_seconds", "namespace",
		"Time from when an alarm was due until its ring was taken.")
	timerClaims = metric(Gauge, "timer_claims", "namespace",
		"Partitions whose alarms this server rings.")

	scheduleSlots = metric(Counter, "schedule_slots_total", "namespace schedule outcome",
		"Slots of a schedule since its creation, by what became of them.")
	scheduleLate = metric(Histogram, "schedule_late_seconds", "namespace",
		"Time from a slot of a schedule until its start was taken, any wait for a run before it included.")
	alwaysOnUp = metric(Gauge, "always_on_up", "namespace id",
		"1 if the run of an always-on workflow is open, 0 if it should be.")

	deadLetters = metric(Counter, "dead_letters_total", "namespace reason",
		"Dead letters that the owners of partitions wrote.")
	deadStored = metric(Gauge, "dead_letters_stored", "namespace reason",
		"Dead letters that are stored.")
	auditFindings = metric(Gauge, "audit_findings", "namespace kind severity",
		"What the last audits of the master found and what is still so; at most 100 of a kind.")
	locksHeld = metric(Gauge, "locks_held", "namespace",
		"Places in locks that runs hold.")
	locksWaiting = metric(Gauge, "locks_waiting", "namespace",
		"Runs that wait for a lock.")
	nodesStatus = metric(Gauge, "nodes", "status",
		"Servers by status.")
	claimsHeld = metric(Gauge, "claims_held", "namespace kind",
		"Claims that this server holds.")
	claimsLost = metric(Counter, "claims_lost_total", "namespace",
		"Claims that were lost: they could not be renewed in time.")
	isMaster = metric(Gauge, "master", "namespace",
		"1 if this server is the master of the namespace.")
	purged = metric(Counter, "retention_purged_total", "namespace",
		"Closed runs that were purged.")

	indexRows = metric(Gauge, "index_rows", "namespace",
		"Runs that the index of this server has.")
	indexBytes = metric(Gauge, "index_bytes", "namespace",
		"Memory that the index of this server takes, about.")
	indexBuilding = metric(Gauge, "index_building", "namespace",
		"1 while the index of this server is built: what it answers lacks runs.")
	indexLag = metric(Gauge, "index_lag_records", "namespace",
		"Records that the index which answered the master had not counted, at most.")

	buildInfo = metric(Gauge, "build_info", "version goversion",
		"1; the labels tell the version of the server and of Go.")
	storeFree = metric(Gauge, "store_free_bytes", "",
		"Bytes that are free on the disk of the embedded server's store.")
	overflow = metric(Counter, "metric_overflow_total", "namespace",
		"How often something was counted as other, since there are too many values of a label.")
)
