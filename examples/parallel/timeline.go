package main

import (
	"context"
	"fmt"
	"io"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// printTimeline prints the history of a run, one event a line: id, time since the start, type, activity.
func printTimeline(ctx context.Context, run *drover.Run, out io.Writer) error {
	var start schemas.Timestamp
	names := make(map[int64]string) // of the activities, by ActivityScheduled
	for e, err := range run.History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			return err
		}
		if e.ID == 1 {
			start = e.Time
		}
		if _, err := fmt.Fprintf(out, "%3d  +%.3fs  %s\n", e.ID, e.Time.Sub(start).Seconds(), text(e, names)); err != nil {
			return err
		}
	}
	return nil
}

func text(e schemas.Event, names map[int64]string) string {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		names[e.ID] = a.ActivityID
		return string(e.Type()) + " " + a.ActivityID
	case *schemas.ActivityStarted:
		return string(e.Type()) + " " + names[a.ScheduledEventID]
	case *schemas.ActivitySuccess:
		return string(e.Type()) + " " + names[a.ScheduledEventID]
	case *schemas.ActivityFailed:
		return string(e.Type()) + " " + names[a.ScheduledEventID] + ": " + a.Reason
	}
	return string(e.Type())
}
