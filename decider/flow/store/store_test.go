package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// bench is a server in virtual time with the streams of a namespace.
type bench struct {
	*store.Store
	t    *testing.T
	conn *natsconn.Conn
}

func virtually(t *testing.T, fn func(t *testing.T, b *bench)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Dial(t)
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		fn(t, &bench{store.Open(conn, ns), t, conn})
	})
}

// parse reads a text that is right.
func (b *bench) parse(text string) *define.Result {
	b.t.Helper()
	var r *define.Result
	err := b.Known(b.t.Context(), nil, func(types func(string) (*model.Definition, bool)) (err error) {
		r, err = define.Parse("f.yaml", []byte(text), types)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) deploy(text string) *store.Deployed {
	b.t.Helper()
	r := b.parse(text)
	kind := store.Flow
	if r.StepType {
		kind = store.StepType
	}
	d, err := b.Deploy(b.t.Context(), kind, r.Definition)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// put writes a key past the store, as an operator or a later program would.
func (b *bench) put(key, value string) {
	b.t.Helper()
	_, rev, err := b.conn.KVGet(b.t.Context(), ns.BucketFlows(), key)
	if err == nil {
		_, err = b.conn.KVUpdate(b.t.Context(), ns.BucketFlows(), key, []byte(value), rev, 0)
	} else {
		_, err = b.conn.KVCreate(b.t.Context(), ns.BucketFlows(), key, []byte(value), 0)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// wrote is the last sequence of the bucket.
func (b *bench) wrote() uint64 {
	b.t.Helper()
	seq, err := b.conn.StreamLastSeq(b.t.Context(), "KV_"+ns.BucketFlows())
	if err != nil {
		b.t.Fatal(err)
	}
	return seq
}

func wantRefusal(t *testing.T, err error, code schemas.Code, words string) {
	t.Helper()
	e, ok := errors.AsType[*schemas.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Error(), words) {
		t.Fatalf("got %v, want code %s and a word of %q", err, code, words)
	}
}

const orders = "name: order\ndescription: |\n  an\n  order\nsteps:\n- log ${input.x}\n- if ${a} then log a\n"

// A version is its content: comments and layout make no new one, and what was current before can become it again.
func TestVersions(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		first := b.deploy(orders)
		if !first.Stored || !first.Changed || first.Previous != "" || first.Name != "order" || len(first.Version) != 32 {
			t.Fatalf("got %+v, want a first version", first)
		}
		before := b.wrote()
		again := b.deploy("# a comment\n" + orders)
		if again.Stored || again.Changed || again.Version != first.Version || b.wrote() != before {
			t.Fatalf("got %+v and %d writes, want nothing done", again, b.wrote()-before)
		}
		second := b.deploy(orders + "- no-op\n")
		if !second.Stored || !second.Changed || second.Previous != first.Version {
			t.Fatalf("got %+v, want a second version after %s", second, first.Version)
		}
		back := b.deploy(orders)
		if back.Stored || !back.Changed || back.Version != first.Version || back.Previous != second.Version {
			t.Fatalf("got %+v, want the first version back", back)
		}
		versions, err := b.Versions(t.Context(), store.Flow, "order")
		want := slices.Sorted(slices.Values([]string{first.Version, second.Version}))
		if err != nil || !slices.Equal(versions, want) {
			t.Fatalf("got %v, %v, want %v", versions, err, want)
		}
		for _, v := range []string{first.Version, first.Version[:8], ""} {
			d, version, err := b.Get(t.Context(), store.Flow, "order", v)
			if err != nil || version != first.Version || len(d.Steps) != 2 {
				t.Fatalf("%q: got %+v, %s, %v, want the first version", v, d, version, err)
			}
		}
		if d, _, err := b.Get(t.Context(), store.Flow, "order", second.Version); err != nil || len(d.Steps) != 3 {
			t.Fatalf("got %+v, %v, want the second version", d, err)
		}
	})
}

func TestPlanWritesNothing(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		p, err := b.Plan(t.Context(), store.Flow, b.parse(orders).Definition)
		if err != nil || !p.Changed || !p.Stored || b.wrote() != 0 {
			t.Fatalf("got %+v, %v and %d writes, want a plan only", p, err, b.wrote())
		}
	})
}

func TestList(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		if got, err := b.List(t.Context()); err != nil || len(got) != 0 {
			t.Fatalf("got %v, %v, want none", got, err)
		}
		v := b.deploy(orders).Version
		b.deploy("name: a b/c.é\nsteps: [no-op]")
		b.deploy("id: greet\nshorthand: ${who}\nsteps: ['log hello ${who}']")
		b.put("flow.bad.current", "{")
		b.put("flow.later.current", `{"v":9,"name":"later","version":"`+v+`"}`)
		b.put("flow.other.current", `{"v":1,"name":"order","version":"`+v+`"}`)
		b.put("flow.short.current", `{"v":1,"name":"short","version":"12"}`)
		b.put("robot.r2.current", `{"v":1,"name":"r2","version":"`+v+`"}`)
		got, err := b.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range got {
			line := fmt.Sprintf("%s %q steps %d %q", string(e.Kind), e.Name, e.Steps, e.Description)
			if e.Err != nil {
				line = fmt.Sprintf("%s %q: %v", string(e.Kind), e.Name, e.Err)
				if e.Version != "" || e.Key == "" {
					t.Errorf("got %+v, want a key and no more", e)
				}
			}
			if e.Deployed == 0 {
				t.Errorf("got %+v, want when", e)
			}
			lines = append(lines, line)
		}
		want := []string{
			`flow "a b/c.é" steps 1 ""`,
			`flow "bad": it is no JSON: unexpected end of JSON input`,
			`flow "later": it has version 9, this drover reads 1: upgrade it`,
			`flow "order" steps 3 "an order"`,
			`flow "other": it names "order", which has another key`,
			`flow "short": it names the version "12", want 32 hexadecimal digits`,
			`robot "r2": it is of the kind "robot", which this drover does not know`,
			`type "greet" steps 1 ""`,
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

// A flow takes the registered types that it uses as they are when it is deployed, with those that they use.
func TestTypesAreTakenIn(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		b.deploy("id: inner\nsteps: [no-op]")
		b.deploy("id: outer\nsteps: [inner]")
		flow := b.deploy("name: f\nsteps: [outer]")
		b.deploy("id: outer\nsteps: [inner, no-op]")
		d, _, err := b.Get(t.Context(), store.Flow, "f", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(d.Types)); !slices.Equal(got, []string{"inner", "outer"}) || len(d.Types["outer"].Steps) != 1 {
			t.Fatalf("got the types %v with %d steps, want inner, and outer as it was", got, len(d.Types["outer"].Steps))
		}
		if next := b.deploy("name: f\nsteps: [outer]"); next.Version == flow.Version || !next.Changed {
			t.Fatalf("got %+v, want a new version: the type has changed", next)
		}
	})
}

func TestUnknownTypes(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		var text strings.Builder
		for i := range 40 {
			fmt.Fprintf(&text, "- frob%d\n- %s\n", i, strings.Repeat("x", 300))
		}
		err := b.Known(t.Context(), nil, func(types func(string) (*model.Definition, bool)) error {
			_, err := define.Parse("f.yaml", []byte(text.String()), types)
			return err
		})
		if all, ok := errors.AsType[model.Errors](err); !ok || len(all) != 20 {
			t.Fatalf("got %v, want 20 errors of the model", err)
		}
	})
}

