package alwayson_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// ends of a run.
var ends = map[schemas.Status]func(h *house, run string){
	schemas.StatusCompleted: func(h *house, run string) { h.tell("complete") },
	schemas.StatusFailed:    func(h *house, run string) { h.tell("fail") },
	schemas.StatusCanceled: func(h *house, run string) {
		if err := h.Client.Run("w", run).Cancel(h.t.Context(), "enough"); err != nil {
			h.t.Fatal(err)
		}
	},
	schemas.StatusTerminated: func(h *house, run string) {
		if err := h.Client.Run("w", run).Terminate(h.t.Context(), nil); err != nil {
			h.t.Fatal(err)
		}
	},
	schemas.StatusTimedOut: func(h *house, run string) { time.Sleep(time.Hour) },
}

func (h *house) tell(signal string) {
	h.t.Helper()
	time.Sleep(10 * time.Millisecond) // so that no two runs begin at one moment
	if err := h.Client.Run("w", "").Signal(h.t.Context(), signal, nil); err != nil {
		h.t.Fatal(err)
	}
}

// S2-3: after each kind of end the next run begins within a second, where the policy wants one.
func TestBackWithinASecond(t *testing.T) {
	for status, end := range ends {
		for _, restart := range []ops.RestartPolicy{ops.RestartAlways, ops.RestartOnFailure} {
			t.Run(string(status)+" "+string(restart), func(t *testing.T) {
				live(t, func(h *house) {
					h.master(h.o)
					a := job(restart)
					a.Start.ExecutionStartToCloseTimeout = schemas.Duration(time.Hour)
					h.add(a)
					first := h.another("w")
					if status != schemas.StatusTimedOut {
						time.Sleep(10 * time.Minute)
					}
					end(h, first)
					if restart == ops.RestartOnFailure && (status == schemas.StatusCompleted || status == schemas.StatusCanceled) {
						h.until("the end is known", func() bool { return !h.show("w").Open })
						time.Sleep(10 * time.Minute)
						if r := h.show("w"); r.Status != status || h.open("w") != "" {
							t.Errorf("got %+v, want it down", r)
						}
						return
					}
					h.another("w", first)
					all := h.runs("w")
					if all[0].Status != status {
						t.Errorf("the first run is %s, want %s", all[0].Status, status)
					}
					if took := all[1].StartedAt.Sub(all[0].ClosedAt); took > time.Second {
						t.Errorf("the second run began %v after the end of the first", took)
					}
					if all[1].StartMode != "" && all[1].StartMode != schemas.ModeAutoStart {
						t.Errorf("the start mode is %q, want %q", all[1].StartMode, schemas.ModeAutoStart)
					}
				})
			})
		}
	}
}

// S2-3: one that fails at once is begun again after longer and longer pauses, is called failing after ten times, and comes back at
// once when an operator starts it.
func TestFailing(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		a := job("")
		a.Start.Input = schemas.Payload("fail")
		h.add(a)
		time.Sleep(11 * time.Minute)
		r := h.show("w")
		if r.Failures < ops.FailingAfter || r.Status != schemas.StatusFailed || r.EndReason != "it was told to" {
			t.Errorf("got %+v, want it to be failing", r)
		}
		if n := h.noted(ops.OperationAlwaysFailing); n != 1 {
			t.Errorf("that it is failing was noted %d times, want once", n)
		}
		all := h.runs("w")
		if last := all[len(all)-1].StartedAt.Sub(all[len(all)-2].ClosedAt); last < 200*time.Second {
			t.Errorf("the last of %d runs began %v after the one before, want minutes", len(all), last)
		}
		h.do("alwaysStart", ops.AlwaysRequest{ID: "w"})
		before := len(all)
		h.until("it is begun at once", func() bool { return len(h.runs("w")) > before })
		a.Start.Input = nil
		h.add(a) // what waits is begun with it
		h.another("w")
		if r := h.show("w"); !r.Open || r.Refusal != "" {
			t.Errorf("got %+v, want it open", r)
		}
	})
}

// One that completes at once does not take the machine.
func TestCompletesAtOnce(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		a := job("")
		a.Start.Input = schemas.Payload("complete")
		h.add(a)
		time.Sleep(time.Minute)
		if n := len(h.runs("w")); n < 30 || n > 130 {
			t.Errorf("%d runs in a minute, want one or two a second", n)
		}
	})
}

