package topology

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/droverhq/drover/broker/subject"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrConflict is wrapped by every [*ConflictError].
var ErrConflict = errors.New("conflict with what exists")

// ConflictError reports a stream or consumer that exists and cannot be used as it is. Nothing was
// changed in it.
type ConflictError struct {
	Stream   string // the stream that is wanted
	Consumer string // the consumer of it that is meant, or ""
	Field    string // what differs
	Have     string
	Want     string
	Hint     string // the way out
}

// Error says what differs and what to do.
func (e *ConflictError) Error() string {
	where := "stream " + e.Stream
	if e.Consumer != "" {
		where = "consumer " + e.Consumer + " of " + where
	}
	return fmt.Sprintf("%s: %s is %s, want %s: %s", where, e.Field, e.Have, e.Want, e.Hint)
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

const (
	hintForeign = "this is another program's stream: rename or delete it, or choose another namespace"
	hintEdited  = "this is a stream of Drover that somebody has changed: change that back, as " +
		"with nats stream edit, or restore it from a backup; who deletes it loses what is in it"
	// The signals stream may be the one that is wrong: an earlier version made it anew with its
	// default where it had been lost.
	hintPartitions = "the streams of the namespace do not belong together, and workflows live " +
		"in what they say: if the other streams of the namespace say %s too, " +
		"delete %s alone, and start a server, which makes it anew for them; if only this one " +
		"says so, restore it from a backup"
	hintUnset   = "it cannot be taken back and puts messages at risk: delete the stream, or choose another namespace"
	hintStorage = "start with the storage that the namespace was made with, delete the namespace, or choose another"
	hintNewer   = "a newer Drover wrote here: run that version or a later one"
	hintOlder   = "Drover 0.1 wrote here, which this version cannot read: let its workflows end " +
		"with that version, or choose another store or namespace"
)

// fixed are the properties that cannot be changed, or not without risk to messages.
var fixed = []struct {
	field, hint string
	value       func(*jetstream.StreamConfig) string
}{
	{
		"subjects",
		hintForeign,
		func(c *jetstream.StreamConfig) string { return fmt.Sprint(slices.Sorted(slices.Values(c.Subjects))) },
	},
	{
		"retention",
		hintForeign,
		func(c *jetstream.StreamConfig) string { return c.Retention.String() },
	},
	{
		"a mirror or source",
		hintForeign,
		func(c *jetstream.StreamConfig) string { return yes(c.Mirror != nil || len(c.Sources) > 0) },
	},
	{"the subject transform", hintForeign, func(c *jetstream.StreamConfig) string {
		if c.SubjectTransform == nil {
			return "none"
		}
		return c.SubjectTransform.Source + " to " + c.SubjectTransform.Destination
	}},
	{"storage", hintStorage, func(c *jetstream.StreamConfig) string { return c.Storage.String() }},
	{"sealed", hintUnset, func(c *jetstream.StreamConfig) string { return yes(c.Sealed) }},
	{"deny_purge", hintUnset, func(c *jetstream.StreamConfig) string { return yes(c.DenyPurge) }},
	{
		"allow_msg_schedules",
		hintUnset,
		func(c *jetstream.StreamConfig) string { return yes(c.AllowMsgSchedules) },
	},
	{
		"allow_msg_counter",
		hintUnset,
		func(c *jetstream.StreamConfig) string { return yes(c.AllowMsgCounter) },
	},
	{
		"persist_mode",
		hintUnset,
		func(c *jetstream.StreamConfig) string { return persistMode(c.PersistMode) },
	},
}

// conflict names the first property of have that keeps it from being what is wanted, or returns
// nil.
func (w *wanted) conflict(have *jetstream.StreamConfig) error {
	for _, f := range fixed {
		if w.shared && f.field == "storage" {
			continue // that of the namespace which made it; the others may have another
		}
		if h, n := f.value(have), f.value(&w.StreamConfig); h != n {
			hint := f.hint
			if hint == hintForeign && have.Metadata[metaNamespace] != "" &&
				have.Metadata[metaNamespace] == w.Metadata[metaNamespace] {
				hint = hintEdited
			}
			return w.differs(f.field, h, n, hint)
		}
	}
	// These two may be switched on, not off.
	if have.DenyDelete && !w.DenyDelete {
		return w.differs("deny_delete", yes(true), yes(false), hintUnset)
	}
	if have.AllowMsgTTL && !w.AllowMsgTTL {
		return w.differs("allow_msg_ttl", yes(true), yes(false), hintUnset)
	}
	for _, key := range []string{metaNamespace, metaPartitions} {
		if h, n := have.Metadata[key], w.Metadata[key]; h != "" && n != "" && h != n {
			hint := hintForeign
			if key == metaPartitions {
				ns := subject.Namespace(w.Metadata[metaNamespace])
				hint = fmt.Sprintf(hintPartitions, h, ns.StreamSignals())
			}
			return w.differs("metadata "+key, h, n, hint)
		}
	}
	schema, want := have.Metadata[metaSchema], w.Metadata[metaSchema]
	if h, err := strconv.Atoi(cmp.Or(schema, "0")); err != nil || h > atoi(want) {
		return w.differs("metadata "+metaSchema, quoted(schema), want, hintNewer)
	}
	return w.formatConflict(have)
}

func (w *wanted) differs(field, have, want, hint string) error {
	return &ConflictError{Stream: w.Name, Field: field, Have: have, Want: want, Hint: hint}
}

// formatConflict refuses a signals stream whose namespace is stored in a form that this program
// cannot read.
func (w *wanted) formatConflict(have *jetstream.StreamConfig) error {
	want := w.Metadata[metaFormat]
	format := formatOf(have)
	if want == "" || format == want {
		return nil
	}
	hint := hintNewer
	if n, err := strconv.Atoi(format); err == nil && n < storeFormat {
		hint = hintOlder
	}
	return w.differs("metadata "+metaFormat, quoted(format), quoted(want), hint)
}

// formatOf is the format number of a namespace, from its signals stream. Not all programs that
// wrote format 2 have written the number; but they have all written how histories are compressed,
// and those of format 1 have not.
func formatOf(have *jetstream.StreamConfig) string {
	switch {
	case have.Metadata[metaFormat] != "":
		return have.Metadata[metaFormat]
	case have.Metadata[metaCompression] != "":
		return "2"
	}
	return "1"
}

// merge returns the configuration that have must be given, and which fields change. Everything that
// is not named here stays as the operator has set it.
func (w *wanted) merge(
	have *jetstream.StreamConfig,
) (next jetstream.StreamConfig, changed []string) {
	next = *have
	set(&changed, "description", &next.Description, w.Description)
	set(&changed, "discard", &next.Discard, w.Discard)
	set(&changed, "discard_new_per_subject", &next.DiscardNewPerSubject, false)
	set(&changed, "max_msgs_per_subject", &next.MaxMsgsPerSubject, w.MaxMsgsPerSubject)
	set(&changed, "max_msg_size", &next.MaxMsgSize, w.MaxMsgSize)
	set(&changed, "no_ack", &next.NoAck, false)
	set(&changed, "deny_delete", &next.DenyDelete, w.DenyDelete)
	set(&changed, "allow_rollup_hdrs", &next.AllowRollup, w.AllowRollup)
	set(&changed, "allow_direct", &next.AllowDirect, w.AllowDirect)
	set(&changed, "compression", &next.Compression, w.Compression)
	set(&changed, "allow_msg_ttl", &next.AllowMsgTTL, w.AllowMsgTTL)
	// harmless where it is not used
	set(&changed, "allow_atomic", &next.AllowAtomicPublish,
		w.AllowAtomicPublish || next.AllowAtomicPublish)
	set(&changed, "subject_delete_marker_ttl",
		&next.SubjectDeleteMarkerTTL, w.SubjectDeleteMarkerTTL)
	if !w.trims {
		set(&changed, "max_msgs", &next.MaxMsgs, w.MaxMsgs)
		set(&changed, "max_age", &next.MaxAge, 0)
	}
	if w.Duplicates != 0 {
		set(&changed, "duplicate_window", &next.Duplicates, w.Duplicates)
	}
	if w.shared {
		set(&changed, "num_replicas", &next.Replicas, max(next.Replicas, w.Replicas))
	} else {
		set(&changed, "num_replicas", &next.Replicas, w.Replicas)
		set(&changed, "max_bytes", &next.MaxBytes, w.MaxBytes)
	}
	next.Metadata = maps.Clone(have.Metadata)
	for k, v := range w.Metadata {
		if old, ok := next.Metadata[k]; ok && (k == metaVersion || old == v) {
			continue
		}
		if next.Metadata == nil {
			next.Metadata = map[string]string{}
		}
		next.Metadata[k] = v
		changed = append(changed, "metadata "+k)
	}
	return next, changed
}

func set[T comparable](changed *[]string, field string, have *T, want T) {
	if *have != want {
		*have = want
		*changed = append(*changed, field)
	}
}

func yes(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func persistMode(m jetstream.PersistModeType) string {
	if m == jetstream.AsyncPersistMode {
		return "async"
	}
	return "default"
}

func quoted(s string) string {
	if s == "" {
		return "missing"
	}
	return strconv.Quote(s)
}

// atoi reads a number that this package wrote.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
