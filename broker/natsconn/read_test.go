package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/virtual"
)

func TestLeaderReads(t *testing.T) {
	c := connect(t)
	stream(t, c)
	h := Header{"K": {"v", "w"}}
	seq, err := c.PublishSync(t.Context(), "s.a", h, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, "s.b", "two")
	for name, read := range map[string]func() (*Stored, error){
		"last literal":  func() (*Stored, error) { return c.LastBySubject(t.Context(), "S", "s.a") },
		"last wildcard": func() (*Stored, error) { return c.LastBySubject(t.Context(), "S", "*.a") },
		"by sequence":   func() (*Stored, error) { return c.GetSeq(t.Context(), "S", seq) },
		"next":          func() (*Stored, error) { return c.NextBySubject(t.Context(), "S", "s.>", 0) },
		"since":         func() (*Stored, error) { return c.FirstSince(t.Context(), "S", "s.*", time.Unix(1, 0)) },
	} {
		got, err := read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Time.IsZero() || time.Since(got.Time) > time.Hour {
			t.Fatalf("%s: got time %v", name, got.Time)
		}
		got.Time = time.Time{}
		if diff := cmp.Diff(&Stored{Subject: "s.a", Seq: seq, Header: h, Data: []byte("one")}, got); diff != "" {
			t.Fatalf("%s: %s", name, diff)
		}
	}
	if s, err := c.LastBySubject(t.Context(), "S", "s.b"); err != nil || string(s.Data) != "two" || s.Header != nil {
		t.Fatalf("got %+v, %v", s, err)
	}
}

func TestReadsRefuse(t *testing.T) {
	c := connect(t)
	stream(t, c)
	put(t, c, "s.a", "")
	second := put(t, c, "s.a", "")
	if err := c.DeleteMsg(t.Context(), "S", second); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, tt := range map[string]struct {
		err  error
		want error
	}{
		"no message":         {second2(c.LastBySubject(ctx, "S", "s.none")), ErrNotFound},
		"nothing since":      {second2(c.FirstSince(ctx, "S", "s.a", time.Now().Add(time.Hour))), ErrNotFound},
		"since of nothing":   {second2(c.FirstSince(ctx, "S", "", time.Now())), ErrInvalid},
		"deleted":            {second2(c.GetSeq(ctx, "S", second)), ErrNotFound},
		"future":             {second2(c.GetSeq(ctx, "S", 99)), ErrNotFound},
		"nothing next":       {second2(c.NextBySubject(ctx, "S", "s.a", 2)), ErrNotFound},
		"no stream":          {second2(c.GetSeq(ctx, "NONE", 1)), ErrNoStream},
		"delete again":       {c.DeleteMsg(ctx, "S", second), ErrNotFound},
		"delete in future":   {c.DeleteMsg(ctx, "S", 99), ErrNotFound},
		"state of no stream": {second3(c.StreamState(ctx, "NONE")), ErrNoStream},
		"sequence 0":         {second2(c.GetSeq(ctx, "S", 0)), ErrInvalid},
		"empty subject":      {second2(c.LastBySubject(ctx, "S", "")), ErrInvalid},
		"bad stream name":    {second2(c.GetSeq(ctx, "S.>", 1)), ErrInvalid},
		"batch of nothing":   {second3(c.BatchGet(ctx, "S", "s.a", 1, 0)), ErrInvalid},
		"batch no stream":    {second3(c.BatchGet(ctx, "NONE", "s.a", 1, 9)), ErrNoStream},
		"purge everything":   {c.PurgeSubject(ctx, "S", ">"), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, tt.err, tt.want) })
	}
}