// S2-3: stop keeps it down, start brings it back, remove ends it, and a later one is another.
func TestStopStartRemove(t *testing.T) {
	for name, c := range map[string]struct {
		q    ops.AlwaysRequest
		want schemas.Status
	}{
		"cancel":    {ops.AlwaysRequest{ID: "w", Reason: "work on it", Identity: "me"}, schemas.StatusCanceled},
		"terminate": {ops.AlwaysRequest{ID: "w", Terminate: true}, schemas.StatusTerminated},
		"keep":      {ops.AlwaysRequest{ID: "w", KeepRun: true}, schemas.StatusOpen},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(h *house) {
				h.master(h.o)
				made := h.add(job(ops.RestartOnFailure))
				if again := h.add(job(ops.RestartOnFailure)); again.Changed || again.Record.Incarnation != made.Record.Incarnation {
					t.Errorf("the same again: got %+v", again)
				}
				first := h.another("w")
				if !h.do("alwaysStop", c.q).Changed || h.do("alwaysStop", c.q).Changed {
					t.Error("a stop changes something, and a second one does not")
				}
				time.Sleep(10 * time.Minute)
				if all := h.runs("w"); len(all) != 1 || all[0].Status != c.want {
					t.Fatalf("ten minutes after the stop: got %+v, want one run that is %s", all, c.want)
				}
				if r := h.show("w"); !r.Stopped || r.StoppedBy != c.q.Identity || r.Reason != c.q.Reason || r.Failures != 0 {
					t.Errorf("got %+v", r)
				}
				h.do("alwaysStart", ops.AlwaysRequest{ID: "w"})
				last := first
				if !c.q.KeepRun {
					last = h.another("w", first)
				}
				h.do("alwaysRemove", c.q)
				a := h.always("alwaysShow", &ops.AlwaysRequest{ID: "w"})
				if a.Error == nil || a.Error.Code != schemas.CodeNotFound || a.Error.Hint == "" {
					t.Errorf("show after remove: got %+v, want not found", a)
				}
				time.Sleep(10 * time.Minute)
				if left := h.open("w"); (left == last) != c.q.KeepRun || left != "" && left != last {
					t.Errorf("ten minutes after remove run %q is open", left)
				}
				if again := h.add(job("")); again.Record.Incarnation == made.Record.Incarnation {
					t.Error("one that is added after a remove is another")
				}
				if c.q.KeepRun {
					h.until("the run is found", func() bool { return h.show("w").Found })
				} else {
					h.another("w", last)
				}
			})
		})
	}
}

// A run that somebody started under the id is the one: it is followed, through continuations, and nothing begins beside it.
func TestRunStartedByHand(t *testing.T) {
	live(t, func(h *house) {
		by, err := h.Client.Start(h.t.Context(), "job", nil, &drover.StartOptions{ID: "w"})
		if err != nil {
			t.Fatal(err)
		}
		h.master(h.o)
		h.add(job(""))
		h.until("the run is found", func() bool { return h.show("w").Found })
		if r := h.show("w"); r.Run != by.RunID {
			t.Errorf("got run %s, want %s", r.Run, by.RunID)
		}
		h.tell("continue")
		next := h.another("w", by.RunID)
		time.Sleep(3 * time.Minute)
		if n := len(h.runs("w")); n != 2 {
			t.Errorf("%d runs, want the two of the chain", n)
		}
		h.tell("complete")
		h.another("w", by.RunID, next)
		if r := h.show("w"); r.Found || !r.Open {
			t.Errorf("got %+v, want a run that the monitor began", r)
		}
	})
}

// A continuation is the owner's: the monitor begins nothing, and follows (S2-7, S2-8).
func TestFollowsContinuations(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		h.add(job(""))
		runs := []string{h.another("w")}
		for range 5 {
			h.tell("continue")
			runs = append(runs, h.another("w", runs...))
		}
		if r := h.show("w"); r.Run != runs[0] || r.Starts != 1 {
			t.Errorf("got %+v, want it to follow run %s", r, runs[0])
		}
		h.tell("complete")
		h.another("w", runs...)
		if r := h.show("w"); r.Starts != 2 || r.Failures != 0 {
			t.Errorf("got %+v, want its second start", r)
		}
	})
}

// One that is added right after a remove is begun, and is not taken for the one before.
func TestAddRightAfterRemove(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		h.add(job(""))
		first := h.another("w")
		time.Sleep(time.Minute)
		h.do("alwaysRemove", ops.AlwaysRequest{ID: "w", Terminate: true})
		h.add(job(""))
		h.another("w", first)
		if r := h.show("w"); r.Starts != 1 || r.Found {
			t.Errorf("got %+v, want the first start of another", r)
		}
	})
}
