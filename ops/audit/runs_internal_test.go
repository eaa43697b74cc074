package audit

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// owner answers for the partition what a test wants, one run at a time.
type owner struct {
	says    map[string]schemas.AuditRun // by workflow id
	how     []schemas.AuditResponse     // the rest of the answers, one after another; the last holds for all that follow
	refusal *schemas.Error              // of repairs
	repairs atomic.Int32
}

// scripted runs fn in virtual time with an auditor of a namespace of one partition. No broker serves it.
func scripted(t *testing.T, fn func(*testing.T, *Auditor, *owner)) {
	t.Helper()
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		o := &owner{says: map[string]schemas.AuditRun{}, how: make([]schemas.AuditResponse, 1)}
		answer := func(m natsconn.Msg, a any) {
			if body, err := schemas.Marshal(a); err != nil || m.Respond(nil, body) != nil {
				t.Errorf("an answer cannot be sent: %v", err)
			}
		}
		for verb, serve := range map[string]func(natsconn.Msg){
			"audit": func(m natsconn.Msg) {
				var q schemas.AuditRequest
				if err := schemas.Unmarshal(m.Data, &q); err != nil {
					t.Error(err)
					return
				}
				a := o.how[0]
				if len(o.how) > 1 {
					o.how = o.how[1:]
				}
				r := o.says[q.Workflows[0]]
				r.WorkflowID = q.Workflows[0]
				a.Runs = []schemas.AuditRun{r}
				answer(m, &a)
			},
			"repair": func(m natsconn.Msg) {
				o.repairs.Add(1)
				answer(m, &schemas.AckResponse{V: schemas.Version, Error: o.refusal})
			},
		} {
			sub, err := conn.Subscribe(n.Name.API(verb), "", serve)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
		}
		fn(t, &Auditor{ns: n.Name, o: Options{Conn: conn, Namespace: n.Name, Partitions: 1, Rate: 1000, Overdue: 5 * time.Second, MostOfKind: 100}}, o)
	})
}

