package topology

import (
	"fmt"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/jetstream"
)

// Metadata of every stream and bucket. The version is that of the program which made it; the schema
// is that of the messages, raised by the first program that writes newer ones.
const (
	metaNamespace  = "drover.namespace"
	metaPartitions = "drover.partitions"
	metaSchema     = "drover.schema"
	metaVersion    = "drover.version"
)

// storeFormat is the number of the form in which a namespace is stored as a whole. The signals
// stream bears it. It is raised when a program could no longer read what an earlier one has stored,
// or an earlier one no longer what this one stores.
const storeFormat = 2

// Metadata of the signals stream alone: what the namespace is beside its number of partitions.
const (
	metaFormat       = "drover.format"
	metaRequireTypes = "drover.require-types"
	// Tasks and alarms are acknowledged before they are written. It stands from the beginning or
	// never: the server does not let a stream change that.
	metaRelaxed     = "drover.relaxed"
	metaDescription = "drover.description"
	metaCompression = "drover.compression"
	// Left out, the defaults of the version that reads it hold.
	metaFlowRetention = "drover.flow-retention"
	metaRetention     = "drover.retention"
	// Since when, and why, the namespace is being deleted. It stands there until the stream is
	// gone.
	metaDeleting       = "drover.deleting"
	metaDeletingReason = "drover.deleting-reason"
)

// metaPayloads stands in the metadata of the stream of dead letters, which no message waits for,
// once the object store was made: a namespace without a store has lost it, or never had a large
// payload.
const metaPayloads = "drover.payloads"

const (
	// The server remembers message ids for this long; the shortest that it takes. Nothing on the
	// hot path has an id.
	noDuplicates = 100 * time.Millisecond
	// Deletion marks that the server leaves when a key expires live so long. They wake those who
	// wait for a claim.
	markerTTL = time.Minute
	// smallBytes is for buckets that hold a few keys, of less than 1 KiB mostly, however much there
	// is of workflows.
	smallBytes = 64 << 20
	// operationsAge and operationsMost bound the operations that are kept; the oldest go first.
	operationsAge  = 400 * 24 * time.Hour
	operationsMost = 100_000
)

// wanted is a stream as it should be.
type wanted struct {
	jetstream.StreamConfig
	// shared streams serve several namespaces. What one of them asks for is not taken away by
	// another.
	shared bool
	// trims marks the stream whose limits by age and number an operator may set: dead letters.
	trims bool
}

// stream is what all streams of a namespace have in common.
func (n *Namespace) stream(version, name, description string, subjects ...string) wanted {
	cfg := jetstream.StreamConfig{
		Name: name, Description: description, Subjects: subjects, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: max(n.Replicas, 1),
		MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1, MaxBytes: -1,
		Duplicates: noDuplicates,
		Metadata: map[string]string{
			metaNamespace: string(n.Name), metaPartitions: strconv.Itoa(n.Partitions),
			metaSchema: strconv.Itoa(schemas.Version), metaVersion: version,
		},
	}
	if n.Memory {
		cfg.Storage = jetstream.MemoryStorage
	}
	if n.MaxBytes > 0 {
		cfg.MaxBytes = n.MaxBytes
	}
	return wanted{StreamConfig: cfg}
}

// signals is the front door. The server puts the partition into the subject, so strangers need not
// know it.
func (n *Namespace) signals(version string) wanted {
	w := n.stream(version, n.Name.StreamSignals(),
		"Drover: signals to workflows, published by anyone", n.Name.AllSignals())
	src, dst := n.Name.SignalTransform(n.Partitions)
	w.SubjectTransform = &jetstream.SubjectTransformConfig{Source: src, Destination: dst}
	w.DenyDelete, w.AllowDirect = true, true
	w.Metadata[metaFormat] = strconv.Itoa(storeFormat)
	w.Metadata[metaRequireTypes] = strconv.FormatBool(n.RequireTypes)
	if n.Relaxed {
		w.Metadata[metaRelaxed] = "true"
	}
	w.Metadata[metaCompression] = n.Compression
	if n.Description != "" {
		w.Metadata[metaDescription] = n.Description
	}
	if n.FlowRetention != DefaultFlowRetention {
		w.Metadata[metaFlowRetention] = n.FlowRetention
	}
	if n.Retention != DefaultRetention {
		w.Metadata[metaRetention] = n.Retention
	}
	return w
}

