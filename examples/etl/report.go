package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// day is when the report is due: once a day, in the window of a length that opens so long after midnight UTC. Every is how often it is
// tried there.
type day struct {
	Dir    string           `json:"dir"`
	Opens  schemas.Duration `json:"opens"`
	Length schemas.Duration `json:"length"`
	Every  schemas.Duration `json:"every"`
}

// in tells whether the window is open.
func (d *day) in(at time.Time) bool {
	since := schemas.Duration(at.Sub(at.Truncate(24 * time.Hour)))
	return since >= d.Opens && since < d.Opens+d.Length
}

// reporting is the day and what is open.
type reporting struct {
	day
	Busy bool `json:"busy,omitempty"`
	N    int  `json:"n"`
}

// decideReport tries at each trigger in the window whether it is the first of the day, and writes the report if it is.
func decideReport(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
	var r reporting
	if err := t.Context().Decode(&r); err != nil {
		return nil, err
	}
	var all []schemas.Decision
	waits := false
	for _, e := range t.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			if err := a.Input.Decode(&r.day); err != nil {
				return []schemas.Decision{decider.Fail("the input is no day: "+err.Error(), nil)}, nil
			}
			waits = !r.ask(e.Time.Time(), &all)
		case *schemas.TimerExpired:
			waits = !r.ask(e.Time.Time(), &all)
		case *schemas.ActivitySuccess:
			var once ops.OnceResponse
			if err := a.Result.Decode(&once); err == nil && once.First {
				r.N++
				input := report{In: outFile(r.Dir), Out: reportFile(r.Dir, once.Period)}
				all = append(all, decider.Schedule(fmt.Sprint("report-", r.N), "etl-report", input, decider.List(taskList), decider.Retry(forever)))
			} else {
				r.Busy, waits = false, true
			}
		case *schemas.ActivityFailed, *schemas.ActivityTimedOut, *schemas.ActivityScheduleFailed:
			r.Busy, waits = false, true
		case *schemas.WorkflowCancelRequested:
			return []schemas.Decision{decider.Cancel(nil)}, nil
		}
	}
	if !r.Busy && t.SuggestContinueAsNew() {
		return []schemas.Decision{decider.ContinueAsNew(r.day)}, nil
	}
	if waits {
		r.N++
		all = append(all, decider.Timer(fmt.Sprint("look-", r.N), time.Duration(r.Every)))
	}
	left, err := schemas.JSONPayload(&r)
	if err != nil {
		return nil, err
	}
	t.SetContext(left)
	return all, nil
}

// forever has the report tried until it is written: nobody else is the first of the day.
var forever = schemas.RetryPolicy{}

// ask asks whether this is the first of the day, if the window is open at that time.
func (r *reporting) ask(at time.Time, all *[]schemas.Decision) bool {
	if !r.in(at) {
		return false
	}
	r.N++
	r.Busy = true
	q := ops.OnceRequest{Name: "etl-report", Period: "day"}
	*all = append(*all, decider.Schedule(fmt.Sprint("once-", r.N), ops.ActivityOnce, q, decider.List(ops.ServiceList), decider.Retry(forever)))
	return true
}

// report says what is counted, and where the count is written.
type report struct {
	In  string `json:"in"`
	Out string `json:"out"`
}

// writeReport counts the lines that are done by now. It replaces what an attempt before has written.
func writeReport(_ context.Context, r report) (struct{}, error) {
	body, err := os.ReadFile(r.In)
	if err != nil && !os.IsNotExist(err) {
		return struct{}{}, err
	}
	part := r.Out + ".part"
	if err := os.WriteFile(part, fmt.Appendf(nil, "%s: %d items\n", filepath.Base(r.In), bytes.Count(body, []byte("\n"))), 0o644); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, os.Rename(part, r.Out)
}
