package execution

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/retention"
	"github.com/droverhq/drover/schemas"
)

func keep(text string) *schemas.SetRetention { return &schemas.SetRetention{Retention: text} }

func policy(text string) *schemas.RetentionPolicy {
	disk, soft, _ := strings.Cut(text, " soft ")
	return &schemas.RetentionPolicy{Disk: disk, Soft: soft}
}

// A0-15: what a run says is resolved at that moment: context is what it said before, parent and system what they are now.
func TestA015RetentionIsFolded(t *testing.T) {
	system, err := retention.ParseDefault("7 soft 9")
	if err != nil {
		t.Fatal(err)
	}
	parent := &schemas.RetentionPolicy{Disk: "2h", Soft: "2h", Hash: "the parent's"}
	off := &schemas.RetentionPolicy{Disk: "5", Soft: "5", Disabled: true}
	for _, tt := range []struct {
		name   string
		parent *schemas.RetentionPolicy
		says   []*schemas.SetRetention
		want   *schemas.RetentionPolicy
	}{
		{"nothing", nil, nil, nil},
		{"nothing of a child", parent, nil, policy("2h soft 2h")},
		{"a count", nil, []*schemas.SetRetention{keep("5")}, policy("5 soft 9")},
		{"a duration", nil, []*schemas.SetRetention{keep("24h hard")}, policy("1d soft 1d")},
		{"forever", nil, []*schemas.SetRetention{keep("forever soft 1")}, policy("forever soft 1")},
		{"system", parent, []*schemas.SetRetention{keep("system soft system")}, policy("7 soft 9")},
		{"parent", parent, []*schemas.SetRetention{keep("parent")}, policy("2h soft 2h")},
		{"parent of none", nil, []*schemas.SetRetention{keep("parent")}, policy("7 soft 9")},
		{"context at the start", parent, []*schemas.SetRetention{keep("max(context, 3)")}, policy("max(3, 2h) soft 2h")},
		{"context on the way", nil, []*schemas.SetRetention{keep("4 soft 0"), keep("min(context, 1h)"), keep("min(context, 1h)")}, policy("min(4, 1h) soft 0")},
		{"a hash beside it", nil, []*schemas.SetRetention{{Retention: "1 soft 0", Hash: "a b"}}, &schemas.RetentionPolicy{Disk: "1", Soft: "0", Hash: "a b"}},
		{"a hash within, kept by a change", nil, []*schemas.SetRetention{keep("1 soft 0 hash a b"), keep("2")}, &schemas.RetentionPolicy{Disk: "2", Soft: "0", Hash: "a b"}},
		{"disabled", nil, []*schemas.SetRetention{keep("disabled hard")}, &schemas.RetentionPolicy{Disk: "7", Soft: "0", Disabled: true}},
		{"disabled, and no more", nil, []*schemas.SetRetention{keep("disabled"), keep("")}, policy("7 soft 9")},
		{"disabled above", off, []*schemas.SetRetention{keep("forever")}, &schemas.RetentionPolicy{Disk: "forever", Soft: "5", Disabled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) {
				if tt.parent != nil {
					q.Origin = &schemas.StartOrigin{Parent: &schemas.Execution{WorkflowID: "p", Run: "pr"}, ParentScheduledEventID: 5, Depth: 1, ParentRetention: tt.parent}
				}
			})
			w.c.Retention = &system
			for i, s := range tt.says {
				w.decide(s)
				if i < len(tt.says)-1 {
					w.do(Signal{Name: "on"})
				}
			}
			if diff := cmp.Diff(tt.want, w.s.Keeping()); diff != "" {
				t.Errorf("retention (-want +got):\n%s", diff)
			}
		})
	}
}

