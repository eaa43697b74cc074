package checker

import (
	"bytes"
	"crypto/sha256"

	"github.com/droverhq/drover/schemas"
)

// recordState is what History knows of the records.
type recordState struct {
	count          int
	hash           []byte // of the last body, nil if that is unknown
	fence          uint64
	inbox, signals schemas.Position
	snapshot       uint64
	at             schemas.Timestamp // the server's time of the record being read, 0 if unknown
	lastAt         schemas.Timestamp // of the record before, as far as it is known
	newest         schemas.Timestamp // the latest of all
	// how often the server's time ran backwards from one record to the next
	steps int
}

// Stored is a record as it was found: its body, what the body says, and the server's time of the
// message.
type Stored struct {
	// Record is decoded from Body if it is nil.
	Record *schemas.Record
	// Body may be nil if it is not at hand; then the hash in the next record cannot be checked.
	Body []byte
	// At is 0 if it is not known.
	At schemas.Timestamp
}

// CheckRecords checks a whole run as it is stored.
func CheckRecords(workflowID, run string, records []Stored) []Violation {
	h := New(workflowID, run)
	var all []Violation
	for _, s := range records {
		if s.Record == nil {
			s.Record = &schemas.Record{}
			if err := schemas.Unmarshal(s.Body, s.Record); err != nil {
				h.report(RuleRecord, h.last+1, "the record after event %d cannot be read: %v",
					h.last, err)
				h.records.count++
				h.records.hash = hash(s.Body)
				all = append(all, h.take()...)
				continue
			}
		}
		all = append(all, h.Record(s.Record, s.Body, s.At)...)
	}
	return append(all, h.End()...)
}

// Record takes the run's next record: body is its message, at the server's time of it. Both may be
// zero if they are not known; what depends on them is not checked then.
func (h *History) Record(r *schemas.Record, body []byte, at schemas.Timestamp) []Violation {
	s := &h.records
	h.checkRecord(r)
	if at != 0 {
		if at < s.lastAt {
			h.report(RuleServerTime, r.First,
				"the record is of %s, %s before the one that it follows", at, s.lastAt.Sub(at))
			s.steps++
			if h.steppedBack != nil {
				h.steppedBack(at, s.lastAt)
			}
		}
		s.lastAt, s.newest = at, max(at, s.newest)
	}
	s.count++
	s.hash = hash(body)
	s.fence = max(r.Fence, s.fence)
	s.snapshot = max(r.SnapshotSequence, s.snapshot)
	s.inbox, s.signals = r.Inbox.Later(s.inbox), r.Signals.Later(s.signals)

	s.at = at
	for _, e := range r.Events {
		h.event(e)
	}
	s.at = 0
	h.decider.block = 0 // a decision is in one record or nowhere
	h.checkWake()
	return h.take()
}

func (h *History) checkRecord(r *schemas.Record) {
	s := &h.records
	if r.WorkflowID != h.workflowID && h.workflowID != "" || r.Run != h.run && h.run != "" {
		h.report(RuleRecord, r.First, "the record is of workflow %q run %s", r.WorkflowID, r.Run)
	}
	if r.First != h.last+1 {
		h.report(RuleRecord, r.First, "the record begins with event %d after event %d; want %d",
			r.First, h.last, h.last+1)
	}
	if s.count == 0 {
		if len(r.Events) == 0 {
			h.report(RuleRecord, r.First, "the first record holds no events")
		}
		if len(r.Previous) != 0 {
			h.report(RuleChain, r.First, "the first record names a record before it: %x",
				r.Previous)
		}
	} else if s.hash != nil && !bytes.Equal(r.Previous, s.hash) {
		h.report(RuleChain, r.First, "the record follows one of hash %x; the one before it has %x", r.Previous, s.hash)
	}
	if r.Fence < s.fence {
		h.report(RuleFence, r.First, "the record has fence %d after fence %d", r.Fence, s.fence)
	}
	if r.SnapshotSequence < s.snapshot {
		h.report(RuleSnapshot, r.First,
			"the latest snapshot is at sequence %d, it says; there is one at %d",
			r.SnapshotSequence, s.snapshot)
	}
	if r.Inbox.Before(s.inbox) {
		h.report(RulePosition, r.First, "the inbox position goes back from %d/%d to %d/%d",
			s.inbox.Incarnation, s.inbox.Sequence, r.Inbox.Incarnation, r.Inbox.Sequence)
	}
	if r.Signals.Before(s.signals) {
		h.report(RulePosition, r.First, "the signals position goes back from %d/%d to %d/%d",
			s.signals.Incarnation, s.signals.Sequence, r.Signals.Incarnation, r.Signals.Sequence)
	}
}

func hash(body []byte) []byte {
	if body == nil {
		return nil
	}
	sum := sha256.Sum256(body)
	return sum[:]
}
