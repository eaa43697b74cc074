package retention_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// A0-15: each form of retention keeps what it says, of six runs that closed an hour apart, the last of them minutes ago. The forms
// live in one house: those without a hash have a type of their own, and so a group.
func TestA015Forms(t *testing.T) {
	forms := []struct {
		says []string
		hash string
		want string
	}{
		{[]string{"2"}, "", "5 6"},
		{[]string{"0"}, "", ""},
		{[]string{"150m"}, "", "4 5 6"},
		{[]string{"forever"}, "", "1 2 3 4 5 6"},
		{[]string{"all"}, "", "1 2 3 4 5 6"},
		{[]string{"max(1, 90m)"}, "", "5 6"},
		{[]string{"min(2, 30m)"}, "", "6"},
		{[]string{"system"}, "", "4 5 6"},
		{[]string{"parent"}, "", "4 5 6"},
		{[]string{""}, "g", "4 5 6"},
		{[]string{"4", "min(context, 90m)"}, "", "5 6"},
		{[]string{"disabled"}, "", ""},
		{[]string{"disabled", "1"}, "", "6"},
		{[]string{"2 hard"}, "", "5 6"},
		{[]string{"2 soft 4"}, "", "5 6"},
		{[]string{"2"}, "one group", "5 6"},
	}
	typ := func(form int) string { return "raw-" + strconv.Itoa(form) }
	id := func(form, run int) string { return typ(form) + "." + strconv.Itoa(run) }
	var kept []string
	why := map[string]*schemas.RetentionResponse{}
	live(t, retention.Options{}, func(h *house) {
		w := h.Client.Deciders(nil)
		for i := range forms {
			w.Register(typ(i), decider.Func(decide))
		}
		h.Go(w)
		for run := range 6 {
			if run > 0 {
				h.Sleep(time.Hour)
			}
			for i, tt := range forms {
				h.run(typ(i), id(i, run+1), says{Retention: tt.says, Hash: tt.hash})
			}
		}
		h.settle()
		h.pass()
		kept = strings.Fields(h.kept())
		for _, id := range kept {
			why[id] = h.explain(id, "")
		}
	})
	for i, tt := range forms {
		t.Run(strings.Join(tt.says, " then ")+tt.hash, func(t *testing.T) {
			var got []string
			for run := range 6 {
				if slices.Contains(kept, id(i, run+1)) {
					got = append(got, strconv.Itoa(run+1))
					t.Logf("%d: %+v", run+1, why[id(i, run+1)])
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("kept: got %q, want %q", got, tt.want)
			}
		})
	}
}

// A0-15: runs are judged with those of their hash, and by their name if they have none.
func TestA015Groups(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		for _, id := range []string{"a1", "b1", "n1", "a2", "b2", "n2", "a3", "b3", "n3"} {
			in := says{Retention: []string{"2"}}
			if id[0] != 'n' {
				in.Hash = id[:1]
			}
			h.run("raw", id, in)
		}
		h.run("child", "c1", says{Retention: []string{"1"}}) // another name, another group
		h.settle()
		h.pass()
		h.wantKept("a2 a3 b2 b3 c1 n2 n3")
	})
}

// A0-15: what a run says in the middle holds from then on, and for its group from its end on.
func TestA015ChangeOnTheWay(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		for _, id := range []string{"1", "2", "3"} {
			h.run("raw", id, says{Retention: []string{"forever"}})
		}
		h.settle()
		h.pass()
		h.wantKept("1 2 3")
		h.run("raw", "4", says{Retention: []string{"forever", "2"}})
		h.settle()
		h.pass()
		h.wantKept("3 4")
	})
}

// A0-15: children have their parent's retention as theirs, and stay while a run above them is open.
func TestA015Parent(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		parent := h.start("raw", "p", says{Retention: []string{"0"}, Child: &says{Child: &says{}, ChildID: "grandchild"}, ChildID: "child", Stay: true})
		time.Sleep(time.Minute)
		h.settle()
		if r := h.pass(); r.Blocked != 2 {
			h.t.Errorf("got %+v, want 2 runs that wait for the end of the one above them", r)
		}
		h.wantKept("child grandchild p")
		if why := h.explain("grandchild", "").Because; !strings.Contains(why, "never while run "+parent.RunID) {
			h.t.Errorf("got %q", why)
		}
		if err := parent.Signal(h.t.Context(), "go", nil); err != nil {
			h.t.Fatal(err)
		}
		h.Wait(parent)
		h.settle()
		h.pass()
		h.wantKept("")
	})
}

// A0-16: without a word flows are kept by number and others by age, both as the namespace says, and what is open is always kept.
func TestA016Defaults(t *testing.T) {
	for name, tt := range map[string]struct {
		o     retention.Options
		apart time.Duration // from one pair of runs to the next
		want  string
	}{
		"of the system":    {retention.Options{}, 3 * 24 * time.Hour, "f3 f4 f5 open-f open-r r4 r5"},
		"of the namespace": {retention.Options{FlowDefault: "1", Default: "min(1, 2d)"}, 24 * time.Hour, "f5 open-f open-r r5"},
		"nothing":          {retention.Options{FlowDefault: "0", Default: "0"}, time.Hour, "open-f open-r"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, tt.o, func(h *house) {
				h.start("flow", "open-f", says{Stay: true})
				h.start("raw", "open-r", says{Stay: true})
				for i := range 5 {
					h.run("flow", "f"+strconv.Itoa(i+1), says{})
					h.run("raw", "r"+strconv.Itoa(i+1), says{})
					h.Sleep(tt.apart)
				}
				h.settle()
				h.pass()
				h.wantKept(tt.want)
			})
		})
	}
}
