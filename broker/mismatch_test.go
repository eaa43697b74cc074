package broker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// builds are two workers with different code, and what each has answered, by workflow.
type builds struct {
	sync.Mutex
	f    *fleet
	asks map[string][]string
}

// runs lets a worker of a build decide. Of a run that got a signal only the new one knows what to do.
func (b *builds) runs(name string) (stop func()) {
	b.f.t.Helper()
	conn := b.f.dial(b.f)
	w := decider.New(conn, &decider.Options{Identity: name, Logger: b.f.log})
	w.Register("order", decider.Func(func(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
		id := t.Execution().WorkflowID
		b.Lock()
		b.asks[id] = append(b.asks[id], name)
		b.Unlock()
		switch signal := t.PreviousStartedID() > 0; {
		case !signal && id[0] == 'o':
			return nil, nil
		case signal && name == "old":
			return nil, fmt.Errorf("%w: event 6 is ship#1", decider.ErrNonDeterministic)
		}
		return []schemas.Decision{decider.Complete(nil)}, nil
	}))
	end := b.f.employs(w.Run)
	return func() {
		if err := end(); err != nil {
			b.f.t.Error(err)
		}
		conn.Close()
	}
}

// askedOf is who was asked for a workflow.
func (b *builds) askedOf(id string) string {
	b.Lock()
	defer b.Unlock()
	return strings.Join(b.asks[id], " ")
}

// A worker whose code does not fit the history is not asked again because it has the run: another one that is known is, at the
// first try.
func TestAnotherBuildIsAsked(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		b := &builds{f: f, asks: map[string][]string{}}
		defer b.runs("old")()
		const n = 12
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i))
		}
		for i := range n {
			f.await(fmt.Sprint("o", i), schemas.EventDeciderCompleted)
		}
		defer b.runs("new")()
		for i := 0; ; i++ { // until the new one is known
			id := fmt.Sprint("w", i)
			f.start(`{"workflowId":"` + id + `","type":"order"}`)
			f.completes(id)
			if b.askedOf(id) == "new" {
				break
			}
			if i == 200 {
				t.Fatal("the new worker was never asked")
			}
		}
		for i := range n {
			id := fmt.Sprint("o", i)
			f.publish("drover.default.signal."+id+".go", "")
			f.completes(id)
			if got := b.askedOf(id); got != "old old new" {
				t.Errorf("%s were asked for %s, want the old one twice and then the new one", got, id)
			}
			if got := f.happened(id, schemas.EventDeciderFailed); got != 1 {
				t.Errorf("%d decisions of %s failed, want 1", got, id)
			}
		}
	})
}

// Where no worker has the right code the run is parked soon, and it says why, before that too. It goes on when told. Who
// names itself with such an answer is not asked by its name.
func TestCodeThatFitsNowhere(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if subj == ns.DecideSticky("order", "w1") {
				t.Error("the worker whose code does not fit is asked by its name")
			}
			return cutwire.Pass
		})
		var mended bool
		var mu sync.Mutex
		f.repliesWith(func(d *decisionTask) []byte {
			mu.Lock()
			defer mu.Unlock()
			if mended {
				return []byte(`{"token":"` + d.Token + `","decisions":` + complete + `}`)
			}
			return []byte(`{"token":"` + d.Token + `","sticky":"w1","error":{"cause":"NON_DETERMINISTIC","reason":"event 6 is ship#1"}}`)
		})
		f.start(startO)
		f.await("o", schemas.EventDeciderFailed)
		why := func() string { return fmt.Sprint(f.api("why", `{"workflowId":"o"}`)["because"]) }
		if got := why(); !strings.Contains(got, "its code does not do what the history says (NON_DETERMINISTIC); it failed with: event 6 is ship#1") {
			t.Errorf("got %q, want the cause and the reason", got)
		}
		f.await("o", schemas.EventWorkflowPaused)
		if got := f.happened("o", schemas.EventDeciderFailed); got != 3 {
			t.Errorf("it is parked after %d failures, want 3", got)
		}
		const want = `it is parked: the decider failed 3 times in a row with NON_DETERMINISTIC: event 6 is ship#1; mend the decider of type "order", then: drover resume o`
		if got := why(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		mu.Lock()
		mended = true
		mu.Unlock()
		time.Sleep(time.Minute)
		f.api("resume", `{"workflowId":"o"}`)
		f.completes("o")
	})
}
