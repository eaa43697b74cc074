package retention_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	ops "github.com/droverhq/drover/ops/retention"
)

// deaf gives the janitor a connection of its own, on which a question to a stream can be lost: any, or only those that begin so.
func (h *house) deaf(how cutwire.Verdict, begin ...string) *cutwire.Questions {
	h.t.Helper()
	if len(begin) == 0 {
		begin = []string{"$JS.API.STREAM.", "$JS.API.DIRECT."}
	}
	wire := cutwire.New(h.Client.NATS().Opts.InProcessServer)
	conn, err := natsconn.Dial(h.t.Context(), natsconn.Options{InProcess: wire})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(conn.Close)
	h.o.Conn = conn
	h.another()
	return cutwire.Ask(wire, how, begin...)
}

// unanswered fails a test unless an error is told of each question that is lost, one after the other.
func (h *house) unanswered(d *cutwire.Questions, do func() error) {
	h.t.Helper()
	n := 0
	for ; ; n++ {
		var err error
		lost := d.Without(n, func() { err = do() })
		if lost == "" {
			if err != nil {
				h.t.Errorf("all was answered: got %v", err)
			}
			break
		}
		if err == nil {
			h.t.Errorf("nobody has answered %s, and nothing is said of it", lost)
		}
	}
	if n < 5 {
		h.t.Errorf("got %d questions, want more: this test loses none", n)
	}
}

// looks passes with janitors that know nothing and purge nothing, and that are not answered one question each.
func (h *house) looks(d *cutwire.Questions) {
	h.t.Helper()
	purges := 0
	before := h.o.Before
	h.o.Before = func(string, string) error { purges++; return errCut }
	h.unanswered(d, func() error {
		h.another()
		_, err := h.j.Pass(h.t.Context())
		if errors.Is(err, errCut) {
			return nil
		}
		return err
	})
	if purges != 1 { // that of the pass which was answered all
		h.t.Errorf("got %d passes that would have purged, want one: no other knows what it may", purges)
	}
	h.o.Before = before
	h.another()
}

// purges passes with one janitor, of which each pass is not answered a purge, until there is none to lose.
func (h *house) purges(d *cutwire.Questions) (lost int) {
	h.t.Helper()
	for ; ; lost++ {
		var err error
		what := d.Without(lost%2, func() { _, err = h.j.Pass(h.t.Context()) }) // the first or the second of the pass
		switch h.whole(); {
		case what == "" && err != nil:
			h.t.Fatalf("all was answered: got %v", err)
		case what == "":
			return lost
		case err == nil:
			h.t.Fatalf("nobody has answered %s, and nothing is said of it", what)
		}
	}
}

// P-14: whatever question of a pass has no answer, nothing goes for it, and the pass says that it could not. A run of which it is not known
// whether it is purged goes with a later pass of the same janitor.
func TestP14NoAnswerPurgesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		o    ops.Options
		fill func(h *house)
		kept string
		lost int // purges that can be lost, at least
	}{
		"one by one": {ops.Options{FlowDefault: "1", Default: "1h"}, func(h *house) {
			h.run("flow", "a", says{Child: &says{}, ChildID: "a-child"})
			h.run("flow", "b", says{})
			h.run("raw", "c", says{Again: 2})
			h.run("raw", "soft", says{Retention: []string{"0 soft 1"}, Hash: "soft"})
			h.settle()
			time.Sleep(time.Hour)
		}, "b", 6},
		"parts": {ops.Options{Default: "1"}, func(h *house) {
			h.parts()
			for _, id := range []string{"c-0", "p-0", "c-1"} {
				h.run("rec", id, says{})
			}
			h.settle()
		}, "c-1 part-c-1", 4},
		"together": {ops.Options{FlowDefault: "2"}, func(h *house) {
			for i := range 20 {
				h.run("flow", "f"+strconv.Itoa(i), says{})
			}
			h.settle()
			h.Restart(time.Second) // a second fence, after which the first may go
			h.settle()
		}, "f18 f19", 1},
	} {
		for what, how := range map[string]cutwire.Verdict{"asked in vain": cutwire.Swallow, "done, and the answer lost": cutwire.Unanswered} {
			t.Run(name+"/"+what, func(t *testing.T) {
				live(t, tc.o, func(h *house) {
					tc.fill(h)
					if how == cutwire.Swallow {
						all := h.kept()
						h.looks(h.deaf(how))
						h.wantKept(all)
					}
					if n := h.purges(h.deaf(how, "$JS.API.STREAM.PURGE.")); n < tc.lost && how == cutwire.Swallow {
						h.t.Errorf("%d purges were lost, want at least %d", n, tc.lost)
					}
					h.wantKept(tc.kept)
					if r := h.pass(); r.Waiting != 0 {
						h.t.Errorf("got %+v, want that none waits", r)
					}
				})
			})
		}
	}
}

// Whoever asks how long a run is kept gets an error where something could not be read, and no other answer.
func TestNoAnswerExplainsNothing(t *testing.T) {
	live(t, ops.Options{FlowDefault: "1", Default: "1h"}, func(h *house) {
		h.run("flow", "a", says{Child: &says{}, ChildID: "a-child"})
		h.run("flow", "b", says{})
		h.start("raw", "open", says{Stay: true})
		h.settle()
		d := h.deaf(cutwire.Swallow)
		for id, goes := range map[string]bool{"a": true, "a-child": false, "b": false, "open": false} {
			h.unanswered(d, func() error {
				h.another()
				a, err := h.j.Explain(h.t.Context(), id, "")
				if err == nil && a.Goes != goes {
					h.t.Errorf("%s: got %+v, want goes %t", id, a, goes)
				}
				return err
			})
		}
	})
}

// P-14: a look at the payloads that could not read something removes nothing, and does not count as the first of two.
func TestP14NoAnswerSweepsNothing(t *testing.T) {
	large(t, ops.Options{}, func(h *hall) {
		h.fill()
		h.Sleep(25 * time.Hour)
		d := h.deaf(cutwire.Swallow)
		h.unanswered(d, func() error {
			h.another()
			r, err := h.j.Sweep(h.t.Context())
			if err == nil && (r.Unnamed != 2 || r.Removed != 0) {
				h.t.Errorf("the first look: %+v", r)
			}
			return err
		})
		h.Sleep(time.Hour)
		h.wantObjects("hand kept-own nobody open purged shares")
	})
}