// streams are those of a namespace but for the signals, which come first, and the task lists, which
// come on demand.
func (n *Namespace) streams(version string) []wanted {
	all := make([]wanted, 0, 3*n.Partitions+1)
	for p := range n.Partitions {
		in := n.stream(version, n.Name.StreamIn(p), fmt.Sprintf("Drover: inbox of partition %d", p),
			n.Name.AllIn(p))
		in.DenyDelete, in.AllowDirect = true, true

		history := n.stream(version, n.Name.StreamHistory(p),
			fmt.Sprintf("Drover: histories of partition %d", p), n.Name.AllHistory(p))
		history.DenyDelete, history.AllowDirect = true, true
		// A replicated stream that is started again cuts its store back to the last snapshot of its
		// Raft log. NATS 2.15.2 compresses the last block after the back of that cut, and then
		// writes on after where the block used to end: the copy is lost, and with two such copies
		// the quorum.
		if n.Replicas <= 1 && n.Compression == CompressionS2 {
			history.Compression = jetstream.S2Compression
		}
		history.AllowAtomicPublish = n.Synced && !n.Memory && n.Replicas <= 1

		alarms := n.stream(version, n.Name.StreamAlarms(p),
			fmt.Sprintf("Drover: the next alarm of each run of partition %d", p),
			n.Name.AllAlarms(p))
		alarms.MaxMsgsPerSubject, alarms.AllowDirect = 1, true
		alarms.PersistMode = n.repeatable()

		all = append(all, in, history, alarms)
	}
	dead := n.stream(version, n.Name.StreamDead(), "Drover: what could not be applied, with why",
		n.Name.AllDead())
	dead.DenyDelete, dead.AllowDirect, dead.Discard, dead.trims = true, true, jetstream.DiscardOld, true
	operations := n.stream(version, n.Name.StreamOperations(),
		"Drover: what was done by schedules, recycles and operators", n.Name.AllOperations())
	operations.DenyDelete, operations.AllowDirect, operations.Discard, operations.trims = true,
		true, jetstream.DiscardOld, true
	operations.MaxAge, operations.MaxMsgs = operationsAge, operationsMost
	if n.MaxBytes > 0 {
		operations.MaxBytes = min(n.MaxBytes, smallBytes)
	}
	return append(all, dead, operations)
}

// buckets are key-value buckets, each a stream that the client library's own KV calls accept.
func (n *Namespace) buckets(version string) []wanted {
	claims := n.small(version, n.Name.BucketClaims(), "Drover: who owns which partition")
	claims.AllowMsgTTL, claims.SubjectDeleteMarkerTTL = true, markerTTL

	checkpoints := n.small(version, n.Name.BucketCheckpoints(),
		"Drover: how far each partition has been read")

	types := n.small(version, n.Name.BucketTypes(),
		"Drover: registered workflow and activity types")

	// Those who deploy write it themselves. Without rollups one who may write a key cannot wipe the
	// bucket by it.
	flows := n.bucket(version, n.Name.BucketFlows(),
		"Drover: deployed flows and step types, every version")
	flows.AllowRollup = false

	locks := n.bucket(version, n.Name.BucketLocks(), "Drover: who holds which lock, and who waits")
	locks.AllowMsgTTL = true // for what is left of a lock that nobody wants any more

	state := n.bucket(version, n.Name.BucketState(), "Drover: state keys of workflows")
	state.AllowMsgTTL = true // for what is left of a key that was cleared

	schedules := n.bucket(version, n.Name.BucketSchedules(),
		"Drover: schedules, periods, always-on workflows, the recycle")
	schedules.AllowMsgTTL = true // for periods, and for what is left of what was deleted

	nodes := n.small(version, subject.BucketNodes, "Drover: running nodes, of all namespaces")
	nodes.shared = true
	delete(nodes.Metadata, metaNamespace)
	delete(nodes.Metadata, metaPartitions)
	return []wanted{claims, checkpoints, types, flows, locks, state, schedules, nodes}
}

func (n *Namespace) bucket(version, bucket, description string) wanted {
	w := n.stream(version, "KV_"+bucket, description, "$KV."+bucket+".>")
	w.MaxMsgsPerSubject = 1
	w.AllowRollup, w.DenyDelete, w.AllowDirect = true, true, true
	return w
}

func (n *Namespace) small(version, bucket, description string) wanted {
	w := n.bucket(version, bucket, description)
	if n.MaxBytes > 0 {
		w.MaxBytes = min(n.MaxBytes, smallBytes)
	}
	return w
}

// tasks is the work queue of one list: a message lives until it is acknowledged.
func (n *Namespace) tasks(version, list string) wanted {
	w := n.stream(version, n.Name.StreamTasks(list), "Drover: activity tasks of list "+list,
		n.Name.AllTasks(list))
	w.Retention = jetstream.WorkQueuePolicy
	w.PersistMode = n.repeatable()
	return w
}

// repeatable is how messages are kept that an owner can repeat. Considered: streams in memory,
// which a planned restart would empty as well.
func (n *Namespace) repeatable() jetstream.PersistModeType {
	if n.Relaxed {
		return jetstream.AsyncPersistMode
	}
	return jetstream.DefaultPersistMode
}
