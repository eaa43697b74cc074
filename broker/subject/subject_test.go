package subject_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/subject"
)

const ns = subject.Namespace("default")

func TestSubjects(t *testing.T) {
	source, dest := ns.SignalTransform(4)
	for want, got := range map[string]string{
		"drover.default.signal.order%2E1.paid":                                  ns.Signal("order.1", "paid"),
		"drover.default.sig.3.order%2E1.paid%20now":                             ns.SignalStored(3, "order.1", "paid now"),
		"drover.default.api.start":                                              ns.API("start"),
		"drover.default.decide.charge":                                          ns.Decide("charge"),
		"drover.default.decide.charge.w%2F1":                                    ns.DecideSticky("charge", "w/1"),
		"drover.default.announce.charge":                                        ns.Announce("charge"),
		"drover.default.in.0.o%2A.start":                                        ns.In(0, "o*", "start"),
		"drover.default.in.0.o.act.PCI":                                         ns.ActOutcome(0, "o", "PCI"),
		"drover.default.in.*.*.act.PCI":                                         ns.AllActOutcomes("PCI"),
		"drover.default.history.2.o%3E.01ARZ":                                   ns.History(2, "o>", "01ARZ"),
		"drover.default.history.2.o.*":                                          ns.HistoryOfWorkflow(2, "o"),
		"drover.default.history.2.fence":                                        ns.Fence(2),
		"drover.default.history.2.>":                                            ns.AllHistory(2),
		"drover.default.history.2.*.*":                                          ns.AllRuns(2),
		"drover.default.alarm.1.o.r":                                            ns.Alarm(1, "o", "r"),
		"drover.default.task.PCI.1":                                             ns.Task("PCI", 5),
		"drover.default.task.PCI.0":                                             ns.Task("PCI", 0),
		"drover.default.task.PCI.-1":                                            ns.Task("PCI", -1<<31),
		"drover.default.task.PCI.*":                                             ns.AllTasks("PCI"),
		"drover.default.beat.1.o.PCI":                                           ns.Beat(1, "o", "PCI"),
		"drover.default.outcome.1.o.PCI":                                        ns.Outcome(1, "o", "PCI"),
		"drover.default.outcome.1.>":                                            ns.AllOutcomes(1),
		"drover.default.outcome.*.*.PCI":                                        ns.AllOutcomesOf("PCI"),
		"drover.default.offer.PCI":                                              ns.Offer("PCI"),
		"drover.default.ring.3":                                                 ns.Fire(3),
		"drover.default.owner.3":                                                ns.Owner(3),
		"drover.default.owned.3":                                                ns.Owned(3),
		"drover.default.purged.3":                                               ns.Purged(3),
		"drover.default.control.host%2Elan":                                     ns.Control("host.lan"),
		"drover.default.event.WorkflowStarted.T.o%2E1":                          ns.Event("WorkflowStarted", "T", "o.1"),
		"drover.default.dead.unknown":                                           ns.Dead("unknown"),
		"drover.default.dead.unknown.0.in%2E0.17":                               ns.Dead("unknown", "0", "in.0", "17"),
		"drover.default.signal.*.*":                                             source,
		"drover.default.sig.{{partition(4,1)}}.{{wildcard(1)}}.{{wildcard(2)}}": dest,
		"drover-default-in-0":                                                   ns.StreamIn(0),
		"drover-default-history-0":                                              ns.StreamHistory(0),
		"drover-default-alarms-0":                                               ns.StreamAlarms(0),
		"drover-default-signals":                                                ns.StreamSignals(),
		"drover-default-tasks-PCI":                                              ns.StreamTasks("PCI"),
		"drover-default-dead":                                                   ns.StreamDead(),
		"drover-default-claims":                                                 ns.BucketClaims(),
		"drover-default-checkpoints":                                            ns.BucketCheckpoints(),
	} {
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// Whatever two namespaces and lists are called, their streams have different names.
func TestStreamNamesNeverMeet(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "tasks", "dead", "in", "0", "history", "signals", "x"})
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), "-")
	})
	nsName := name.Filter(func(s string) bool { return subject.ValidateNamespace(s) == nil })
	stream := rapid.Custom(func(t *rapid.T) [2]string {
		n, list, p := subject.Namespace(nsName.Draw(t, "ns")), name.Draw(t, "list"), rapid.IntRange(0, 9).Draw(t, "p")
		all := []string{n.StreamDead(), n.StreamSignals(), n.StreamIn(p), n.StreamHistory(p), n.StreamAlarms(p), n.StreamTasks(list)}
		i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
		return [2]string{all[i], fmt.Sprint(n, " ", i, " ", map[bool]string{true: list}[i == 5], map[bool]int{true: p}[i > 1 && i < 5])}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := stream.Draw(t, "a"), stream.Draw(t, "b")
		if a[0] == b[0] && a[1] != b[1] {
			t.Fatalf("stream %s is both %q and %q", a[0], a[1], b[1])
		}
	})
}

func TestParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.StringN(1, 60, 256).Filter(func(s string) bool { return subject.ValidateID("id", s) == nil })
		wid, x, p := gen.Draw(t, "wid"), gen.Draw(t, "x"), rapid.IntRange(0, 999_999).Draw(t, "p")
		for _, tt := range []struct {
			subj  string
			parse func(string) (int, string, string, error)
		}{
			{ns.History(p, wid, x), subject.ParseHistory},
			{ns.Alarm(p, wid, x), subject.ParseAlarm},
			{ns.SignalStored(p, wid, x), subject.ParseSignalStored},
		} {
			gp, gw, gx, err := tt.parse(tt.subj)
			if err != nil || gp != p || gw != wid || gx != x {
				t.Fatalf("%q: got %d %q %q %v, want %d %q %q", tt.subj, gp, gw, gx, err, p, wid, x)
			}
		}
		gp, gw, kind, rest, err := subject.ParseIn(ns.In(p, wid, x))
		if err != nil || gp != p || gw != wid || kind != x || rest != nil {
			t.Fatalf("got %d %q %q %q %v", gp, gw, kind, rest, err)
		}
	})
}

