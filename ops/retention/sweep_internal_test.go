package retention

import (
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/payloads"
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
