package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Headers of a history record: what a list shows of a run is read from its last record without decoding it. They lie on disk
// with every record, so four values share one, schemas.StatusHeader: "STATUS LAST STARTED TYPE", the time in Unix nanoseconds
// to base 36.
const headerMore = "Drover-More"

// describe writes the headers of a record whose events have just been applied to s.
func describe(h natsconn.Header, s *execution.State, events []schemas.Event) {
	status := s.Status
	if status == "" || s.Closed() && !events[len(events)-1].Type().Closes() { // the close waits for the next record
		status = schemas.StatusOpen
	}
	b := append(make([]byte, 0, 64), status...)
	b = strconv.AppendInt(append(b, ' '), events[len(events)-1].ID, 10)
	b = strconv.AppendInt(append(b, ' '), int64(s.StartedAt), 36)
	b = append(append(b, ' '), subject.Token(s.Start.WorkflowType)...)
	h[schemas.StatusHeader] = []string{string(b)}
	keeping := s.Keeping()
	if len(s.Attributes) > 0 || len(s.Start.TagList) > 0 || s.Start.WorkflowTypeVersion != "" || s.Start.ParentWorkflowExecution != nil ||
		s.Start.Replays != nil || keeping != nil || s.Start.FirstExecutionRun != "" || s.Start.Mode() != schemas.ModeManual || s.Start.Continuation != nil {
		all := moreInfo{
			s.Start.WorkflowTypeVersion, s.Start.TagList, s.Attributes, s.Start.ParentWorkflowExecution, s.Start.Replays, keeping, s.Start.FirstExecutionRun, "", s.Start.Continuation != nil,
		}
		if mode := s.Start.Mode(); mode != all.mode() {
			all.Mode = mode
		}
		more, err := json.Marshal(all)
		if len(more) > maxMore {
			more, err = json.Marshal(all.least())
		}
		if err == nil {
			h[headerMore] = []string{string(more)}
		}
	}
}

// maxMore leaves room below the 64 KiB that the headers of a stored message may take.
const maxMore = 60 << 10

// least is what must be known of a run: a record that cannot be stored would hold up its partition.
func (i moreInfo) least() moreInfo {
	i.Version, i.Tags, i.Attributes = "", nil, nil
	if i.Replays != nil {
		i.Replays = &schemas.ReplayOf{Run: i.Replays.Run}
	}
	return i
}

type moreInfo struct {
	Version    string             `json:"version,omitempty"`
	Tags       []string           `json:"tags,omitempty"`
	Attributes map[string]string  `json:"attributes,omitempty"`
	Parent     *schemas.Execution `json:"parent,omitempty"`
	Replays    *schemas.ReplayOf  `json:"replays,omitempty"`
	// Retention and First are for who judges how long the run is kept.
	Retention *schemas.RetentionPolicy `json:"retention,omitempty"`
	First     string                   `json:"first,omitempty"`
	// Mode is what began the run, where the rest does not tell.
	Mode schemas.StartMode `json:"mode,omitempty"`
	// Continues: the run has a continuation policy.
	Continues bool `json:"continues,omitempty"`
}

// mode is what began the run.
func (i *moreInfo) mode() schemas.StartMode {
	return (&schemas.WorkflowStarted{StartMode: i.Mode, Replays: i.Replays, ParentWorkflowExecution: i.Parent}).Mode()
}

// Line is what the headers of a record tell of its run.
type Line struct {
	schemas.ExecutionInfo
	// Retention is what the run has asked for, or its parent; nil if nobody has.
	Retention *schemas.RetentionPolicy
	// FirstRun is the first run of the chain that it belongs to; empty in that run itself.
	FirstRun string
}

// ReadLine reads the headers of a history record. Of a closed run only the last record says so.
func ReadLine(m natsconn.Stored) (Line, error) {
	i, more, err := readHeaders(m)
	return Line{i, more.Retention, more.First}, err
}

