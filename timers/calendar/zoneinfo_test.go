package calendar_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"time"
)

// The slots that Python's zoneinfo gives around changes of the clock: three days of each, or five
// hours of those that go by elapsed time. testdata/slots.py wrote the table, and says how.
//
//go:embed testdata/slots.txt
var slotsOfPython string

// S2-10: another implementation of the zones, and another way to find the slots.
func TestSlotsOfPython(t *testing.T) {
	lines := 0
	for line := range strings.Lines(slotsOfPython) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(parts) != 4 {
			t.Fatalf("cannot read %q", line)
		}
		from, err := time.Parse("2006-01-02T15:04Z", parts[2])
		if err != nil {
			t.Fatal(err)
		}
		c := compile(t, cron(parts[0], parts[1]))
		span := 3 * 24 * time.Hour
		if strings.HasPrefix(parts[1], "*") {
			span = 5 * time.Hour
		}
		var got []string
		for at := from.Add(-1); ; {
			slot, ok := c.Next(at)
			if !ok || !slot.Before(from.Add(span)) {
				break
			}
			got = append(got, slot.Format("021504"))
			at = slot
		}
		if want := strings.Fields(parts[3]); !slices.Equal(got, want) {
			t.Errorf("%s in %s from %s: got %v, want %v", parts[1], parts[0], parts[2], got, want)
		}
	}
	if lines < 1000 {
		t.Errorf("got %d lines, want a table", lines)
	}
}
