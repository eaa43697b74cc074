package main

import (
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

func TestOrderPizza(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		for seconds, want := range map[int]int{2: 0, 60: 1} {
			run, err := drover.Start(t.Context(), e.Client, OrderPizza, seconds, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := drovertest.Result(e, run); got != "pizza" || err != nil {
				t.Errorf("after %d s: got %q, %v", seconds, got, err)
			}
			if got := mails(t, run.Run); got != want {
				t.Errorf("after %d s: got %d mails, want %d", seconds, got, want)
			}
		}
	})
}

// mails is how many mails a run has sent.
func mails(t *testing.T, run *drover.Run) (n int) {
	t.Helper()
	for event, err := range run.History(t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		a, ok := event.Attributes.(*schemas.ActivityScheduled)
		if ok && a.ActivityType == Mail.Name() {
			n++
		}
	}
	return n
}
