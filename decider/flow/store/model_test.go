package store_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/decider/flow/store"
)

// deployment is one of a sequence: which name gets which content.
type deployment struct{ name, content int }

// Whatever is deployed in whatever order, the store is a list of contents for each name and which of them came last.
func TestStoreAgainstAList(t *testing.T) {
	draw := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) deployment {
		return deployment{rapid.IntRange(0, 2).Draw(rt, "name"), rapid.IntRange(0, 3).Draw(rt, "content")}
	}), 1, 12)
	rapid.Check(t, func(rt *rapid.T) {
		all := draw.Draw(rt, "deployments")
		var wrong string // the bubble has a goroutine of its own, which must not end the test
		virtually(t, func(_ *testing.T, b *bench) { wrong = compare(b, all) })
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// compare deploys all and says what differs from a list.
func compare(b *bench, all []deployment) string {
	contents, last := map[string][]string{}, map[string]string{} // versions by name; the current one
	for _, one := range all {
		name := fmt.Sprintf("name %d", one.name)
		before := b.wrote()
		d := b.deploy(fmt.Sprintf("name: %s\nsteps: [log %d]", name, one.content))
		isNew, changed, writes := !slices.Contains(contents[name], d.Version), last[name] != d.Version, uint64(0)
		if isNew {
			contents[name] = append(contents[name], d.Version)
			writes++
		}
		if changed {
			writes++
		}
		if got := b.wrote() - before; d.Stored != isNew || d.Changed != changed || d.Previous != last[name] || got != writes {
			return fmt.Sprintf("got %+v and %d writes, want stored %v, changed %v, previous %q", d, got, isNew, changed, last[name])
		}
		last[name] = d.Version
	}
	for name, want := range contents {
		slices.Sort(want)
		if got, err := b.Versions(b.t.Context(), store.Flow, name); err != nil || !slices.Equal(got, want) {
			return fmt.Sprintf("%s: got the versions %v, %v, want %v", name, got, err, want)
		}
		if _, got, err := b.Get(b.t.Context(), store.Flow, name, ""); err != nil || got != last[name] {
			return fmt.Sprintf("%s: got %s, %v, want %s", name, got, err, last[name])
		}
	}
	return ""
}