func infoOf(s *execution.State) schemas.ExecutionInfo {
	i := schemas.ExecutionInfo{
		WorkflowID: s.WorkflowID, Run: s.Run, Type: s.Start.WorkflowType, TypeVersion: s.Start.WorkflowTypeVersion,
		Status: s.Status, StartedAt: s.StartedAt, Events: s.LastID, Tags: s.Start.TagList, Attributes: s.Attributes,
		Parent: s.Start.ParentWorkflowExecution, Replays: s.Start.Replays, StartMode: s.Start.Mode(),
	}
	if s.Close != nil {
		i.ClosedAt = s.Close.Time
	}
	return i
}

// infoFrom reads a run's line off the headers of its last record.
func infoFrom(m natsconn.Stored) (schemas.ExecutionInfo, error) {
	i, _, err := readHeaders(m)
	return i, err
}

func readHeaders(m natsconn.Stored) (i schemas.ExecutionInfo, more moreInfo, err error) {
	_, wid, run, err := subject.ParseHistory(m.Subject)
	if err != nil {
		return i, more, err
	}
	i = schemas.ExecutionInfo{WorkflowID: wid, Run: run, Status: schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader))}
	all := strings.Split(m.Header.Get(schemas.StatusHeader), " ")
	if len(all) != 4 {
		return i, more, fmt.Errorf("header %s has %d words, want 4", schemas.StatusHeader, len(all))
	}
	if i.Type, err = subject.ParseToken(all[3]); err != nil {
		return i, more, err
	}
	at, err := strconv.ParseInt(all[2], 36, 64)
	if err != nil {
		return i, more, err
	}
	i.StartedAt = schemas.Timestamp(at)
	if i.Events, err = strconv.ParseInt(all[1], 10, 64); err != nil {
		return i, more, err
	}
	if i.Status.Closed() {
		i.ClosedAt = schemas.At(m.Time)
	}
	if raw := m.Header.Get(headerMore); raw != "" {
		if err := json.Unmarshal([]byte(raw), &more); err != nil {
			return i, more, err
		}
		i.TypeVersion, i.Tags, i.Attributes, i.Parent, i.Replays = more.Version, more.Tags, more.Attributes, more.Parent, more.Replays
	}
	i.StartMode = more.mode()
	return i, more, nil
}

const (
	defaultList = 100
	maxList     = 1000
)

// listFor is how long one page may look for executions that match. Then it says from where to go on, however few it has.
const listFor = time.Second

// list looks for the last record of every run, partition by partition, from where the cursor stands. It costs the headers of all
// records: good for a person's question, not for a dashboard over millions.
func (b *Broker) list(ctx context.Context, q *schemas.ListRequest) (*schemas.ListResponse, error) {
	limit, quota := q.Limit, b.bodyLimit()/2
	if limit <= 0 {
		limit = defaultList
	}
	limit = min(limit, maxList)
	if err := validateStatus(q.Status); err != nil {
		return nil, err
	}
	partition, from, err := parseCursor(q.Cursor)
	if err == nil && partition >= b.o.Partitions {
		err = badCursor(q.Cursor)
	}
	if err != nil {
		return nil, err
	}
	a := &schemas.ListResponse{V: schemas.Version, Executions: []schemas.ExecutionInfo{}}
	began := time.Now()
	err = b.walk(ctx, q, partition, from, func(partition int, seq uint64, i *schemas.ExecutionInfo) error {
		if i == nil && time.Since(began) < listFor {
			return nil
		}
		if i != nil {
			line, err := schemas.MarshalJSON(i)
			if err != nil {
				return err
			}
			quota -= len(line)
		}
		if i == nil || len(a.Executions) == limit || quota < 0 && len(a.Executions) > 0 {
			a.Cursor = strconv.Itoa(partition) + "." + strconv.FormatUint(seq, 10)
			return errPageFull
		}
		a.Executions = append(a.Executions, *i)
		return nil
	})
	if err != nil && a.Cursor == "" {
		return nil, unavailable(err)
	}
	return a, nil
}