func TestRefusals(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		deploy := func(d *model.Definition) error { _, err := b.Deploy(t.Context(), store.Flow, d); return err }
		wantRefusal(t, deploy(b.parse("- no-op").Definition), schemas.CodeInvalid, "the flow has no name")
		wantRefusal(t, deploy(b.parse("name: a ${b}\nsteps: [no-op]").Definition), schemas.CodeInvalid, "expression")
		wantRefusal(t, deploy(b.parse("name: "+strings.Repeat("x", 300)+"\nsteps: [no-op]").Definition), schemas.CodeInvalid, "300 bytes")
		big := b.parse("name: big\nsteps:\n" + strings.Repeat("- log "+strings.Repeat("x", 60<<10)+"\n", 10))
		wantRefusal(t, deploy(big.Definition), schemas.CodeTooLarge, "more than 524288")
		if b.wrote() != 0 {
			t.Fatalf("got %d writes, want none", b.wrote())
		}
		v := b.deploy(orders).Version
		get := func(name, version string) error {
			_, _, err := b.Get(t.Context(), store.Flow, name, version)
			return err
		}
		wantRefusal(t, get("nobody", ""), schemas.CodeNotFound, "there is no flow")
		wantRefusal(t, get("order", strings.Repeat("0", 32)), schemas.CodeNotFound, "has no version")
		wantRefusal(t, get("order", "0000"), schemas.CodeNotFound, "0 versions")
		wantRefusal(t, get("order", v[:3]), schemas.CodeInvalid, "first four")
		wantRefusal(t, get("order", "latest"), schemas.CodeInvalid, "hexadecimal")
		_, _, err := store.Open(b.conn, "nowhere").Get(t.Context(), store.Flow, "order", "")
		wantRefusal(t, err, schemas.CodeNotFound, "keeps no flows")
	})
}

