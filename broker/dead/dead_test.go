package dead_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

var place = dead.Place{Partition: "3", Stream: "signals", Incarnation: "1", Sequence: 42}

func letter() schemas.DeadLetter {
	return schemas.DeadLetter{
		Reason: "unknown-workflow", Details: "no such workflow", Subject: "drover.default.signal.w.go",
		Time: schemas.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Body: []byte(`{"a":1}`),
	}
}

func stored(t *testing.T, conn *natsconn.Conn, subj string) schemas.DeadLetter {
	t.Helper()
	m, err := conn.LastBySubject(t.Context(), ns.StreamDead(), subj)
	if err != nil {
		t.Fatal(err)
	}
	var got schemas.DeadLetter
	if err := schemas.Unmarshal(m.Data, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBuryWritesOnce(t *testing.T) {
	conn := embeddedtest.Dial(t)
	makeStream(t, conn)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := dead.Bury(t.Context(), conn, ns, place, letter()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if last, err := conn.StreamLastSeq(t.Context(), ns.StreamDead()); err != nil || last != 1 {
		t.Fatalf("P-12: got %d letters and error %v, want 1 and none", last, err)
	}
	want := letter()
	want.V = schemas.Version
	if diff := cmp.Diff(want, stored(t, conn, "drover.default.dead.unknown-workflow.3.signals.1.42")); diff != "" {
		t.Fatalf("letter (-want +got):\n%s", diff)
	}
}

func TestBuryOtherPlaceIsAnotherLetter(t *testing.T) {
	conn := embeddedtest.Dial(t)
	makeStream(t, conn)
	for _, p := range []dead.Place{
		place,
		{Partition: "3", Stream: "signals", Incarnation: "2", Sequence: 42},
		{Partition: "3", Stream: "in", Incarnation: "1", Sequence: 42},
		{Partition: "tasks", Stream: "PCI", Incarnation: dead.Digest("s", []byte("b")), Sequence: 42},
	} {
		if err := dead.Bury(t.Context(), conn, ns, p, letter()); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := conn.StreamLastSeq(t.Context(), ns.StreamDead()); err != nil || last != 4 {
		t.Fatalf("got %d letters and error %v, want 4 and none", last, err)
	}
}

func TestBuryWaitsForTheStream(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		time.AfterFunc(3*time.Second, func() { makeStream(t, conn) })
		start := time.Now()
		if err := dead.Bury(t.Context(), conn, ns, place, letter()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 5*time.Second {
			t.Fatalf("got a letter after %v, want one soon after 3 s", took)
		}
	})
}

func TestBuryGivesUpWithItsContext(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := dead.Bury(ctx, conn, ns, place, letter())
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, natsconn.ErrNoStream) {
			t.Fatalf("got %v, want the deadline and the last refusal", err)
		}
	})
}

func TestComposeRefuses(t *testing.T) {
	at := func(edit func(*dead.Place)) dead.Place {
		p := place
		edit(&p)
		return p
	}
	for _, tc := range []struct {
		name, reason string
		at           dead.Place
		want         string
	}{
		{"empty reason", "", place, "Reason"},
		{"upper case", "Bad", place, "'B'"},
		{"dot", "a.b", place, "'.'"},
		{"wildcard", "a-*", place, "'*'"},
		{"long reason", strings.Repeat("a", 65), place, "65 bytes"},
		{"no partition", "bad", at(func(p *dead.Place) { p.Partition = "" }), "Place.Partition"},
		{"no stream", "bad", at(func(p *dead.Place) { p.Stream = "" }), "Place.Stream"},
		{"control character", "bad", at(func(p *dead.Place) { p.Incarnation = "a\nb" }), "Place.Incarnation"},
	} {
		t.Run("bad input: ids/"+tc.name, func(t *testing.T) {
			_, _, _, err := dead.Compose(ns, tc.at, schemas.DeadLetter{Reason: tc.reason}, 1<<20)
			if !errors.Is(err, dead.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error that names %s", err, tc.want)
			}
		})
	}
}

func TestComposeFits(t *testing.T) {
	const limit = 1 << 20
	for _, tc := range []struct {
		name     string
		body     int
		json     bool
		complete bool
	}{
		{"small", 100, true, true},
		{"too large in base64", 900 << 10, false, true},
		{"as large as a message can be", limit, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := letter()
			l.Body = bytes.Repeat([]byte{0xff}, tc.body)
			l.Details = strings.Repeat("é", 20<<10)
			_, _, body, err := dead.Compose(ns, place, l, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(body) > limit-64<<10 {
				t.Fatalf("got %d bytes, want at most %d", len(body), limit-64<<10)
			}
			if schemas.IsJSON(body) != tc.json {
				t.Fatalf("got JSON %v, want %v", schemas.IsJSON(body), tc.json)
			}
			var got schemas.DeadLetter
			if err := schemas.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if (len(got.Body) == tc.body) != tc.complete || strings.Contains(got.Details, "bytes of the body are kept") == tc.complete {
				t.Fatalf("got %d of %d bytes and details %.60q…, want complete %v", len(got.Body), tc.body, got.Details, tc.complete)
			}
			if len(got.Details) > 9<<10 || strings.ContainsRune(got.Details, '\uFFFD') {
				t.Fatalf("got details of %d bytes, want them cut between characters", len(got.Details))
			}
		})
	}
}
