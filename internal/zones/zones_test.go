package zones_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/zones"
)

func TestLoad(t *testing.T) {
	for name, want := range map[string]string{"": "UTC", "UTC": "UTC", "Europe/Berlin": "Europe/Berlin"} {
		for range 2 {
			zone, err := zones.Load(name)
			if err != nil || zone.String() != want {
				t.Errorf("%q: got %v, %v, want %s", name, zone, err, want)
			}
		}
	}
}

// A schedule must mean the same on every node.
func TestNoZone(t *testing.T) {
	for _, name := range []string{
		"Local", "local", "localtime", "posix/Europe/Berlin", "right/Europe/Berlin", "Factory", "Europe/Berlinn", "../UTC", "/etc/localtime",
		"Europe", "a\x00b", strings.Repeat("x", 10_000),
	} {
		zone, err := zones.Load(name)
		if err == nil {
			t.Errorf("%.20q: got %v, want an error", name, zone)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.20q: the error is %d bytes long", name, len(err.Error()))
		}
	}
}

func TestNear(t *testing.T) {
	for asked, want := range map[string]string{
		"Berlin": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "Europe/Berlinn": "Europe/Berlin", "America/NewYork": "America/New_York",
		"new york": "America/New_York", "Asia/Calcuta": "Asia/Calcutta",
	} {
		if got := zones.Near(asked); !slices.Contains(got, want) {
			t.Errorf("%s: got %q, want %s among them", asked, got, want)
		}
	}
	for _, asked := range []string{"", "x", "nowhere at all", strings.Repeat("a", 1000)} {
		if got := zones.Near(asked); len(got) > 0 {
			t.Errorf("%.20s: got %q, want none", asked, got)
		}
	}
}

// The names that are proposed exist.
func TestNearExist(t *testing.T) {
	for _, city := range []string{"Berlin", "Kathmandu", "Troll", "Lord_Howe", "Indianapolis"} {
		for _, name := range zones.Near(city) {
			if _, err := time.LoadLocation(name); err != nil {
				t.Error(err)
			}
		}
	}
}
