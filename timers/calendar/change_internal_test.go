package calendar

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The bounds are right from 1970 to the last year: also in the years whose changes follow from a
// rule, of which package time does not know the exact bounds, and on the last day of a leap year.
func TestStretches(t *testing.T) {
	for _, name := range []string{
		"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Nuuk", "America/Santiago", "Africa/Casablanca", "Africa/Cairo",
		"Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Asia/Gaza",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		checkStretches(t, zone)
	}
}

// The same with files of zones as they are linked in, which list changes up to the last new rule
// only. America/Metlakatla and America/Ciudad_Juarez have one in the middle of a year, before
// which their rule does not hold.
func TestStretchesOfRules(t *testing.T) {
	for _, name := range []string{"Berlin", "Lord_Howe", "Santiago", "Metlakatla", "Ciudad_Juarez"} {
		file, err := os.ReadFile(filepath.Join("testdata", "rules", name))
		if err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocationFromTZData(name, file)
		if err != nil {
			t.Fatal(err)
		}
		checkStretches(t, zone)
	}
}

func checkStretches(t *testing.T, zone *time.Location) {
	t.Helper()
	check := func(instant int64) stretch {
		s := stretchAt(zone, instant)
		if instant < s.start || instant >= s.end {
			t.Fatalf("%s: %v is not from %v to %v", zone, time.Unix(instant, 0).UTC(), time.Unix(s.start, 0).UTC(), time.Unix(s.end, 0).UTC())
		}
		for _, at := range []int64{max(s.start, instant-400*day), instant, min(s.end, instant+400*day) - 1} {
			if got := offsetAt(zone, at); got != s.offset {
				t.Fatalf("%s: the offset of %v is %d, in the stretch of %v it is %d", zone,
					time.Unix(at, 0).UTC(), got, time.Unix(instant, 0).UTC(), s.offset)
			}
		}
		return s
	}
	last := lastInstant.Unix()
	for at := int64(0); at < last; at += 50 * hour {
		check(at)
	}
	for year := firstYear; year <= lastYear; year++ {
		check(time.Date(year, 12, 31, 23, 59, 59, 0, time.UTC).Unix())
		check(time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).Unix())
	}
	for at := int64(0); at < last; { // each follows the one before it
		s := check(at)
		if at > 0 && s.start != at {
			if before := stretchAt(zone, at-1); before.offset != s.offset {
				t.Fatalf("%s: a stretch ends at %v, the next begins at %v", zone, time.Unix(at, 0).UTC(), time.Unix(s.start, 0).UTC())
			}
		}
		at = s.end
	}
}
