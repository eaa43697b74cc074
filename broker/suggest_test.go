package broker_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// A week of an idle server takes minutes in virtual time too, so an hour is a minute here. The core plays the week itself.
var hour = flag.Duration("hour", time.Minute, "how long an hour of TestAWeekOfContinuations is")

const continueAsNew = `[{"type":"ContinueAsNew","attributes":{}}]`

// runOfChain is a run of a chain, as its history has it.
type runOfChain struct {
	id       string
	started  *schemas.WorkflowStarted
	last     int64    // event
	received []string // the numbers of its signals that are no copies
	copied   int
	asked    []string // the reasons of ContinuationSuggested
	status   schemas.Status
}

// linksOf reads the runs of a workflow in the order of their records.
func (f *fleet) linksOf(wid string) (all []*runOfChain) {
	f.t.Helper()
	p, filter := f.ofRuns(wid)
	err := f.post.Scan(f.t.Context(), ns.StreamHistory(p), post.ReadOptions{FilterSubjects: []string{filter}}, func(s post.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if len(all) == 0 || all[len(all)-1].id != r.Run {
			all = append(all, &runOfChain{id: r.Run})
		}
		run := all[len(all)-1]
		for _, e := range r.Events {
			run.last = e.ID
			if status, closes := schemas.StatusOf(e.Type()); closes {
				run.status = status
			}
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				run.started = a
			case *schemas.ContinuationSuggested:
				run.asked = append(run.asked, a.Reasons...)
			case *schemas.Signal:
				switch {
				case a.OriginRun != "":
					run.copied++
				case a.SignalName == "s":
					run.received = append(run.received, numberOf(a))
				}
			}
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// numbered sends signals "0", "1" … to workflow o, from several goroutines in one order.
type numbered struct {
	sync.Mutex
	f *fleet
	n int
}

func (s *numbered) send() {
	s.Lock()
	defer s.Unlock()
	s.f.publish("drover.default.signal.o.s", fmt.Sprintf("%q", fmt.Sprint(s.n)))
	s.n++
}

// S2-6, S2-8, S2-9, P-4. A run that is kept running continues as new once an hour, 168 times, while signals come in: in every fourth run while
// its decider continues it, and in every other fourth whenever its decider does. None is lost, comes twice or in another order, and no
// history grows beyond what comes in an hour.
func TestAWeekOfContinuations(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		seen := &seenSignals{last: map[string]int64{}}
		signals := &numbered{f: f}
		ended, runs, last := false, 0, ""
		f.decider("order", func(d *decisionTask) string {
			run, _, _ := strings.Cut(d.Token, ".")
			for _, e := range d.Events {
				name, _ := e.Attributes["signalName"].(string)
				ended = ended || name == "end"
				if input, _ := e.Attributes["input"].(string); name == "s" && e.ID > seen.last[run] {
					seen.last[run], seen.signals = e.ID, append(seen.signals, input)
				}
			}
			switch {
			case ended:
				return complete
			case d.SuggestContinueAsNew:
				if !slices.Equal(d.ContinueReasons, []string{"age"}) {
					t.Errorf("it is to continue because of %q, want its age", d.ContinueReasons)
				}
				first := run != last
				if first {
					runs, last = runs+1, run
				}
				if runs%4 == 1 && first || runs%4 == 3 {
					signals.send()
					signals.send()
				}
				return continueAsNew
			}
			return "[]"
		})
		f.node("a", nil)
		f.start(fmt.Sprintf(`{"workflowId":"o","run":"r1","type":"order","startMode":"AutoStart","continuation":{"after":"%s"}}`, *hour))
		const hours = 7 * 24
		for begun := time.Now(); time.Since(begun) < hours**hour; {
			signals.send()
			time.Sleep(13 * *hour / 60)
		}
		f.publish("drover.default.signal.o.end", "")
		f.completes("o")
		chain := f.linksOf("o")
		var recorded []string
		copies := 0
		for i, run := range chain {
			recorded, copies = append(recorded, run.received...), copies+run.copied
			want, status := schemas.ModeContinuation, schemas.StatusContinuedAsNew
			if i == 0 {
				want = schemas.ModeAutoStart
			}
			if i == len(chain)-1 {
				status = schemas.StatusCompleted
			} else if len(run.asked) != 1 {
				t.Errorf("run %d was asked to continue %d times, want once", i, len(run.asked))
			}
			if run.started.Mode() != want || run.status != status {
				t.Errorf("run %d: begun by %q, %s; want %q, %s", i, run.started.Mode(), run.status, want, status)
			}
			if run.last > 150 {
				t.Errorf("run %d has %d events, want what an hour brings", i, run.last)
			}
		}
		inOrder(t, "in the histories", recorded, signals.n)
		inOrder(t, "that deciders have seen", seen.signals, signals.n)
		if len(chain) < hours*3/4 || len(chain) > hours+1 || copies == 0 {
			t.Errorf("%d runs in %d hours, with %d copied signals", len(chain), hours, copies)
		}
		if dead := f.dead(); len(dead) > 0 {
			t.Errorf("dead letters: %v", dead)
		}
		t.Logf("%d signals, %d of them copied, in %d runs", signals.n, copies, len(chain))
	})
}
