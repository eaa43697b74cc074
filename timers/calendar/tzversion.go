package calendar

import "github.com/droverhq/drover/internal/zones"

// TZVersion says which database of time zones is used, such as "2025b in /usr/share/zoneinfo". If
// the system has none that is the one of the Go release, which does not say its version.
func TZVersion() string { return zones.Version() }