// maxCount bounds how long a count may take; it is told by CountResponse.Truncated.
const maxCount = 5 * time.Second

// count walks the list and counts for as long as it may.
func (b *Broker) count(ctx context.Context, q *schemas.CountRequest) (*schemas.CountResponse, error) {
	if err := validateStatus(q.Status); err != nil {
		return nil, err
	}
	limit := maxCount
	if q.Wait > 0 {
		limit = min(limit, q.Wait.Std())
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &schemas.CountResponse{V: schemas.Version}
	err := b.walk(bounded, q.List(), 0, 1, func(_ int, _ uint64, i *schemas.ExecutionInfo) error {
		if i != nil {
			a.Count++
		}
		return bounded.Err()
	})
	if err != nil {
		if bounded.Err() == nil || ctx.Err() != nil {
			return nil, unavailable(err)
		}
		a.Truncated = true
	}
	return a, nil
}

// walk shows fn each execution that matches, from a place in a partition on. Now and then it calls fn without one: all whose last
// record stands before seq were shown. An error of fn ends it and is returned.
func (b *Broker) walk(ctx context.Context, q *schemas.ListRequest, partition int, from uint64, fn func(partition int, seq uint64, i *schemas.ExecutionInfo) error) error {
	for ; partition < b.o.Partitions; partition, from = partition+1, 1 {
		w := walker{b: b, q: q, partition: partition, fn: fn}
		var err error
		switch {
		case q.WorkflowID == "":
			err = w.records(ctx, from)
		case b.partitionOf(q.WorkflowID) == partition:
			err = w.runs(ctx, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errPageFull = schemas.Errorf(schemas.CodeInternal, "the page is full")

func matches(q *schemas.ListRequest, i *schemas.ExecutionInfo) bool {
	return (q.Status == "" || q.Status == i.Status || q.Status == schemas.StatusClosed && i.Status.Closed()) &&
		(q.Type == "" || q.Type == i.Type) &&
		(q.Prefix == "" || strings.HasPrefix(i.WorkflowID, q.Prefix)) &&
		(q.Tag == "" || slices.Contains(i.Tags, q.Tag)) &&
		(q.Parent == "" || i.Parent != nil && i.Parent.WorkflowID == q.Parent) &&
		!(q.TopLevel && i.Parent != nil) &&
		(q.After == 0 || i.StartedAt > q.After) && (q.Before == 0 || i.StartedAt < q.Before) &&
		(q.ClosedAfter == 0 || i.ClosedAt > q.ClosedAfter) &&
		(q.ClosedBefore == 0 || i.ClosedAt != 0 && i.ClosedAt < q.ClosedBefore)
}

func parseCursor(c string) (partition int, from uint64, err error) {
	if c == "" {
		return 0, 1, nil
	}
	p, s, ok := strings.Cut(c, ".")
	partition, err = strconv.Atoi(p)
	if err == nil {
		from, err = strconv.ParseUint(s, 10, 64)
	}
	if !ok || err != nil || partition < 0 {
		return 0, 0, badCursor(c)
	}
	return partition, from, nil
}

func badCursor(c string) error {
	return schemas.Errorf(schemas.CodeInvalid, "the cursor %q is none that a list has returned", c).InField("cursor").WithHint("begin again without one")
}

// validateStatus refuses a word that no execution has for its status: the list would be empty, which looks like an answer.
func validateStatus(s schemas.Status) error {
	all := []schemas.Status{
		schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled, schemas.StatusTerminated,
		schemas.StatusTimedOut, schemas.StatusContinuedAsNew, schemas.StatusClosed,
	}
	if s == "" || slices.Contains(all, s) {
		return nil
	}
	return schemas.Errorf(schemas.CodeInvalid, "status is %q", s).InField("status").WithHint("use one of %v, or leave it out for all", all)
}