func TestParseInRest(t *testing.T) {
	p, wid, kind, rest, err := subject.ParseIn("drover.default.in.12.a%2Eb.act.PCI.x%20y")
	if err != nil || p != 12 || wid != "a.b" || kind != "act" {
		t.Fatalf("got %d %q %q %v", p, wid, kind, err)
	}
	if diff := cmp.Diff([]string{"PCI", "x y"}, rest); diff != "" {
		t.Fatal(diff)
	}
	if p, wid, list, err := subject.ParseBeat(ns.Beat(1, "o", "PCI")); err != nil || p != 1 || wid != "o" || list != "PCI" {
		t.Fatalf("got %d %q %q %v", p, wid, list, err)
	}
	if p, wid, list, err := subject.ParseOutcome(ns.Outcome(1, "o", "PCI")); err != nil || p != 1 || wid != "o" || list != "PCI" {
		t.Fatalf("got %d %q %q %v", p, wid, list, err)
	}
}

func TestParseOwned(t *testing.T) {
	if p, err := subject.ParseOwned(ns.Owned(12)); err != nil || p != 12 {
		t.Fatalf("got %d %v", p, err)
	}
	for subj, hint := range map[string]string{
		"": "want drover", "drover.default.owned": "owned.<partition>", "drover.default.beat.3": "owned.<partition>",
		"drover.default.owned.": "partition", "drover.default.owned.-1": "partition", "drover.default.owned.3.x": "partition",
	} {
		if p, err := subject.ParseOwned(subj); !errors.Is(err, subject.ErrInvalidSubject) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: got %d and %v, want an error that names %q", subj, p, err, hint)
		}
	}
}

// Bad input: ids. Subjects that no builder writes are refused with the token that is wrong.
func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ subj, hint string }{
		{"", "want drover"},
		{"drover", "want drover"},
		{"other.default.history.0.w.r", "want drover"},
		{"drover..history.0.w.r", "namespace is empty"},
		{"drover.a b.history.0.w.r", "namespace"},
		{"drover.default.alarm.0.w.r", `third token is "alarm"`},
		{"drover.default.history", "partition"},
		{"drover.default.history.0", "too few"},
		{"drover.default.history.0.fence", "too few"},
		{"drover.default.history.-1.w.r", "partition"},
		{"drover.default.history.+1.w.r", "partition"},
		{"drover.default.history.01.w.r", "partition"},
		{"drover.default.history.1234567.w.r", "partition"},
		{"drover.default.history.x.w.r", "partition"},
		{"drover.default.history.0..r", "workflow id"},
		{"drover.default.history.0.*.r", "workflow id"},
		{"drover.default.history.0.w.", "run id"},
		{"drover.default.history.0.w.>", "run id"},
		{"drover.default.history.0.w.r.more", "run id"},
		{"drover.default.history.0.%2e.r", "workflow id"},
		{"drover.default.history.0.%0A.r", "workflow id"},
	} {
		_, _, _, err := subject.ParseHistory(tt.subj)
		if !errors.Is(err, subject.ErrInvalidSubject) || !strings.Contains(err.Error(), tt.hint) {
			t.Fatalf("%q: got %v, want ErrInvalidSubject with %q", tt.subj, err, tt.hint)
		}
	}
	for _, subj := range []string{"drover.default.in.0.w", "drover.default.in.0.w.", "drover.default.in.0.w.act.", "drover.default.in.0.w.act..x", "drover.default.in.0.w.%61ct"} {
		if _, _, _, _, err := subject.ParseIn(subj); !errors.Is(err, subject.ErrInvalidSubject) {
			t.Fatalf("%q: got %v, want ErrInvalidSubject", subj, err)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	subj := ns.History(1, "order-1", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	in := ns.In(1, "order-1", "start")
	n := testing.AllocsPerRun(100, func() {
		if _, _, _, err := subject.ParseHistory(subj); err != nil {
			t.Fatal(err)
		}
		if _, _, _, _, err := subject.ParseIn(in); err != nil {
			t.Fatal(err)
		}
		subject.Partition("a.b/c d", 16)
	})
	if n != 0 {
		t.Fatalf("got %v allocations, want 0", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("drover.default.in.0.w.act.PCI")
	f.Add("drover.default.history.0.w%2E.r")
	f.Add("drover.default.sig.0..r")
	f.Fuzz(func(t *testing.T, s string) {
		if p, wid, run, err := subject.ParseHistory(s); err == nil {
			n, err := subject.NamespaceOf(s)
			if err != nil || n.History(p, wid, run) != s {
				t.Fatalf("%q: got %d %q %q, %v", s, p, wid, run, err)
			}
		}
		if p, wid, kind, rest, err := subject.ParseIn(s); err == nil {
			n, _ := subject.NamespaceOf(s)
			var back strings.Builder
			back.WriteString(n.In(p, wid, kind))
			for _, r := range rest {
				back.WriteString("." + subject.Token(r))
			}
			if back.String() != s {
				t.Fatalf("got %q, want %q", back.String(), s)
			}
		}
	})
}

func BenchmarkPartition(b *testing.B) {
	for b.Loop() {
		subject.Partition("order-2024-000123", 16)
	}
}
