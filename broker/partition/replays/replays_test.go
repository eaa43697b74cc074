package replays_test

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// What cannot be replayed is refused before anything is written, and nobody is asked: the error
// names the field of the request that is wrong, if one is. What was begun by an earlier try, or has
// nothing left to do, is no error.
func TestWhatIsNotReplayed(t *testing.T) { // ADR 0028, P-5
	virtual.Run(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			change func(*rig)
			q      schemas.ReplayRequest
			code   schemas.Code
			field  string
			run    string // of the answer
			silent bool
		}{
			"no workflow": {code: schemas.CodeNotFound, field: "workflowId", change: func(k *rig) {
				k.host.run.State = nil
			}},
			"the latest run is open": {code: schemas.CodeConflict, change: func(k *rig) {
				k.host.run.State.Status = schemas.StatusOpen
			}},
			"another run, and the latest alone is meant": {
				code: schemas.CodeConflict, field: "run",
				q: schemas.ReplayRequest{Run: "r0", LatestOnly: true},
			},
			"the latest is not kept": {
				code: schemas.CodeConflict, field: "run", change: func(k *rig) {
					k.host.run.State.Retention.Disabled = true
				},
			},
			"another run is gone": {
				code: schemas.CodeNotFound, field: "run", q: schemas.ReplayRequest{Run: "r0"},
			},
			"another run is not kept": {code: schemas.CodeConflict, change: func(k *rig) {
				k.host.loaded.Run, k.host.loaded.Retention.Disabled = "r0", true
			}, q: schemas.ReplayRequest{Run: "r0"}},
			"the run goes on in another": {
				code: schemas.CodeConflict, field: "run", change: func(k *rig) {
					s := k.host.loaded
					s.Status = schemas.StatusContinuedAsNew
					s.Close.Attributes = &schemas.WorkflowContinuedAsNew{NewExecutionRun: "r2"}
				},
			},
			"many are prepared": {code: schemas.CodeUnavailable, change: func(k *rig) {
				for range env.MostReplays {
					k.Env.Replays <- struct{}{}
				}
			}},
			"begun by an earlier try": {run: newRun, change: func(k *rig) {
				k.host.run.State.Run, k.host.run.State.Status = newRun, schemas.StatusOpen
			}},
			"begun by an earlier try, and followed by others": {run: newRun, change: func(k *rig) {
				subj := k.Env.NS.History(0, "o", newRun)
				h := natsconn.Header{schemas.StatusHeader: {string(schemas.StatusFailed)}}
				if _, err := k.Env.Conn.PublishSync(t.Context(), subj, h, nil); err != nil {
					t.Fatal(err)
				}
			}},
			"completed": {run: "r1", change: func(k *rig) {
				k.host.loaded.Status = schemas.StatusCompleted
			}},
			"the owner has left": {silent: true, change: func(k *rig) { k.host.sealed = true }},
		} {
			k := newRig(t)
			k.decides(&schemas.DecisionReply{Replay: &schemas.ReplayAnswer{}})
			if c.change != nil {
				c.change(k)
			}
			a := k.ask(&c.q, false)
			switch {
			case c.silent:
				k.asked = nil // the decider is asked before it is known that nobody needs that
				if a != nil {
					t.Errorf("%s: answered %+v", name, a)
				}
			case a == nil:
				t.Errorf("%s: no answer", name)
			case c.code == "":
				if a.Error != nil || a.Run != c.run || a.Started {
					t.Errorf("%s: answered %+v, %v; want run %s, not started",
						name, a, a.Error, c.run)
				}
			case a.Error == nil || a.Error.Code != c.code || a.Error.Field != c.field || a.Run != "":
				t.Errorf("%s: answered %+v, %+v; want %s in field %q",
					name, a, a.Error, c.code, c.field)
			}
			if len(k.host.started) > 0 || len(k.asked) > 0 {
				t.Errorf("%s: started %d, asked %v", name, len(k.host.started), k.asked)
			}
		}
	})
}

