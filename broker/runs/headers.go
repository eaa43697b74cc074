package runs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Headers of a history record: what a list shows of a run is read from its last record without
// decoding it. They lie on disk with every record, so four values share one, schemas.StatusHeader:
// "STATUS LAST STARTED TYPE", the time in Unix nanoseconds to base 36.
const headerMore = "Drover-More"

// Standing is what the headers of a record tell of its run that a later record may change.
type Standing struct {
	Status     schemas.Status
	Attributes map[string]string
	Retention  *schemas.RetentionPolicy
}

// Describe writes the headers of a record whose events have just been applied to s.
func Describe(h natsconn.Header, s *execution.State, events []schemas.Event) Standing {
	status := s.Status
	if status == "" || s.Closed() && !events[len(events)-1].Type().Closes() {
		// the close waits for the next record
		status = schemas.StatusOpen
	}
	b := append(make([]byte, 0, 64), status...)
	b = strconv.AppendInt(append(b, ' '), events[len(events)-1].ID, 10)
	b = strconv.AppendInt(append(b, ' '), int64(s.StartedAt), 36)
	b = append(append(b, ' '), subject.Token(s.Start.WorkflowType)...)
	h[schemas.StatusHeader] = []string{string(b)}
	keeping := s.Keeping()
	if len(s.Attributes) > 0 || len(s.Start.TagList) > 0 || s.Start.WorkflowTypeVersion != "" ||
		s.Start.ParentWorkflowExecution != nil || s.Start.Replays != nil || keeping != nil ||
		s.Start.FirstExecutionRun != "" || s.Start.Mode() != schemas.ModeManual ||
		s.Start.Continuation != nil {
		all := moreInfo{
			s.Start.WorkflowTypeVersion, s.Start.TagList, s.Attributes,
			s.Start.ParentWorkflowExecution, s.Start.Replays, keeping,
			s.Start.FirstExecutionRun, "", s.Start.Continuation != nil,
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
	return Standing{status, s.Attributes, keeping}
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

// InfoFrom reads a run's line off the headers of its last record.
func InfoFrom(m natsconn.Stored) (schemas.ExecutionInfo, error) {
	i, _, err := readHeaders(m)
	return i, err
}

func readHeaders(m natsconn.Stored) (i schemas.ExecutionInfo, more moreInfo, err error) {
	_, wid, run, err := subject.ParseHistory(m.Subject)
	if err != nil {
		return i, more, err
	}
	i = schemas.ExecutionInfo{
		WorkflowID: wid,
		Run:        run,
		Status:     schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader)),
	}
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
		i.TypeVersion, i.Tags, i.Attributes, i.Parent, i.Replays = more.Version, more.Tags,
			more.Attributes, more.Parent, more.Replays
	}
	i.StartMode = more.mode()
	return i, more, nil
}

// IsRecord tells whether a message on the subject of a run was written as a record.
func IsRecord(m *natsconn.Stored) bool { return m.Header.Get(schemas.StatusHeader) != "" }

// HasPolicy tells whether the run of a record has a continuation policy.
func HasPolicy(m natsconn.Stored) bool {
	if !strings.Contains(m.Header.Get(headerMore), `"continues"`) { // as nearly all; that is cheap
		return false
	}
	_, more, err := readHeaders(m)
	return err == nil && more.Continues
}
