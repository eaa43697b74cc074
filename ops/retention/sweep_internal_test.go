package retention

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// An object goes if two looks, an hour apart, have found the very same one unnamed: not if it has the name of one that went.
func TestTwice(t *testing.T) {
	j, now := &Janitor{}, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	old := map[string]payloads.Object{"the-same-object": {Name: "the-same-object", Seq: 3}, "another-object": {Name: "another-object", Seq: 4}}
	for _, tt := range []struct {
		after       time.Duration
		then        func() // before the look
		named, want []string
	}{
		{after: 0},
		{after: looksApart - 1},
		{after: looksApart, named: []string{"another-object"}, want: []string{"the-same-object"}},
		{after: 2 * looksApart, want: []string{"the-same-object"}},
		{after: 3 * looksApart, then: func() { old["another-object"] = payloads.Object{Name: "another-object", Seq: 9} }, want: []string{"the-same-object"}},
		{after: 4 * looksApart, want: []string{"another-object", "the-same-object"}},
	} {
		if tt.then != nil {
			tt.then()
		}
		f := newFinder([]string{"the-same-object", "another-object"})
		for _, name := range tt.named {
			delete(f.missing, name)
		}
		var got []string
		for _, o := range j.twice(now.Add(tt.after), f, old) {
			got = append(got, o.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("after %v: got %v, want that %v go", tt.after, got, tt.want)
		}
	}
}

// Whatever may name an object is read; and while something cannot be read, nothing goes.
func TestMark(t *testing.T) { // P-14
	conn := embeddedtest.Dial(t)
	ns := subject.Namespace("default")
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 2, Memory: true}); err != nil {
		t.Fatal(err)
	}
	j, err := New(Options{Conn: conn, Namespace: ns, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	key := func(bucket string) string { return "$KV." + bucket + ".k" }
	names := map[string]string{}
	for i, subj := range []string{
		key(ns.BucketFlows()), key(ns.BucketTypes()), key(ns.BucketState()), ns.Signal("w", "s"),
		ns.In(0, "w", "start"), ns.In(1, "w", "start"), ns.History(0, "w", "r"), ns.History(1, "w", "r"), strings.TrimSuffix(ns.AllDead(), ">") + "in.x",
	} {
		name := "in-object-of-" + strconv.Itoa(i)
		names[name] = subj
		if _, err := conn.PublishSync(t.Context(), subj, nil, []byte("what is "+name)); err != nil {
			t.Fatalf("%s: %v", subj, err)
		}
	}
	f := newFinder(append(slices.Collect(maps.Keys(names)), "in-nothing-at-all"))
	if err := j.mark(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	delete(f.missing, "in-nothing-at-all")
	for name := range f.missing {
		t.Errorf("what %s names is not found", names[name])
	}
	if _, err := conn.PublishSync(t.Context(), ns.History(1, "w", "r"), nil, []byte("\x03not packed at all")); err != nil {
		t.Fatal(err)
	}
	if err := j.mark(t.Context(), newFinder([]string{"in-nothing-at-all"})); !errors.Is(err, schemas.ErrMalformed) {
		t.Errorf("got %v of a record that cannot be read, want %v", err, schemas.ErrMalformed)
	}
	if _, err := j.Sweep(t.Context()); err != nil {
		t.Errorf("got %v, want nothing read where there is no object", err)
	}
}