// The decider says where the new run begins and with which input. If it gives one the run goes on
// with what the old run had become, else it begins as that did. Without its word a run begins only
// from the start, and by force.
func TestWhatADeciderSaysOfAReplay(t *testing.T) { // ADR 0028
	virtual.Run(t, func(t *testing.T) {
		plan := &schemas.ReplayPlan{From: "1.2"}
		for name, c := range map[string]struct {
			reply *schemas.DecisionReply // nil: nobody listens
			q     schemas.ReplayRequest
			force bool
			asked string // from
			code  schemas.Code
			field string
			input string // of the new run; empty: none begins
			stage string // its attribute, which the old one has changed
			from  string // of the plan
		}{
			"it gives an input": {
				reply: &schemas.DecisionReply{Replay: &schemas.ReplayAnswer{
					Input: schemas.Payload("new input"), Plan: plan,
				}},
				asked: "end", input: "new input", stage: "last", from: "1.2",
			},
			"it gives none": {
				reply: &schemas.DecisionReply{Replay: &schemas.ReplayAnswer{}},
				q:     schemas.ReplayRequest{From: "START"},
				asked: "start", input: "old input", stage: "first", from: "start",
			},
			"a dry run": {
				reply: &schemas.DecisionReply{Replay: &schemas.ReplayAnswer{
					Input: schemas.Payload("new input"), Plan: plan,
				}},
				q: schemas.ReplayRequest{DryRun: true, From: "Step 2"}, force: true,
				asked: "Step 2", from: "1.2",
			},
			"it refuses": {
				reply: &schemas.DecisionReply{Replay: &schemas.ReplayAnswer{
					Refused: "step 2 may not run twice", Hint: "force it",
				}},
				asked: "end", code: schemas.CodeConflict, field: "from",
			},
			"it fails": {
				reply: &schemas.DecisionReply{Error: &schemas.DecisionError{Reason: "broken"}},
				asked: "end", code: schemas.CodeConflict,
			},
			"it keeps no replay points": {
				reply: &schemas.DecisionReply{}, q: schemas.ReplayRequest{From: "last"},
				asked: "last", code: schemas.CodeConflict, field: "from",
			},
			"it keeps none, from the start": {
				reply: &schemas.DecisionReply{}, q: schemas.ReplayRequest{From: "start"},
				asked: "start", input: "old input", stage: "first", from: "start",
			},
			"nobody listens": {
				q: schemas.ReplayRequest{From: "start"}, code: schemas.CodeConflict,
			},
			"nobody listens, from the start by force": {
				q: schemas.ReplayRequest{From: "start"}, force: true,
				input: "old input", stage: "first", from: "start",
			},
			"nobody listens, from the last by force": {
				q: schemas.ReplayRequest{From: "last"}, force: true, code: schemas.CodeConflict,
			},
		} {
			k := newRig(t)
			if c.reply != nil {
				k.decides(c.reply)
			}
			c.q.Reason = "fixed"
			a := k.ask(&c.q, c.force)
			if a == nil {
				t.Errorf("%s: no answer", name)
				continue
			}
			want := schemas.ReplayQuestion{From: c.asked, Force: c.force}
			if c.asked != "" && (len(k.asked) != 1 || k.asked[0] != want) {
				t.Errorf("%s: asked %+v, want once %+v", name, k.asked, want)
			}
			if c.code != "" {
				if a.Error == nil || a.Error.Code != c.code || a.Error.Field != c.field {
					t.Errorf("%s: got %+v, want %s in field %q", name, a.Error, c.code, c.field)
				}
				if len(k.host.started) > 0 {
					t.Errorf("%s: a run has begun", name)
				}
				continue
			}
			if a.Error != nil || a.Replays != "r1" || a.Plan == nil || a.Plan.From != c.from {
				t.Errorf("%s: answered %+v, %v; want a replay of r1 from %s",
					name, a, a.Error, c.from)
			}
			begins, n := c.input != "", len(k.host.started)
			if a.Started != begins || n == 1 != begins || a.Run == newRun != begins {
				t.Errorf("%s: answered %+v, %d have begun; want one: %t", name, a, n, begins)
				continue
			}
			if begins {
				checkStart(t, name, k.host.started[0].Event.(execution.Start), c.input, c.stage)
			}
		}
	})
}

// checkStart judges the start of a new run: it has the type and the tags of the old one, and says
// that it replays that.
func checkStart(t *testing.T, name string, start execution.Start, input, stage string) {
	t.Helper()
	q := start.Request
	if q.WorkflowID != "o" || q.Run != newRun || q.Type != "order" || len(q.TagList) != 1 {
		t.Errorf("%s: started %+v", name, q)
	}
	if string(q.Input) != input || q.Attributes["stage"] != stage {
		t.Errorf("%s: started with %q, %v; want %q, stage %s",
			name, q.Input, q.Attributes, input, stage)
	}
	if q.Replays == nil || q.Replays.Run != "r1" || q.Replays.Reason != "fixed" {
		t.Errorf("%s: says that it replays %+v", name, q.Replays)
	}
	if goesOn := stage == "last"; start.Retention != nil != goesOn {
		t.Errorf("%s: kept as %+v; as the old one: %t", name, start.Retention, goesOn)
	}
}

// The start of the new run is judged as any: another run of the workflow may have begun meanwhile.
func TestReplayWhoseStartIsRefused(t *testing.T) { // ADR 0028
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t)
		k.decides(&schemas.DecisionReply{Replay: &schemas.ReplayAnswer{}})
		k.host.refused = schemas.Errorf(schemas.CodeConflict, "another run is open").About("o", "r2")
		a := k.ask(&schemas.ReplayRequest{}, false)
		if a == nil || a.Error != k.host.refused || a.Run != "" || a.Started {
			t.Errorf("answered %+v, want the refusal of the start", a)
		}
	})
}
