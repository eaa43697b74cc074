// Package zones loads time zones by their IANA names and keeps them: one zone is some kilobytes,
// and is read from a file.
//
// Where the system has a database of zones that one is used, as everywhere in Go; else the one
// that is linked in.
package zones

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for systems without a database
)

const longestName = 100

var loaded sync.Map // name → *time.Location

// Load returns the zone of a name; the empty name is UTC. It refuses names that mean another zone
// on another machine, and those of zones whose days have leap seconds.
func Load(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if len(name) > longestName {
		return nil, fmt.Errorf("a name of %d bytes is no time zone", len(name))
	}
	switch first, _, _ := strings.Cut(strings.ToLower(name), "/"); first {
	case "local", "localtime", "posix", "posixrules", "right", "factory":
		return nil, fmt.Errorf("%q is no name of a zone that is the same on every machine", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q", name)
	}
	loaded.Store(name, zone)
	return zone, nil
}
