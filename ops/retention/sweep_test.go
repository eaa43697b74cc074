package retention_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// decideLarge does what its workflow id says, and never looks at its input.
func decideLarge(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	var input schemas.Payload
	signaled := false
	for _, e := range task.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			input = a.Input
		case *schemas.Signal:
			signaled = true
		}
	}
	id, _, _ := strings.Cut(task.Execution().WorkflowID, "-")
	done := schemas.Decide(&schemas.CompleteWorkflow{})
	switch {
	case id == "kept":
		return []schemas.Decision{schemas.Decide(&schemas.SetRetention{Retention: "forever", Hash: "kept"}), done}, nil
	case id == "soft":
		return []schemas.Decision{schemas.Decide(&schemas.SetRetention{Retention: "0 soft forever", Hash: "soft"}), done}, nil
	case id == "open" && !signaled:
		return nil, nil
	case id == "shares":
		return []schemas.Decision{schemas.Decide(&schemas.StartChild{
			WorkflowID: "kept-child", WorkflowType: "large", Input: input, ChildPolicy: schemas.ChildAbandon,
		}), done}, nil
	}
	return []schemas.Decision{done}, nil
}

// hall is a house with large payloads.
type hall struct {
	*house
	store *payloads.Store
	whose map[string]string // objects, by who has brought them
}

func large(t *testing.T, o retention.Options, fn func(h *hall)) {
	t.Helper()
	o.Default = "0"
	live(t, o, func(h *house) {
		w := h.Client.Deciders(nil)
		w.Register("large", decider.Func(decideLarge))
		h.Go(w)
		x := &hall{house: h, whose: map[string]string{}}
		x.store = payloads.NewStore(natsconn.Of(h.Client), ns, func(context.Context) error { return nil })
		fn(x)
	})
}

func content(name string) string { return name + strings.Repeat(" ", schemas.PayloadThreshold) }