// What is asked for since the instant of a message is that one, or a later one of the subject.
func TestFirstSince(t *testing.T) {
	c := connect(t)
	stream(t, c)
	for range 3 {
		put(t, c, "s.a", "")
		put(t, c, "s.b", "")
	}
	for seq := range uint64(6) {
		m, err := c.GetSeq(t.Context(), "S", seq+1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.FirstSince(t.Context(), "S", "s.b", m.Time)
		if want := seq/2*2 + 2; err != nil || got.Subject != "s.b" || got.Seq > want || got.Time.Before(m.Time) {
			t.Errorf("since message %d: got %+v and error %v, want message %d", seq+1, got, err, want)
		}
	}
}

func second2[A any](_ A, err error) error         { return err }
func second3[A, B any](_ A, _ B, err error) error { return err }

func TestBatchGet(t *testing.T) {
	c := connect(t)
	stream(t, c)
	fill(t, c, 900, 3)
	var got []Stored
	for from, more := uint64(1), true; more; from = got[len(got)-1].Seq + 1 {
		page, rest, err := c.BatchGet(t.Context(), "S", "s.1", from, 128)
		if err != nil {
			t.Fatal(err)
		}
		got, more = append(got, page...), rest
	}
	if len(got) != 300 {
		t.Fatalf("got %d records, want 300", len(got))
	}
	for i, s := range got {
		if want := 3*i + 1; s.Subject != "s.1" || string(s.Data) != fmt.Sprint(want) || s.Seq != uint64(want+1) || s.Header != nil || s.Time.IsZero() {
			t.Fatalf("record %d: got %+v", i, s)
		}
	}
	all, more, err := c.BatchGet(t.Context(), "S", "s.1", 1, 300)
	if err != nil || more || len(all) != 300 {
		t.Fatalf("exact batch: got %d, more %v, %v", len(all), more, err)
	}
	none, more, err := c.BatchGet(t.Context(), "S", "s.none", 1, 10)
	if err != nil || more || len(none) != 0 {
		t.Fatalf("no such subject: got %d, more %v, %v", len(none), more, err)
	}
	one, more, err := c.BatchGet(t.Context(), "S", "s.>", 899, 1)
	if err != nil || !more || len(one) != 1 || one[0].Seq != 899 {
		t.Fatalf("one of two: got %+v, more %v, %v", one, more, err)
	}
	for subj, want := range map[string]uint64{"s.1": 300, "s.*": 900, "s.none": 0} {
		if n, err := c.CountDirect(t.Context(), "S", subj); err != nil || n != want {
			t.Errorf("%s: counted %d, %v, want %d", subj, n, err, want)
		}
	}
	if _, err := c.CountDirect(t.Context(), "none", "s.1"); !errors.Is(err, ErrNoStream) {
		t.Errorf("got %v, want no stream", err)
	}
}

// Headers that a publisher stores cannot pose as those that the server adds, nor end a batch.
func TestBatchGetIsNotFooled(t *testing.T) {
	c := connect(t)
	stream(t, c)
	evil := Header{
		"Status": {"204"}, "Description": {"EOB"}, "Nats-Sequence": {"77"}, "Nats-Subject": {"s.other"},
		"Nats-Num-Pending": {"0"}, "Nats-Time-Stamp": {"2001-01-01T00:00:00Z"}, "Nats-Stream": {"T"}, "Nats-Last-Sequence": {"5"},
	}
	for range 2 {
		if _, err := c.PublishSync(t.Context(), "s.a", evil, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, more, err := c.BatchGet(t.Context(), "S", "s.a", 1, 10)
	if err != nil || more || len(got) != 2 {
		t.Fatalf("got %d, more %v, %v, want 2", len(got), more, err)
	}
	for i, s := range got {
		if s.Subject != "s.a" || s.Seq != uint64(i+1) || s.Time.Year() < 2002 {
			t.Fatalf("got %+v", s)
		}
		if diff := cmp.Diff(evil, s.Header); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestStreamState(t *testing.T) {
	c := connect(t)
	stream(t, c)
	if first, last, err := c.StreamState(t.Context(), "S"); err != nil || last != 0 || first != 1 {
		t.Fatalf("empty: got %d, %d, %v", first, last, err)
	}
	fill(t, c, 20, 2)
	if err := c.Purge(t.Context(), "S", "s.0", 11); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.BatchGet(t.Context(), "S", "s.>", 1, 99); err != nil || len(got) != 15 {
		t.Fatalf("got %d, %v, want 15", len(got), err)
	}
	for _, keep := range []uint64{0, 1} {
		if err := c.Purge(t.Context(), "S", "", keep); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Purge(t.Context(), "S", "", 11); err != nil {
		t.Fatal(err)
	}
	if first, last, err := c.StreamState(t.Context(), "S"); err != nil || first != 11 || last != 20 {
		t.Fatalf("got %d, %d, %v, want 11, 20", first, last, err)
	}
	if err := c.PurgeSubject(t.Context(), "S", "s.1"); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.BatchGet(t.Context(), "S", "s.>", 1, 99); err != nil || len(got) != 5 {
		t.Fatalf("got %d, %v, want 5", len(got), err)
	}
}

// A read whose answer was lost is asked again; a read that nobody answers ends with its context.
func TestReadsAskAgain(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		c.api = "fake.api"
		asked := 0
		if _, err := c.Subscribe("fake.api.>", "", func(m Msg) {
			if asked++; asked == 3 {
				if err := m.Respond(nil, []byte(`{"state":{"first_seq":1,"last_seq":7}}`)); err != nil {
					t.Error(err)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if last, err := c.StreamLastSeq(t.Context(), "S"); err != nil || last != 7 || asked != 3 {
			t.Fatalf("got %d, %v after %d questions, want 7 after 3", last, err, asked)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Fatalf("got %v, want 2 s + 4 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := c.StreamLastSeq(ctx, "S")
		wantErr(t, err, ErrTimeout, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "fake.api.STREAM.INFO.S") {
			t.Fatalf("got %q, want the subject named", err)
		}
		began = time.Now()
		_, _, err = c.BatchGet(t.Context(), "S", "s.a", 1, 1)
		wantErr(t, err, ErrTimeout)
		if took := time.Since(began); took != defaultRequestTimeout {
			t.Fatalf("got %v, want %v", took, defaultRequestTimeout)
		}
	})
}

// One run's 20 records, written together, in a stream of 20,020 messages.
// The next message of a subject is found from any sequence, and a batch ends after so many bytes, but has a message.
func TestNextAndBatchesWithin(t *testing.T) {
	c := connect(t)
	stream(t, c)
	for _, subj := range []string{"s.a", "s.b", "s.b", "s.a", "s.b"} {
		put(t, c, subj, strings.Repeat("x", 1000))
	}
	for from, want := range map[uint64]uint64{0: 1, 1: 1, 2: 4, 4: 4} {
		if m, err := c.NextBySubjectDirect(t.Context(), "S", "s.a", from); err != nil || m.Seq != want || len(m.Data) != 1000 {
			t.Errorf("from %d: got %+v, %v, want message %d", from, m, err, want)
		}
	}
	for _, subj := range []string{"s.a", "s.none"} {
		if m, err := c.NextBySubjectDirect(t.Context(), "S", subj, 5); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %+v, %v, want ErrNotFound", subj, m, err)
		}
	}
	if _, err := c.NextBySubjectDirect(t.Context(), "S", "", 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("no subject: got %v, want ErrInvalid", err)
	}
	for within, want := range map[int]int{1: 1, 1500: 2, 0: 3} {
		got, more, err := c.BatchGetWithin(t.Context(), "S", "s.b", 1, 9, within)
		if err != nil || len(got) > want || len(got) == 0 || more != (len(got) < 3) {
			t.Errorf("within %d bytes: got %d messages, more %t, %v", within, len(got), more, err)
		}
	}
}

func BenchmarkBatchGet(b *testing.B) {
	c := connect(b)
	stream(b, c)
	fill(b, c, 10_000, 1000)
	for range 20 {
		put(b, c, "s.run", strings.Repeat("x", 256))
	}
	fill(b, c, 10_000, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err := c.BatchGet(b.Context(), "S", "s.run", 1, 100); err != nil || len(got) != 20 {
			b.Fatal(len(got), err)
		}
	}
}

// Bodies come in their order and without headers, and the last sequence tells whether one is missing.
func TestBodiesDirect(t *testing.T) {
	c := connect(t)
	stream(t, c)
	for i := range 10 {
		if _, err := c.PublishSync(t.Context(), "s.a", Header{"Status": {"204"}, "K": {"v"}}, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, seq := range []uint64{4, 10} {
		if err := c.DeleteMsg(t.Context(), "S", seq); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		from     uint64
		n, bytes int
		want     string // the bodies
		last     uint64
	}{
		{1, 3, 1 << 20, "\x00\x01\x02", 3},
		{1, 4, 1 << 20, "\x00\x01\x02\x04", 5},
		{2, 1, 1 << 20, "\x01", 2},
		{4, 1, 1 << 20, "", 0},
		{8, 5, 1 << 20, "\x07\x08", 9},
		{1, 9, 1, "\x00", 1},
		{11, 1, 1 << 20, "", 0},
		{11, 7, 1 << 20, "", 0},
	} {
		bodies, last, err := c.BodiesDirect(t.Context(), "S", tt.from, tt.n, tt.bytes)
		if err != nil {
			t.Fatalf("%d from %d on: %v", tt.n, tt.from, err)
		}
		var got strings.Builder
		for _, b := range bodies {
			got.Write(b)
		}
		if got.String() != tt.want || last != tt.last {
			t.Errorf("%d from %d on, in %d bytes: got %q to %d, want %q to %d", tt.n, tt.from, tt.bytes, got.String(), last, tt.want, tt.last)
		}
	}
	for name, err := range map[string]error{
		"no bodies": third(c.BodiesDirect(t.Context(), "S", 1, 0, 1)), "from nowhere": third(c.BodiesDirect(t.Context(), "S", 0, 1, 1)),
		"no bytes": third(c.BodiesDirect(t.Context(), "S", 1, 1, 0)), "bad name": third(c.BodiesDirect(t.Context(), "S.>", 1, 1, 1)),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	_, _, err := c.BodiesDirect(t.Context(), "NONE", 1, 5, 1)
	wantErr(t, err, ErrNoStream)
}

func third[A, B any](_ A, _ B, err error) error { return err }

// Servers that know no bodies without headers send both; the end of a batch is known by its status there too.
func TestBodiesWithHeaders(t *testing.T) {
	b := &bare{last: 5}
	for i, m := range []*nats.Msg{
		{Header: Header{headerSequence: {"5"}, statusHeader: {"204"}}, Data: []byte("a")},
		{Header: Header{headerSequence: {"7"}}, Data: []byte("b")},
		{Header: Header{statusHeader: {"204"}, headerLastSequence: {"7"}}},
	} {
		if complete := b.take(m); complete != (i == 2) {
			t.Fatalf("message %d: complete is %v", i, complete)
		}
	}
	if b.err != nil || b.last != 7 || len(b.got) != 2 || string(b.got[1]) != "b" {
		t.Fatalf("got %q to %d, %v", b.got, b.last, b.err)
	}
	for name, m := range map[string]*nats.Msg{
		"no number": {Header: Header{statusHeader: {"204"}, headerLastSequence: {"x"}}},
		"refused":   {Header: Header{statusHeader: {"408"}}},
		"nobody":    {Header: Header{statusHeader: {statusNoResponders}}},
	} {
		b := &bare{}
		if !b.take(m) || b.err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
