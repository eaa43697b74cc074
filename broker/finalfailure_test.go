package broker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// A failure that its worker calls final ends the activity, whatever its retry policy says, whichever way it comes, and counts once.
func TestFinalFailures(t *testing.T) {
	report := func(k *task) string {
		return `{"token":"` + k.Token + `","kind":"failed","reason":"declined","final":true}`
	}
	handed := func(f *fleet) {
		if k := f.pull(); !f.hand(direct(k.Beat), report(k)) {
			f.t.Fatal("the owner does not take the outcome")
		}
	}
	for name, fails := range map[string]func(f *fleet){
		"to the owner": handed,
		"into the inbox": func(f *fleet) {
			k := f.pull()
			f.publish(k.Report, report(k))
		},
		"after the start was announced": func(f *fleet) {
			k := f.pull()
			k.report("started", "")
			f.publish(k.Report, report(k))
		},
		"both ways, again and again": func(f *fleet) {
			k := f.pull()
			for range 2 {
				f.publish(k.Report, report(k))
				f.hand(direct(k.Beat), report(k))
			}
		},
		"at the second attempt": func(f *fleet) {
			k := f.pull()
			k.report("failed", `,"reason":"busy"`)
			if err := k.msg.Ack(); err != nil {
				f.t.Fatal(err)
			}
			handed(f)
		},
		"from a worker in Go": func(f *fleet) {
			stop, _ := f.works("w", func(context.Context, func()) error { return activity.Final(errors.New("declined")) })
			f.completes("o")
			stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(`,"retry":{}`))
				f.start(startO)
				fails(f)
				f.completes("o")
				f.declined()
			})
		})
	}
	t.Run("of what was to be decided ahead", func(t *testing.T) {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			next := steps(2, decider.Retry(schemas.RetryPolicy{}))
			g, _, _ := f.foreseen(func(t *schemas.DecisionTask, done int) []schemas.Decision {
				if has(t, schemas.EventActivityFailed) {
					return []schemas.Decision{decider.Complete("done")}
				}
				return next(t, done)
			})
			if !g.hand(&schemas.Report{Kind: schemas.ReportFailed, Token: g.task.Ahead.Task.Token, Reason: "declined", Final: true}) {
				t.Fatal("the owner does not take the outcome")
			}
			f.completes("o")
			f.declined()
		})
	})
}

// A report that calls another failure final is no repeat of it.
func TestFinalFailureIsNoRepeat(t *testing.T) {
	for _, first := range []string{"", `,"final":true`} {
		virtually(t, 1, func(t *testing.T, f *fleet) {
			f.node("a", nil)
			f.decider("order", one(`,"retry":{}`))
			f.start(startO)
			k := f.pull()
			k.report("failed", first)
			f.awaitTimes("o", schemas.EventActivityStarted, 1)
			k.report("failed", strings.TrimPrefix(`,"final":true`, first))
			if err := k.msg.Ack(); err != nil {
				t.Fatal(err)
			}
			if first == "" {
				f.pull().success()
			}
			f.completes("o")
			if dead := f.dead(); len(dead) != 1 {
				t.Errorf("after %q: dead letters %v, want one of the report that says otherwise", first, dead)
			}
		})
	}
}

// declined looks whether an activity of workflow "o" has failed for good, once, and that nobody is asked to do it again.
func (f *fleet) declined() {
	f.t.Helper()
	time.Sleep(time.Hour)
	events := f.events("o")
	failures := 0
	for _, e := range events {
		if a, ok := e.Attributes.(*schemas.ActivityFailed); ok {
			failures++
			if a.Reason != "declined" || !a.Final {
				f.t.Errorf("got %+v, want the final failure", a)
			}
		}
	}
	i := slices.IndexFunc(events, func(e schemas.Event) bool { return e.Type() == schemas.EventActivityFailed })
	again := slices.ContainsFunc(events[i+1:], func(e schemas.Event) bool {
		return e.Type() == schemas.EventActivityRetryScheduled || e.Type() == schemas.EventActivityStarted
	})
	if dead := f.dead(); len(dead) > 0 {
		f.t.Errorf("dead letters %v, want none: a repeat says the same", dead)
	}
	if failures != 1 || again {
		f.t.Errorf("%d failures, retried %v, want one for good: %v", failures, again, f.recordedTypes("o"))
	}
}