// brings starts a workflow with a large input of its own.
func (h *hall) brings(id string) *drover.Run {
	h.t.Helper()
	r, err := h.Client.Start(h.t.Context(), "large", content(id), &drover.StartOptions{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	h.name(id)
	return r
}

// name says whose the object is that came last.
func (h *hall) name(whose string) {
	h.t.Helper()
	for _, o := range h.all() {
		if h.whose[o.Name] == "" {
			h.whose[o.Name] = whose
		}
	}
}

func (h *hall) all() (all []payloads.Object) {
	h.t.Helper()
	err := h.store.Objects(h.t.Context(), func(o payloads.Object) error { all = append(all, o); return nil })
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// objects tells whose objects are there, and checks that each of them is whole.
func (h *hall) objects() string {
	h.t.Helper()
	var got []string
	for _, o := range h.all() {
		got = append(got, h.whose[o.Name])
		size := 0
		for cursor, more := "", true; more; more = cursor != "" {
			data, next, err := h.store.Read(h.t.Context(), o.Name, cursor, 1<<20)
			if err != nil {
				h.t.Fatalf("object of %s: %v", h.whose[o.Name], err)
			}
			size, cursor = size+len(data), next
		}
		if int64(size) != o.Size {
			h.t.Errorf("object of %s: got %d bytes, want %d", h.whose[o.Name], size, o.Size)
		}
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

func (h *hall) wantObjects(want string) {
	h.t.Helper()
	if got := h.objects(); got != want {
		h.t.Errorf("objects: got %q, want %q", got, want)
	}
}

// chunks counts the ids that have chunks.
func (h *hall) chunks() (n int) {
	h.t.Helper()
	err := h.store.Chunks(h.t.Context(), func(string, time.Time) error { n++; return nil })
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func (h *hall) sweep() *retention.SweepReport {
	h.t.Helper()
	r, err := h.j.Sweep(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// fill is a day on which everything happens that objects come from. It purges what is to go of the runs.
func (h *hall) fill() {
	h.t.Helper()
	for _, id := range []string{"purged", "kept-own", "shares"} {
		h.Wait(h.brings(id))
	}
	h.brings("open")
	w := h.store.NewWriter()
	if err := w.Write(h.t.Context(), []byte("an upload that nobody ended")); err != nil {
		h.t.Fatal(err)
	}
	c := payloads.NewClient(natsconn.Of(h.Client), ns, time.Minute)
	if _, err := c.Upload(h.t.Context(), schemas.Payload("nobody uses it")); err != nil {
		h.t.Fatal(err)
	}
	h.name("nobody")
	if _, err := h.store.Put(h.t.Context(), "by-hand", []byte("somebody's own")); err != nil {
		h.t.Fatal(err)
	}
	h.name("hand")
	if _, err := natsconn.Of(h.Client).PublishSync(h.t.Context(), ns.PayloadChunks("by-hand"), nil, []byte("what another client has begun to store")); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
	h.pass()
	h.wantKept("kept-child kept-own open")
}

// P-14: an object goes when it is a day old and nothing has named it in two looks.
func TestP14PayloadsOfPurgedRunsGo(t *testing.T) {
	large(t, retention.Options{}, func(h *hall) {
		h.fill()
		h.sweep()
		h.Sleep(2 * time.Hour)
		if r := h.sweep(); r.Objects != 0 || r.Removed != 0 || r.Scraps != 0 {
			h.t.Errorf("something of a few hours is old: %+v", r)
		}
		h.wantObjects("hand kept-own nobody open purged shares")
		h.Sleep(23 * time.Hour)
		if r := h.sweep(); r.Objects != 5 || r.Unnamed != 2 || r.Removed != 0 || r.Scraps != 1 {
			h.t.Errorf("the first look: %+v", r)
		}
		h.Sleep(10 * time.Minute)
		if r := h.sweep(); r.Unnamed != 2 || r.Removed != 0 {
			h.t.Errorf("a look that comes too soon: %+v", r)
		}
		h.wantObjects("hand kept-own nobody open purged shares")
		h.Sleep(time.Hour)
		if r := h.sweep(); r.Removed != 2 || r.Bytes < schemas.PayloadThreshold {
			h.t.Errorf("the second look: %+v", r)
		}
		h.wantObjects("hand kept-own open shares")
		if n := h.chunks(); n != 5 {
			h.t.Errorf("got chunks of %d, want of 4 objects, and those of somebody else", n)
		}
		if d, err := h.Client.Payload(h.t.Context(), h.input("kept-child")); err != nil || !strings.Contains(string(d), "shares ") {
			h.t.Errorf("what the child was given: got %.20q, %v", d, err)
		}
	})
}

// P-14: a run that is purged from disk and kept softly names its objects.
func TestP14PayloadsOfSoftRunsStay(t *testing.T) {
	large(t, retention.Options{}, func(h *hall) {
		for _, id := range []string{"soft", "purged"} {
			h.Wait(h.brings(id))
		}
		h.settle()
		h.pass()
		h.wantKept("")
		for range 2 {
			h.Sleep(25 * time.Hour)
			h.sweep()
		}
		h.wantObjects("soft")
	})
}

// input is that of a run that is there.
func (h *hall) input(id string) schemas.Payload {
	h.t.Helper()
	d, err := h.Client.Run(id, "").Describe(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return d.Input
}

// An object that somebody names between two looks stays, and so does all when the janitor begins anew.
func TestP14NamedBetweenLooks(t *testing.T) {
	large(t, retention.Options{}, func(h *hall) {
		c := payloads.NewClient(natsconn.Of(h.Client), ns, time.Minute)
		ref, err := c.Upload(h.t.Context(), schemas.Payload(`"late"`))
		if err != nil {
			h.t.Fatal(err)
		}
		h.name("late")
		h.Sleep(25 * time.Hour)
		h.sweep()
		h.Sleep(2 * time.Hour)
		h.another()
		if r := h.sweep(); r.Unnamed != 1 || r.Removed != 0 {
			h.t.Errorf("another master goes on where it never was: %+v", r)
		}
		r, err := h.Client.Start(h.t.Context(), "large", schemas.RefPayload(ref), &drover.StartOptions{ID: "open"})
		if err != nil {
			h.t.Fatal(err)
		}
		h.Sleep(2 * time.Hour)
		if r := h.sweep(); r.Objects != 1 || r.Unnamed != 0 || r.Removed != 0 {
			h.t.Errorf("the run that names it is open: %+v", r)
		}
		if err := r.Signal(h.t.Context(), "go", nil); err != nil {
			h.t.Fatal(err)
		}
		h.Wait(r)
		h.settle()
		h.pass()
		h.wantKept("")
		h.wantObjects("late")
		for range 2 {
			h.Sleep(2 * time.Hour)
			h.sweep()
		}
		h.wantObjects("")
	})
}

// P-14: a janitor that dies before any of its removals loses nothing, and what it leaves goes with the looks of the next one.
func TestP14CrashAtEveryRemoval(t *testing.T) {
	for _, cut := range cuts(t, 6) { // of two objects the name and the chunks, and an upload without an end
		t.Run(strconv.Itoa(cut), func(t *testing.T) {
			large(t, retention.Options{}, func(h *hall) {
				h.fill()
				h.Sleep(25 * time.Hour)
				n, armed := 0, false
				h.o.Before = func(string, string) error {
					if armed {
						n++
					}
					if n > cut {
						return errCut
					}
					return nil
				}
				h.another()
				armed = cut == 0 // the first look removes the upload
				if _, err := h.j.Sweep(h.t.Context()); errors.Is(err, errCut) != (cut == 0) {
					h.t.Fatalf("the first look: %v", err)
				}
				h.Sleep(2 * time.Hour)
				n, armed = 1, true
				if _, err := h.j.Sweep(h.t.Context()); errors.Is(err, errCut) != (cut < 5) {
					h.t.Fatalf("the second look: %v", err)
				}
				if got, left := strings.Fields(h.objects()), []int{6, 6, 5, 5, 4, 4}[cut]; len(got) != left {
					h.t.Errorf("got %q after the crash, want %d objects", got, left)
				}
				h.o.Before = nil
				h.another()
				for range 2 {
					h.Sleep(2 * time.Hour)
					h.sweep()
				}
				h.wantObjects("hand kept-own open shares")
				if n := h.chunks(); n != 5 {
					h.t.Errorf("got chunks of %d, want of 4", n)
				}
			})
		})
	}
}

// Histories that go during a look could take with them what was read of nowhere else.
func TestNoHistoryGoesDuringALook(t *testing.T) {
	var pass func()
	large(t, retention.Options{Before: func(stream, _ string) error {
		if stream == ns.StreamPayloads() {
			pass()
		}
		return nil
	}}, func(h *hall) {
		c := payloads.NewClient(natsconn.Of(h.Client), ns, time.Minute)
		if _, err := c.Upload(h.t.Context(), schemas.Payload("nobody uses it")); err != nil {
			h.t.Fatal(err)
		}
		h.Sleep(25 * time.Hour)
		h.sweep()
		h.Wait(h.brings("purged"))
		h.settle()
		h.Sleep(2 * time.Hour)
		passes := 0
		pass = func() {
			passes++
			if r := h.pass(); r.Purged != 0 || r.Waiting != 1 {
				h.t.Errorf("a pass during a look: %+v", r)
			}
		}
		if r := h.sweep(); r.Removed != 1 || passes != 2 {
			h.t.Errorf("got %+v and %d passes", r, passes)
		}
		if r := h.pass(); r.Purged != 1 {
			h.t.Errorf("a pass after the look: %+v", r)
		}
	})
}

// Run looks by itself.
func TestSweepsByItself(t *testing.T) {
	large(t, retention.Options{SweepEvery: time.Hour, Every: 10 * time.Minute}, func(h *hall) {
		c := payloads.NewClient(natsconn.Of(h.Client), ns, time.Minute)
		if _, err := c.Upload(h.t.Context(), schemas.Payload("nobody uses it")); err != nil {
			h.t.Fatal(err)
		}
		h.name("nobody")
		h.Sleep(25 * time.Hour)
		ctx, cancel := context.WithCancel(h.t.Context())
		ended := make(chan error)
		go func() { ended <- h.j.Run(ctx) }()
		time.Sleep(65 * time.Minute)
		h.wantObjects("nobody")
		time.Sleep(time.Hour)
		h.wantObjects("")
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	})
}