// A run that continues takes its retention along, a child gets it as its parent's.
func TestRetentionIsPassedOn(t *testing.T) {
	w := decided(t, keep("5 soft 1 hash g"))
	w.do(Signal{Name: "on"})
	w.decide(&schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
	want := &schemas.RetentionPolicy{Disk: "5", Soft: "1", Hash: "g"}
	child := w.s.ChildStart(w.s.OpenChildren()[0])
	if diff := cmp.Diff(want, child.Origin.ParentRetention); diff != "" || child.Origin.Retention != nil {
		t.Errorf("the child's (-want +got):\n%s", diff)
	}
	c := New("c", child.Run)
	c.Step(&w.c, Start{Request: child}, w.now)
	if diff := cmp.Diff(&schemas.RetentionPolicy{Disk: "5", Soft: "1"}, c.Keeping()); diff != "" {
		t.Errorf("what the child has (-want +got):\n%s", diff)
	}
	w.do(Signal{Name: "on"})
	w.decide(&schemas.ContinueAsNew{})
	next := New(w.s.WorkflowID, "next")
	next.Step(&w.c, Start{Request: w.s.Continuation()}, w.now)
	if diff := cmp.Diff(want, next.Keeping()); diff != "" {
		t.Errorf("what the continued run has (-want +got):\n%s", diff)
	}
}

// What cannot be read is refused, and nothing beside it is carried out.
func TestRetentionIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		decisions []schemas.DecisionAttributes
		want      string
	}{
		"no value":              {list(keep("any(2, 24h)")), `decision 1: SetRetention: retention "any(2, 24h)"`},
		"second":                {list(&schemas.RecordMarker{MarkerName: "m"}, keep("-1")), "decision 2: SetRetention: "},
		"two hashes":            {list(&schemas.SetRetention{Retention: "1 hash a", Hash: "b"}), "hash: the expression names one too"},
		"a hash that is blank":  {list(&schemas.SetRetention{Retention: "1", Hash: " "}), "hash: it is blank"},
		"a hash with a control": {list(&schemas.SetRetention{Retention: "1", Hash: "a\x00"}), "hash: it has a control character"},
		"a long hash":           {list(&schemas.SetRetention{Hash: strings.Repeat("a", 513)}), "hash: it is longer than 512"},
		"with a lock":           {list(lockUp("L"), keep("disabled")), `decision 2: SetRetention: a run with lock "L" cannot disable`},
		"with a lock's key":     {list(keep("disabled"), setKey("lock-L", `"order-1"`, "")), `decision 1: SetRetention: a run with lock "L" cannot disable`},
	} {
		t.Run(name, func(t *testing.T) {
			w := decided(t, tt.decisions...)
			w.mark = 3
			w.follows("DeciderFailed INVALID_DECISION; DeciderScheduled")
			got := w.events[len(w.events)-2].Attributes.(*schemas.DeciderFailed).Reason
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	w := decided(t, keep("disabled"), keep("3"), setKey("lock-L", `"order-1"`, "")) // what is said last counts
	w.mark = 3
	w.follows("DeciderCompleted; RetentionSet; RetentionSet; StateRequested lock-L")
	w = decided(t, keep("disabled"))
	w.do(Signal{Name: "on"})
	w.decide(lockUp("L"), setKey("lock-L", `"order-1"`, ""), &schemas.GetState{Key: "lock-L"})
	w.mark = len(w.events) - 4
	w.follows("LockRefused L INVALID_ATTRIBUTES; StateRefused lock-L INVALID_ATTRIBUTES; StateRequested lock-L; DeciderScheduled")
	w.decide(setKey("lock-L", `"order-1"`, "")) // who is refused is told, whatever else it asks
	w.follows("DeciderStarted; DeciderCompleted; StateRefused lock-L INVALID_ATTRIBUTES; DeciderScheduled")
}

// A run that has a lock from an earlier decision cannot disable its retention either.
func TestRetentionBesideALock(t *testing.T) {
	w := decided(t, lockUp("L"))
	w.grant("L", 7)
	w.since()
	w.decide(keep("disabled hard"))
	w.follows("DeciderStarted; DeciderFailed INVALID_DECISION; DeciderScheduled")
}

// A policy that cannot be read, from a later version perhaps, keeps everything.
func TestStrangePolicyKeepsAll(t *testing.T) {
	if p := policyOf(&schemas.RetentionPolicy{Disk: "fortnight", Soft: "0"}); p.String() != "forever hard" {
		t.Errorf("got %s", p)
	}
}
