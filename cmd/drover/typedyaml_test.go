package main

import (
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
)

// A file and the command line may not be about two schedules.
func TestScheduleFileOfAnother(t *testing.T) {
	s := newScheduling(t)
	text := "id: b\ntimes: {cron: '@daily'}\naction: {start: {type: t}}\n"
	s.drover(text, "schedule", "create", "a", "--file", "-").want(
		t, cli.ExitUsage, "", `standard input is about the schedule "b"`,
	)
	s.drover(text, "schedule", "create", "b", "--file", "-", "--note", "n").done(t)
	if got := s.created.Schedule; got.ID != "b" || got.Note != "n" || got.Times.Cron[0] != "@daily" {
		t.Errorf("got %+v", got)
	}
	s.drover("times: {corn: 1}", "schedule", "create", "b", "--file", "-").want(
		t, cli.ExitUsage, "", `standard input: line 1: times: there is no field "corn"; did you mean cron?`,
	)
}
