package checker_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// clone copies events so deep that a change of one's attributes changes no other.
func clone(events []schemas.Event) []schemas.Event {
	out := make([]schemas.Event, len(events))
	for i, e := range events {
		v := reflect.ValueOf(e.Attributes)
		if v.Kind() == reflect.Pointer {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(v.Elem())
			e.Attributes = c.Interface().(schemas.Attributes)
		}
		out[i] = e
	}
	return out
}

// references returns the fields of an event that name other events of its history.
func references(e schemas.Event) map[string]*int64 {
	refs := make(map[string]*int64)
	v := reflect.ValueOf(e.Attributes).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if p, ok := v.Field(i).Addr().Interface().(*int64); ok && strings.HasSuffix(name, "EventID") && !strings.HasPrefix(name, "External") && !strings.HasPrefix(name, "Parent") {
			refs[name] = p
		}
	}
	return refs
}

// mutation is a change of a history: the positions of the original events in their new order.
type mutation struct {
	name  string
	order []int
}

func mutations(events []schemas.Event) []mutation {
	all := make([]int, len(events))
	for i := range all {
		all[i] = i
	}
	var out []mutation
	for i, e := range events {
		out = append(out,
			mutation{fmt.Sprintf("drop %d %s", i+1, e.Type()), slices.Delete(slices.Clone(all), i, i+1)},
			mutation{fmt.Sprintf("twice %d %s", i+1, e.Type()), slices.Insert(slices.Clone(all), i, i)})
		if i+1 < len(events) {
			swapped := slices.Clone(all)
			swapped[i], swapped[i+1] = i+1, i
			out = append(out, mutation{fmt.Sprintf("swap %d %s and %s", i+1, e.Type(), events[i+1].Type()), swapped})
		}
	}
	return out
}

func pick(events []schemas.Event, order []int) []schemas.Event {
	out := make([]schemas.Event, len(order))
	for i, from := range order {
		out[i] = events[from]
	}
	return clone(out)
}

// A history whose events are dropped, repeated or swapped as they are is caught, since ids have no gap. Only a history
// cut at its end can be sound, as a prefix.
func TestMutatedHistoriesAreCaught(t *testing.T) {
	for name, text := range golden {
		events := script(t, text)
		for _, m := range mutations(events) {
			if len(m.order) < len(events) && m.order[len(m.order)-1] == len(events)-2 {
				continue
			}
			if len(checker.CheckEvents("w", "r", pick(events, m.order))) == 0 {
				t.Errorf("%s: %s passes", name, m.name)
			}
		}
	}
}

// renumber forges a mutated history: ids and times run on as if nothing had happened, and references follow their events.
// What named a lost event names one that does not exist.
func renumber(events []schemas.Event, order []int) []schemas.Event {
	moved := make(map[int64]int64)
	for i, from := range slices.Backward(order) {
		moved[events[from].ID] = int64(i + 1)
	}
	out := pick(events, order)
	times := make([]schemas.Timestamp, len(out))
	for i := range out {
		times[i] = out[i].Time
	}
	slices.Sort(times)
	for i := range out {
		out[i].ID, out[i].Time = int64(i+1), times[i]
		for _, ref := range references(out[i]) {
			if *ref != 0 {
				*ref = cmp.Or(moved[*ref], 9999)
			}
		}
	}
	return out
}

// The file says, for every forged history, which rules catch it. "passes" is right only where the forged history is one
// that could have happened; each such line was judged by hand, and a new one wants the same.
func TestForgedHistories(t *testing.T) {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(golden)) {
		fmt.Fprintf(&b, "# %s\n", name)
		events := script(t, golden[name])
		for _, m := range mutations(events) {
			fmt.Fprintf(&b, "%s: %s\n", m.name, rules(checker.CheckEvents("w", "r", renumber(events, m.order))))
		}
	}
	path := filepath.Join("testdata", "forged.txt")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), b.String()); diff != "" {
		t.Fatalf("(-file +now):\n%s", diff)
	}
}

// rules are the names of the rules that are broken, or "passes".
func rules(found []checker.Violation) string {
	if len(found) == 0 {
		return "passes"
	}
	var names []string
	for _, v := range found {
		names = append(names, v.Rule)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// mayBeZero tells of the references that the service may leave out: who decided what it releases, fails or refuses itself.
func mayBeZero(e schemas.Event, field string) bool {
	switch e.Attributes.(type) {
	case *schemas.LockReleased, *schemas.WorkflowFailed, *schemas.ChildStartFailed, *schemas.SignalExternalFailed, *schemas.CancelExternalFailed:
		return field == "DeciderCompletedEventID"
	}
	return false
}

// Every reference to another event is checked: none can be changed without being caught.
func TestChangedReferencesAreCaught(t *testing.T) {
	for name, text := range golden {
		events := script(t, text)
		for i, e := range events {
			for field := range references(e) {
				for _, change := range []func(int64) int64{
					func(id int64) int64 { return id + 1 }, func(id int64) int64 { return id - 1 },
					func(int64) int64 { return 0 }, func(int64) int64 { return 9999 }, func(int64) int64 { return -1 },
				} {
					forged := clone(events)
					ref := references(forged[i])[field]
					before := *ref
					if *ref = change(before); *ref == before || mayBeZero(e, field) && *ref == 0 {
						continue
					}
					if len(checker.CheckEvents("w", "r", forged)) == 0 {
						t.Errorf("%s: event %d %s passes with %s %d instead of %d", name, e.ID, e.Type(), field, *ref, before)
					}
				}
			}
		}
	}
}

// No event can be moved back in time.
func TestChangedTimesAreCaught(t *testing.T) {
	for name, text := range golden {
		events := script(t, text)
		for i := range events[1:] {
			forged := clone(events)
			forged[i+1].Time = forged[i].Time - 1
			if len(checker.CheckEvents("w", "r", forged)) == 0 {
				t.Errorf("%s: event %d passes %s before the one before it", name, i+2, forged[i+1].Type())
			}
		}
	}
}
