package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// S2-12: a script asks by a command whether it is the first of a period: the exit code tells.
func TestOnceCommand(t *testing.T) {
	s := newService(t)
	var asked ops.OnceRequest
	first := true
	on(s, "once", func(q ops.OnceRequest) any {
		if asked = q; q.Period == "fortnight" {
			return ops.OnceResponse{
				Error: schemas.Errorf(schemas.CodeInvalid, "period: %q is none", q.Period).InField("period"),
			}
		}
		by := &ops.PeriodRecord{Name: q.Name, Period: "2026-01-02", At: at(5), Identity: "ann"}
		return ops.OnceResponse{
			First: first, Period: "2026-01-02", Begins: at(0), Ends: at(86400), By: by,
		}
	})
	s.drover(
		"", "once", "report", "per", "day", "in", "Europe/Berlin", "--caller", "me",
	).want(t, cli.ExitDone,
		"first of 2026-01-02: 2026-01-02 04:04:05 +01:00 Fri to 2026-01-03 04:04:05 +01:00 Sat\n")
	if asked.Name != "report" || asked.Period != "day" || asked.TimeZone != "Europe/Berlin" ||
		asked.Caller != "me" {
		t.Errorf("asked %+v", asked)
	}
	first = false
	s.drover("", "once", "report").want(t, cli.ExitNotFirst,
		"not the first of 2026-01-02: 2026-01-02 03:04:05 +00:00 Fri to 2026-01-03 03:04:05 +00:00 Sat"+
			"\nthat was ann 2026-01-02 03:04:10 +00:00 Fri\n")
	if asked.Caller == "" || asked.Period != "" {
		t.Errorf("asked %+v, want a caller of its own", asked)
	}
	if r := s.drover("", "once", "report", "--json"); r.code != cli.ExitNotFirst || !strings.HasPrefix(
		r.stdout, `{"first":false,"period":"2026-01-02"`,
	) || r.stderr != "" {
		t.Errorf("got %+v", r)
	}
	s.drover("", "once", "report", "per", "fortnight").want(t, cli.ExitUsage, "", `"fortnight" is none`)
	for args, want := range map[string]string{
		"once":                       "NAME is missing",
		"once a day":                 `argument "day" is too much: say NAME per PERIOD in ZONE`,
		"once a per":                 "PERIOD is missing after per",
		"once a in":                  "ZONE is missing after in",
		"once a per day per week":    `"per" stands twice`,
		"once a per day in UTC more": `argument "more" is too much`,
	} {
		s.drover("", strings.Fields(args)...).want(t, cli.ExitUsage, "", want)
	}
}
