package cli

import (
	"testing"
	"time"

	"github.com/droverhq/drover"
)

func TestDurationFlag(t *testing.T) {
	for in, want := range map[string]time.Duration{"90": 90 * time.Second, "0.5": time.Second / 2, "1m30s": 90 * time.Second, "0": 0} {
		var d DurationFlag
		if err := d.Set(in); err != nil || d.Value != want {
			t.Fatalf("%q: got %v, %v, want %v", in, d.Value, err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "-1s", "NONE", "1e99", "\"", "\x00", "1 s"} {
		var d DurationFlag
		if err := d.Set(in); err == nil {
			t.Fatalf("%q: got %v, want an error", in, d.Value)
		}
	}
	d := DurationFlag{Unlimited: true}
	if err := d.Set("NONE"); err != nil || d.Value != drover.Unlimited || d.String() != "NONE" {
		t.Fatalf("NONE: got %v, %v", d.Value, err)
	}
}
