package audit

import (
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// An owner lags at the second look until it has read what was in its inbox after the first: by then it knows of every report that
// explains a task that is gone.
func TestLater(t *testing.T) {
	scripted(t, func(t *testing.T, a *Auditor, _ *owner) {
		subj := a.ns.In(0, "o", "pause")
		for range 4 {
			if _, err := a.o.Conn.PublishSync(t.Context(), subj, natsconn.Addressed(subj), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		v := newView(a, true)
		wants := func(what string, owner schemas.AuditResponse, end uint64, want bool) {
			t.Helper()
			v.ends = []uint64{end}
			if got, err := v.lags(t.Context(), 0, &owner); err != nil || got != want {
				t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
			}
		}
		wants("the first look", schemas.AuditResponse{Recovering: true, Inbox: 1}, 4, false)
		v.again()
		wants("has read all", schemas.AuditResponse{Inbox: 4}, 4, false)
		wants("has read more", schemas.AuditResponse{Inbox: 4}, 3, false)
		wants("has read less", schemas.AuditResponse{Inbox: 2}, 4, true)
		wants("has read all, and repeats what was left undone", schemas.AuditResponse{Recovering: true, Inbox: 4}, 4, true)
		if err := a.o.Conn.Purge(t.Context(), a.ns.StreamIn(0), "", 4); err != nil {
			t.Fatal(err)
		}
		wants("what it has not read is gone", schemas.AuditResponse{Inbox: 2}, 3, false)
		wants("of what it has not read one is left", schemas.AuditResponse{Inbox: 2}, 4, true)
		if err := a.o.Conn.Purge(t.Context(), a.ns.StreamIn(0), "", 5); err != nil {
			t.Fatal(err)
		}
		wants("all is gone", schemas.AuditResponse{Inbox: 2}, 4, false)
	})
}

// A task or an alarm goes only by the word of the owner at the second look; a run that cannot be judged keeps both.
func TestNotWanted(t *testing.T) { // I15
	open := schemas.AuditRun{WorkflowID: "o", Run: "r", Status: schemas.StatusOpen, Activities: []schemas.AuditActivity{{Token: "other"}}}
	with := func(change func(*schemas.AuditRun)) *schemas.AuditRun { r := open; change(&r); return &r }
	for _, tc := range []struct {
		name        string
		says        *schemas.AuditRun
		task, alarm bool // not wanted
	}{
		{"nothing", nil, false, false},
		{"open, and waits for something else", &open, true, false},
		{"waits for it", with(func(r *schemas.AuditRun) { r.Activities = []schemas.AuditActivity{{Token: "other"}, {Token: "r.5.1"}} }), false, false},
		{"waits for it as a later attempt", with(func(r *schemas.AuditRun) {
			r.Activities = []schemas.AuditActivity{{Token: "r.5.7", List: "main", StartedAt: 1, TaskSequence: 41}}
		}), false, false}, // R5
		{"waits for it as a later attempt, by the word of an older owner", with(func(r *schemas.AuditRun) {
			r.Activities = []schemas.AuditActivity{{Token: "r.5.7", List: "main", StartedAt: 1}}
		}), false, false},
		{"waits for another message", with(func(r *schemas.AuditRun) {
			r.Activities = []schemas.AuditActivity{{Token: "r.5.7", List: "main", StartedAt: 1, TaskSequence: 42}}
		}), true, false},
		{"waits for a message of another list", with(func(r *schemas.AuditRun) {
			r.Activities = []schemas.AuditActivity{{Token: "r.5.7", List: "other", StartedAt: 1, TaskSequence: 41}}
		}), true, false},
		{"waits for a worker with a later attempt", with(func(r *schemas.AuditRun) {
			r.Activities = []schemas.AuditActivity{{Token: "r.5.7", List: "main"}}
		}), true, false},
		{"busy", with(func(r *schemas.AuditRun) { r.Busy = true }), false, false},
		{"closed, and busy", with(func(r *schemas.AuditRun) { r.Busy, r.Status, r.Activities = true, schemas.StatusCompleted, nil }), false, false},
		{"unreadable", &schemas.AuditRun{WorkflowID: "o", Unreadable: "damaged"}, false, false},
		{"closed", with(func(r *schemas.AuditRun) { r.Status, r.Activities = schemas.StatusCompleted, nil }), true, true},
		{"another run", with(func(r *schemas.AuditRun) { r.Run = "later" }), true, true},
		{"never started", &schemas.AuditRun{WorkflowID: "o"}, true, true},
	} {
		v := newView(&Auditor{}, true)
		if tc.says != nil {
			v.runs[runKey("o", "r")] = tc.says
		}
		if got := v.notWanted(&Finding{Kind: KindTaskStale, WorkflowID: "o", Run: "r", List: "main", remove: &message{seq: 41, token: "r.5.1"}}); got != tc.task {
			t.Errorf("%s: the task is not wanted: %v, want %v", tc.name, got, tc.task)
		}
		if got := v.notWanted(&Finding{Kind: KindAlarmStale, WorkflowID: "o", Run: "r", remove: &message{}}); got != tc.alarm {
			t.Errorf("%s: the alarm is not wanted: %v, want %v", tc.name, got, tc.alarm)
		}
	}
}
