package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

func TestChosenCurves(t *testing.T) {
	got, err := chosenCurves("history,all")
	if want := "history open history lists partitions payload"; err != nil || strings.Join(got, " ") != want {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	if _, err := chosenCurves("open,breadth"); err == nil || !strings.Contains(err.Error(), `"breadth"`) {
		t.Fatalf("got %v, want an error about breadth", err)
	}
	drawn := map[string]bool{}
	for _, d := range drawings {
		drawn[d.name] = true
	}
	for name := range measurers {
		if len(places[name]) == 0 || !drawn[name] {
			t.Errorf("curve %s has no places or no picture", name)
		}
	}
}

// What is printed can be read again; the last point at a place is the one that is drawn.
func TestReadPoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	lines := `{"curve":"lists","at":10,"workflows_per_second":5,"of_new":0.5}
{"curve":"open","at":1}
{"curve":"lists","at":1,"workflows_per_second":4}
{"curve":"lists","at":10,"workflows_per_second":7}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	points, err := readPoints(file)
	if err != nil {
		t.Fatal(err)
	}
	of := latest(points, "lists")
	if len(of) != 2 || of[0].At != 1 || of[0].PerSecond != 4 || of[1].At != 10 || of[1].PerSecond != 7 {
		t.Fatalf("got %+v, want 4 at 1 and 7 at 10", of)
	}
	images := t.TempDir()
	if err := drawAll(points, images); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"grow-lists.svg", "grow-open.svg"} {
		svg, err := os.ReadFile(filepath.Join(images, name))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, string(svg))
	}
	if err := os.WriteFile(file, []byte("{}\nno json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPoints(file); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Fatalf("got %v, want an error about line 2", err)
	}
}

// A run is decided upon when a record with the decision has been read, not when the signal was.
func TestFollower(t *testing.T) {
	f := &follower{news: make(chan struct{}, 1)}
	for _, tc := range []struct {
		events                 []schemas.Attributes
		last, signals, decided int64
	}{
		{[]schemas.Attributes{&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}}, 2, 0, 0},
		{[]schemas.Attributes{&schemas.DeciderStarted{}, &schemas.DeciderCompleted{}}, 4, 0, 0},
		{[]schemas.Attributes{&schemas.Signal{}, &schemas.Signal{}, &schemas.DeciderScheduled{}}, 7, 2, 0},
		{[]schemas.Attributes{&schemas.Signal{}, &schemas.DeciderStarted{}}, 9, 3, 0},
		{[]schemas.Attributes{&schemas.DeciderCompleted{}}, 10, 3, 3},
	} {
		r := schemas.Record{WorkflowID: "w", Run: "r"}
		for _, a := range tc.events {
			r.Events = append(r.Events, schemas.Event{ID: f.last.Load() + int64(len(r.Events)) + 1, Time: schemas.At(time.Unix(1, 0)), Attributes: a})
		}
		r.First = r.Events[0].ID
		body, err := schemas.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		f.read(post.Stored{Data: body})
		if f.last.Load() != tc.last || f.signals.Load() != tc.signals || f.decided.Load() != tc.decided {
			t.Fatalf("got event %d, %d signals, %d decided upon, want %d, %d, %d", f.last.Load(), f.signals.Load(), f.decided.Load(), tc.last, tc.signals, tc.decided)
		}
	}
	f.read(post.Stored{Data: []byte{0xff}})
	if f.broken.Load() == nil {
		t.Fatal("a record that cannot be read goes unnoticed")
	}
}

func TestWorldAtRest(t *testing.T) {
	at := func(seqs ...uint64) (w world) {
		for _, seq := range seqs {
			w = append(w, &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: seq}})
		}
		return w
	}
	if at(1, 2).same(nil) || at(1, 2).same(at(1, 3)) || !at(1, 2).same(at(1, 2)) {
		t.Fatal("a world is the same only if nothing was written")
	}
}
