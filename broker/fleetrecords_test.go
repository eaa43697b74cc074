package broker_test

import (
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// How a [fleet] waits: by the records of the histories' streams, and nobody asks. Whoever asks the API for a run has its owner load it, which arms its
// alarm and repeats what is open: a run that was lost would go on because a test waits for it.

// ofRuns are the subjects of all runs of a workflow, in its partition.
func (f *fleet) ofRuns(id string) (p int, filter string) {
	p = subject.Partition(id, f.partitions)
	return p, strings.TrimSuffix(ns.History(p, id, "-"), "-") + "*"
}

// lastRecord is that of a workflow; nil if it has none, or the server does not answer now.
func (f *fleet) lastRecord(id string) *natsconn.Stored {
	f.t.Helper()
	p, filter := f.ofRuns(id)
	m, err := f.post.LastBySubject(f.t.Context(), ns.StreamHistory(p), filter)
	if err != nil {
		return nil
	}
	return m
}

// lastRun is the latest run of a workflow that has begun; empty if none has.
func (f *fleet) lastRun(id string) string {
	f.t.Helper()
	m := f.lastRecord(id)
	if m == nil {
		return ""
	}
	_, _, run, err := subject.ParseHistory(m.Subject)
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

// status is that of a workflow's latest run by its last record; empty if it has none.
func (f *fleet) status(id string) schemas.Status {
	f.t.Helper()
	m := f.lastRecord(id)
	if m == nil {
		return ""
	}
	return schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader))
}

// lastEvent is the last event id of a workflow's latest run, as its last record tells it.
func (f *fleet) lastEvent(id string) int {
	f.t.Helper()
	m := f.lastRecord(id)
	if m == nil {
		return 0
	}
	fields := strings.Fields(m.Header.Get(schemas.StatusHeader))
	if len(fields) < 2 {
		f.t.Fatalf("%s: header %q, want the last event id in it", m.Subject, fields)
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// until looks again and again, in time that grows with what has passed, and tells whether ok was true before the limit.
func (f *fleet) until(limit time.Duration, ok func() bool) bool {
	f.t.Helper()
	for wait := 10 * time.Millisecond; limit > 0; wait += wait / 16 {
		if ok() {
			return true
		}
		time.Sleep(wait)
		limit -= wait
	}
	return ok()
}

// recorded are the events of a workflow's latest run in the stream.
func (f *fleet) recorded(id string) (events []schemas.Event) {
	f.t.Helper()
	m := f.lastRecord(id)
	if m == nil {
		return nil
	}
	p, _ := f.ofRuns(id)
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{m.Subject}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		events = append(events, r.Events...)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return events
}

// happened counts the events of a type in a workflow's latest run.
func (f *fleet) happened(id string, typ schemas.EventType) (n int) {
	f.t.Helper()
	for _, e := range f.recorded(id) {
		if e.Type() == typ {
			n++
		}
	}
	return n
}

// recordedTypes are those of recorded.
func (f *fleet) recordedTypes(id string) (types []schemas.EventType) {
	f.t.Helper()
	for _, e := range f.recorded(id) {
		types = append(types, e.Type())
	}
	return types
}