func store(t *testing.T, a *Auditor, subj, body string) uint64 {
	t.Helper()
	seq, err := a.o.Conn.PublishSync(t.Context(), subj, nil, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// wantFound fails unless these are the workflows of the findings, all of one kind.
func wantFound(t *testing.T, s *suspects, kind Kind, want ...string) {
	t.Helper()
	var got []string
	for f := range maps.Values(s.found) {
		if f.Kind != kind {
			t.Errorf("found %+v, want none but %s", f, kind)
		}
		got = append(got, f.WorkflowID)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found %s of %v, want of %v", kind, got, want)
	}
}

func newSuspects() *suspects { return &suspects{most: 100, found: map[string]Finding{}} }

func waitsFor(list string, change func(*schemas.AuditActivity)) schemas.AuditRun {
	act := schemas.AuditActivity{ActivityID: "a", List: list, Token: "token", ScheduledAt: 1}
	if change != nil {
		change(&act)
	}
	return schemas.AuditRun{Run: "r", Status: schemas.StatusOpen, Activities: []schemas.AuditActivity{act}}
}

// Nothing is judged by the word of an owner that lags, and its runs are told of as undecided. It may catch up between two answers.
func TestOwnerThatCatchesUp(t *testing.T) { // I15, I18
	scripted(t, func(t *testing.T, a *Auditor, o *owner) {
		o.how = []schemas.AuditResponse{{Recovering: true}, {}}
		var of []schemas.Execution
		for _, id := range []string{"o1", "o2", "o3"} {
			o.says[id] = waitsFor("main", nil)
			of = append(of, schemas.Execution{WorkflowID: id, Run: "r"})
		}
		v, s := newView(a, true), newSuspects()
		v.ends = make([]uint64, 1)
		v.again()
		if err := a.judgeAll(t.Context(), v, 0, slices.Values(of), s); err != nil {
			t.Fatal(err)
		}
		wantFound(t, s, KindTaskMissing, "o2", "o3")
		if v.undecided != 1 || !v.unseen.runs[0] {
			t.Errorf("%d undecided, unseen: %v, want 1 in partition 0", v.undecided, v.unseen.runs)
		}
		for id, want := range map[string]bool{"o1": false, "o2": true} {
			if got := v.notWanted(&Finding{Kind: KindTaskStale, WorkflowID: id, Run: "r", remove: &message{token: "stale"}}); got != want {
				t.Errorf("a task of %s is not wanted: %v, want %v", id, got, want)
			}
		}
	})
}

// A task is missing only if it should be on its list, and the list was read to its end.
func TestMissingTask(t *testing.T) {
	v, s := newView(&Auditor{}, true), newSuspects()
	v.partial["long"] = true
	v.tasks["there"] = &task{Token: "there"}
	for id, r := range map[string]schemas.AuditRun{
		"missing":          waitsFor("main", nil),
		"there":            waitsFor("main", func(act *schemas.AuditActivity) { act.Token = "there" }),
		"to come":          waitsFor("main", func(act *schemas.AuditActivity) { act.NotBefore = 5 }),
		"begun":            waitsFor("main", func(act *schemas.AuditActivity) { act.StartedAt = 5 }),
		"on a longer list": waitsFor("long", nil),
	} {
		r.WorkflowID = id
		v.a.judgeTasks(v, 9, &r, Finding{WorkflowID: id, Run: r.Run}, s)
	}
	wantFound(t, s, KindTaskMissing, "missing")
	if !v.tasks["there"].wanted {
		t.Error("a task that a run waits for is not wanted")
	}
}

// An alarm is stale only if its run is closed, or is not the one that the owner knows, and if it has not just rung.
func TestStaleAlarm(t *testing.T) { // I15
	scripted(t, func(t *testing.T, a *Auditor, o *owner) {
		v, s := newView(a, true), newSuspects()
		v.began = schemas.At(time.Now())
		for id, r := range map[string]schemas.AuditRun{
			"open":          {Run: "r", Status: schemas.StatusOpen},
			"paused":        {Run: "r", Status: schemas.StatusPaused},
			"busy":          {Run: "later", Status: schemas.StatusOpen, Busy: true},
			"damaged":       {Unreadable: "damaged"},
			"just-rung":     {Run: "r", Status: schemas.StatusCompleted},
			"closed":        {Run: "r", Status: schemas.StatusCompleted},
			"later":         {Run: "later", Status: schemas.StatusOpen},
			"never-started": {},
		} {
			o.says[id] = r
			due := v.began.Add(schemas.Duration(time.Hour))
			if id == "just-rung" {
				due = v.began.Add(-schemas.Duration(time.Second))
			}
			body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "r", Due: due})
			if err != nil {
				t.Fatal(err)
			}
			store(t, a, a.ns.Alarm(0, id, "r"), string(body))
		}
		if err := v.readAlarms(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := a.lookAtStale(t.Context(), v, 0, s); err != nil {
			t.Fatal(err)
		}
		wantFound(t, s, KindAlarmStale, "closed", "later", "never-started")
	})
}

// The end of a child is lost only if the very run that is waited for has closed, and has nothing left to say.
func TestLostEndOfAChild(t *testing.T) {
	scripted(t, func(t *testing.T, a *Auditor, o *owner) {
		v, s := newView(a, true), newSuspects()
		for id, r := range map[string]schemas.AuditRun{
			"closed":    {Run: "r", Status: schemas.StatusFailed},
			"open":      {Run: "r", Status: schemas.StatusOpen},
			"busy":      {Run: "r", Status: schemas.StatusFailed, Busy: true},
			"continued": {Run: "r", Status: schemas.StatusContinuedAsNew},
			"later":     {Run: "later", Status: schemas.StatusFailed},
		} {
			o.says[id] = r
			v.expect(schemas.OpenChild{WorkflowID: id, Run: "r", Started: true}, &schemas.AuditRun{WorkflowID: "parent-of-" + id, Run: "p"})
		}
		if err := a.lookAtChildren(t.Context(), v, s); err != nil {
			t.Fatal(err)
		}
		wantFound(t, s, KindChildEndLost, "parent-of-closed")
		for _, f := range s.found {
			if f.repair != "closed" {
				t.Errorf("%q is to say it again, want the child", f.repair)
			}
		}
	})
}
