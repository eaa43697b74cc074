package natsconn

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestKVMatching(t *testing.T) {
	c := connect(t)
	bucket(t, c)
	ctx := t.Context()
	for _, key := range []string{"a.x", "a.y", "b.x", "a.x.z"} {
		if _, err := c.KVCreate(ctx, "b", key, []byte("value"), 0); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"a.*": {"a.x", "a.y"}, "*.x": {"a.x", "b.x"}, "c.*": nil, "a.>": {"a.x", "a.x.z", "a.y"}, "b.x": {"b.x"},
	} {
		got, err := c.KVMatching(ctx, "b", pattern)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", pattern, diff)
		}
	}
	_, err := c.KVMatching(ctx, "none", ">")
	wantErr(t, err, ErrNoStream)
	_, err = c.KVMatching(ctx, "b", "")
	wantErr(t, err, ErrInvalid)
}
