package audit

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Only the message that was found is removed: not another one that has its place since, as after a server that has lost its end.
func TestStillThere(t *testing.T) {
	scripted(t, func(t *testing.T, a *Auditor, _ *owner) {
		if err := topology.EnsureList(t.Context(), a.o.Conn, a.ns, "main", topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		alarm := func(subj string, due schemas.Timestamp) uint64 {
			body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "r", Due: due})
			if err != nil {
				t.Fatal(err)
			}
			return store(t, a, subj, string(body))
		}
		alarms, tasks := a.ns.StreamAlarms(0), a.ns.StreamTasks("main")
		of, task := a.ns.Alarm(0, "o", "r"), a.ns.Task("main", 0)
		seq := alarm(of, 5)
		damaged := store(t, a, a.ns.Alarm(0, "o", "damaged"), "damaged")
		first := store(t, a, task, `{"workflowId":"o","run":"r","token":"token","activityId":"a"}`)
		unlike := store(t, a, task, "damaged")
		for _, tc := range []struct {
			name string
			m    message
			want bool
		}{
			{"an alarm", message{stream: alarms, seq: seq, subject: of, due: 5}, true},
			{"an alarm for another time", message{stream: alarms, seq: seq, subject: of, due: 6}, false},
			{"an alarm of another run", message{stream: alarms, seq: seq, subject: a.ns.Alarm(0, "o", "other"), due: 5}, false},
			{"an alarm that cannot be read", message{stream: alarms, seq: damaged, subject: a.ns.Alarm(0, "o", "damaged")}, false},
			{"an alarm that is gone", message{stream: alarms, seq: damaged + 1, subject: of, due: 5}, false},
			{"a task", message{stream: tasks, seq: first, subject: task, token: "token"}, true},
			{"another task", message{stream: tasks, seq: first, subject: task, token: "other"}, false},
			{"a task that cannot be read", message{stream: tasks, seq: unlike, subject: task, token: "token"}, false},
			{"a task of a list that is gone", message{stream: a.ns.StreamTasks("gone"), seq: first, subject: task, token: "token"}, false},
		} {
			if got, err := a.stillThere(t.Context(), &tc.m); err != nil || got != tc.want {
				t.Errorf("%s: got %v, %v, want %v", tc.name, got, err, tc.want)
			}
		}
	})
}

// A run with several findings is repaired once, and what came of it is said of each of them.
func TestRunIsRepairedOnce(t *testing.T) {
	for _, refusal := range []*schemas.Error{nil, schemas.Errorf(schemas.CodeInvalid, "no such thing")} {
		scripted(t, func(t *testing.T, a *Auditor, o *owner) {
			o.refusal = refusal
			repaired := map[string]error{}
			for n, f := range []*Finding{
				{Kind: KindTaskMissing, WorkflowID: "o", repair: "o", detail: "1"},
				{Kind: KindTaskMissing, WorkflowID: "o", repair: "o", detail: "2"},
				{Kind: KindAlarmMissing, WorkflowID: "o", repair: "o"},
			} {
				a.mend(t.Context(), f, repaired)
				if f.Repaired != (refusal == nil) || (f.Done != "") != f.Repaired || strings.Contains(f.Failed, "no such thing") == f.Repaired {
					t.Errorf("finding %d: got %+v", n, f)
				}
			}
			want := 1
			if refusal != nil {
				want = askTries
			}
			if got := o.repairs.Load(); got != int32(want) {
				t.Errorf("the owner was asked %d times to repair the run, want %d", got, want)
			}
		})
	}
}