// What was damaged or put in another's place is an error and never the definition of something else.
func TestDamage(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		v := b.deploy(orders).Version
		other := b.deploy("name: other\nsteps: [no-op]").Version
		value, _, err := b.conn.KVGet(t.Context(), ns.BucketFlows(), "flow.other."+other)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"{", "", `{"drover_flow":9,"definition":{}}`, string(value)} {
			b.put("flow.order."+v, bad)
			_, _, err := b.Get(t.Context(), store.Flow, "order", "")
			wantRefusal(t, err, schemas.CodeConflict, "cannot be used")
			_, err = b.Deploy(t.Context(), store.Flow, b.parse(orders).Definition)
			wantRefusal(t, err, schemas.CodeConflict, "delete it and deploy again")
		}
		b.put("flow.order.current", "{")
		_, err = b.Deploy(t.Context(), store.Flow, b.parse(orders).Definition)
		wantRefusal(t, err, schemas.CodeConflict, "nats kv del")
		// The way out that it names is one.
		for _, key := range []string{"flow.order.current", "flow.order." + v} {
			_, rev, err := b.conn.KVGet(t.Context(), ns.BucketFlows(), key)
			if err == nil {
				err = b.conn.KVDelete(t.Context(), ns.BucketFlows(), key, rev)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if all, err := b.List(t.Context()); err != nil || len(all) != 1 {
			t.Fatalf("got %v, %v, want the other flow only", all, err)
		}
		if d := b.deploy(orders); !d.Stored || !d.Changed {
			t.Fatalf("got %+v, want it deployed anew", d)
		}
	})
}

// A version that was deleted while it is the current one is stored again: that is the way out of a damaged one.
func TestMissingVersionIsStoredAgain(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		v := b.deploy(orders).Version
		key := "flow.order." + v
		_, rev, err := b.conn.KVGet(t.Context(), ns.BucketFlows(), key)
		if err == nil {
			err = b.conn.KVDelete(t.Context(), ns.BucketFlows(), key, rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := b.deploy(orders); !d.Stored || d.Changed || d.Previous != v {
			t.Errorf("got %+v, want the version stored, which is the current one", d)
		}
		if d, _, err := b.Get(t.Context(), store.Flow, "order", ""); err != nil || d.Version() != v {
			t.Errorf("the flow cannot be read: %v", err)
		}
		if d := b.deploy(orders); d.Stored || d.Changed {
			t.Errorf("got %+v, want nothing to do", d)
		}
	})
}

// Two who deploy at once leave all their versions, and one of them current.
func TestAtOnce(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		const people = 6
		definitions := make([]*model.Definition, people)
		for i := range definitions {
			definitions[i] = b.parse(fmt.Sprintf("name: f\nsteps: [log %d]", i/2)).Definition
		}
		var wg sync.WaitGroup
		for _, d := range definitions {
			wg.Go(func() {
				if _, err := b.Deploy(t.Context(), store.Flow, d); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		versions, err := b.Versions(t.Context(), store.Flow, "f")
		if err != nil || len(versions) != people/2 {
			t.Fatalf("got %v, %v, want %d versions", versions, err, people/2)
		}
		_, version, err := b.Get(t.Context(), store.Flow, "f", "")
		if err != nil || !slices.Contains(versions, version) {
			t.Fatalf("got %s, %v, want one of them", version, err)
		}
	})
}

// The numbers of names and of versions have limits.
func TestRoom(t *testing.T) {
	virtually(t, func(t *testing.T, b *bench) {
		for i := range store.MaxVersions {
			b.put(fmt.Sprintf("flow.f.%032x", i), "{}")
		}
		_, err := b.Deploy(t.Context(), store.Flow, b.parse("name: f\nsteps: [no-op]").Definition)
		wantRefusal(t, err, schemas.CodeLimit, "1000 versions")
		for i := range store.MaxNames {
			b.put(fmt.Sprintf("flow.n%d.current", i), "{}")
		}
		_, err = b.Deploy(t.Context(), store.Flow, b.parse("name: g\nsteps: [no-op]").Definition)
		wantRefusal(t, err, schemas.CodeLimit, "1000 flows")
		b.deploy("id: g\nsteps: [no-op]")
		if all, err := b.List(t.Context()); err != nil || len(all) != store.MaxNames+1 {
			t.Fatalf("got %d, %v, want %d", len(all), err, store.MaxNames+1)
		}
	})
}
