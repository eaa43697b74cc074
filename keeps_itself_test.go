package drover_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Each method sends what it is told to, and hands on what is answered.
func TestSchedules(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Name: "me"})
		answer := &ops.ScheduleResponse{Revision: 7, NextTimes: []schemas.Timestamp{5}}
		at := func(sec int64) schemas.Timestamp { return schemas.At(time.Unix(sec, 0)) }
		timed := ops.Schedule{
			ID: "nightly", Times: &ops.ScheduleTimes{Cron: []string{"0 3 * * *"}},
			Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "report"}},
		}
		ctx := t.Context()
		check := func(what string, got *ops.ScheduleResponse, err error) {
			t.Helper()
			if d := cmp.Diff(answer, got); err != nil || d != "" {
				t.Errorf("%s: %v %s", what, err, d)
			}
		}

		var created ops.ScheduleCreateRequest
		on(
			s, "scheduleCreate",
			func(_ int, q ops.ScheduleCreateRequest) any { created = q; return answer },
		)
		got, err := c.CreateSchedule(ctx, timed)
		check("create", got, err)
		if d := cmp.Diff(timed, created.Schedule); d != "" || created.RequestID == "" ||
			created.Identity != "me" {
			t.Errorf("created %+v %s", created, d)
		}

		var updated ops.ScheduleUpdateRequest
		on(
			s, "scheduleUpdate",
			func(_ int, q ops.ScheduleUpdateRequest) any { updated = q; return answer },
		)
		got, err = c.UpdateSchedule(ctx, timed, 6)
		check("update", got, err)
		if updated.Revision != 6 || updated.Schedule.ID != "nightly" || updated.Identity != "me" {
			t.Errorf("updated %+v", updated)
		}

		var asked ops.ScheduleRequest
		for _, verb := range []string{
			"scheduleShow", "schedulePause", "scheduleResume", "scheduleDelete",
		} {
			on(s, verb, func(_ int, q ops.ScheduleRequest) any { asked = q; return answer })
		}
		for verb, tt := range map[string]struct {
			do   func() (*ops.ScheduleResponse, error)
			want ops.ScheduleRequest
		}{
			"show": {
				func() (*ops.ScheduleResponse, error) { return c.ShowSchedule(ctx, "a", 3) },
				ops.ScheduleRequest{V: 1, ID: "a", Next: 3},
			},
			"pause": {
				func() (*ops.ScheduleResponse, error) {
					return c.PauseSchedule(ctx, "a", time.Unix(9, 0), "why")
				},
				ops.ScheduleRequest{V: 1, ID: "a", Until: at(9), Reason: "why", Identity: "me"},
			},
			"resume": {
				func() (*ops.ScheduleResponse, error) { return c.ResumeSchedule(ctx, "a", "now") },
				ops.ScheduleRequest{V: 1, ID: "a", Reason: "now", Identity: "me"},
			},
			"delete": {
				func() (*ops.ScheduleResponse, error) { return c.DeleteSchedule(ctx, "a", "") },
				ops.ScheduleRequest{V: 1, ID: "a", Identity: "me"},
			},
		} {
			got, err := tt.do()
			check(verb, got, err)
			if d := cmp.Diff(tt.want, asked); d != "" {
				t.Errorf("%s: %s", verb, d)
			}
		}

		var triggered ops.ScheduleTriggerRequest
		on(
			s, "scheduleTrigger",
			func(_ int, q ops.ScheduleTriggerRequest) any { triggered = q; return answer },
		)
		got, err = c.TriggerSchedule(ctx, "a", nil)
		check("trigger", got, err)
		if triggered.ID != "a" || triggered.RequestID == "" {
			t.Errorf("triggered %+v", triggered)
		}

		var filled ops.ScheduleBackfillRequest
		on(
			s, "scheduleBackfill",
			func(_ int, q ops.ScheduleBackfillRequest) any { filled = q; return answer },
		)
		got, err = c.BackfillSchedule(ctx, "a", time.Unix(1, 0), time.Unix(2, 0), &drover.SlotOptions{
			Overlap: ops.OverlapAllow, RequestID: "r", Reason: "w",
		})
		check("backfill", got, err)
		want := ops.ScheduleBackfillRequest{
			V: 1, ID: "a", From: at(1), Until: at(2), Overlap: ops.OverlapAllow, RequestID: "r",
			Reason: "w", Identity: "me",
		}
		if d := cmp.Diff(want, filled); d != "" {
			t.Error(d)
		}

		answer = &ops.ScheduleResponse{
			Error: schemas.Errorf(schemas.CodeConflict, "it was changed").InField("revision"),
		}
		if _, err := c.UpdateSchedule(ctx, timed, 6); !errors.Is(err, drover.ErrConflict) {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}

// Lists of both kinds go on page by page.
func TestListsOfSchedulesAndAlwaysOn(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "scheduleList", func(_ int, q ops.ScheduleListRequest) any {
			if q.Prefix != "p" {
				t.Errorf("asked for %+v", q)
			}
			if q.Cursor == "" {
				return ops.ScheduleListResponse{
					Schedules: []ops.ScheduleLine{{Schedule: ops.Schedule{ID: "p1"}}}, Cursor: "p1",
				}
			}
			return ops.ScheduleListResponse{
				Schedules: []ops.ScheduleLine{{Schedule: ops.Schedule{ID: "p2"}}},
			}
		})
		on(s, "alwaysList", func(_ int, q ops.AlwaysListRequest) any {
			one := func(id string) []ops.AlwaysOnRecord {
				return []ops.AlwaysOnRecord{
					{AlwaysOn: ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: id}}},
				}
			}
			if q.Cursor == "" {
				return ops.AlwaysListResponse{AlwaysOn: one("p1"), Cursor: "p1"}
			}
			return ops.AlwaysListResponse{AlwaysOn: one("p2")}
		})
		ctx := t.Context()
		schedules := listed(
			t, c.Schedules(ctx, drover.SchedulesOptions{Prefix: "p"}),
			func(l ops.ScheduleLine) string { return l.Schedule.ID },
		)
		always := listed(
			t, c.AlwaysOn(ctx, drover.AlwaysOnOptions{}),
			func(r ops.AlwaysOnRecord) string { return r.AlwaysOn.Start.WorkflowID },
		)
		for _, got := range [][]string{schedules, always} {
			if d := cmp.Diff([]string{"p1", "p2"}, got); d != "" {
				t.Error(d)
			}
		}
	})
}

func listed[Line any](
	t *testing.T, seq iter.Seq2[Line, error], of func(Line) string,
) (all []string) {
	t.Helper()
	for line, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of(line))
	}
	return all
}

func TestAlwaysOn(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Name: "me"})
		ctx := t.Context()
		var added ops.AlwaysAddRequest
		on(s, "alwaysAdd", func(_ int, q ops.AlwaysAddRequest) any {
			if added = q; q.AlwaysOn.Start.Type == "" {
				return ops.AlwaysResponse{
					Error: schemas.Errorf(schemas.CodeInvalid, "it is empty").InField("start.type"),
				}
			}
			return ops.AlwaysResponse{Changed: true}
		})
		w := ops.AlwaysOn{
			Start:   schemas.StartRequest{WorkflowID: "poll", Type: "poller"},
			Restart: ops.RestartOnFailure,
		}
		if a, err := c.AddAlwaysOn(ctx, w); err != nil || !a.Changed {
			t.Fatal(a, err)
		}
		if d := cmp.Diff(ops.AlwaysAddRequest{V: 1, AlwaysOn: w, Identity: "me"}, added); d != "" {
			t.Error(d)
		}
		_, err := c.AddAlwaysOn(ctx, ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "poll"}})
		wantError(t, err, drover.ErrInvalid)

		var asked ops.AlwaysRequest
		for _, verb := range []string{"alwaysShow", "alwaysStop", "alwaysStart", "alwaysRemove"} {
			on(s, verb, func(_ int, q ops.AlwaysRequest) any {
				asked = q
				return ops.AlwaysResponse{Changed: true}
			})
		}
		for verb, tt := range map[string]struct {
			do   func() (*ops.AlwaysResponse, error)
			want ops.AlwaysRequest
		}{
			"show": {
				func() (*ops.AlwaysResponse, error) { return c.ShowAlwaysOn(ctx, "a") },
				ops.AlwaysRequest{V: 1, ID: "a"},
			},
			"stop": {
				func() (*ops.AlwaysResponse, error) { return c.StopAlwaysOn(ctx, "a", nil) },
				ops.AlwaysRequest{V: 1, ID: "a", Identity: "me"},
			},
			"start": {
				func() (*ops.AlwaysResponse, error) { return c.StartAlwaysOn(ctx, "a", "go") },
				ops.AlwaysRequest{V: 1, ID: "a", Reason: "go", Identity: "me"},
			},
			"remove": {
				func() (*ops.AlwaysResponse, error) {
					return c.RemoveAlwaysOn(
						ctx, "a", &drover.StopAlwaysOnOptions{Terminate: true, KeepRun: true, Reason: "w"},
					)
				},
				ops.AlwaysRequest{
					V: 1, ID: "a", Terminate: true, KeepRun: true, Reason: "w", Identity: "me",
				},
			},
		} {
			if _, err := tt.do(); err != nil {
				t.Errorf("%s: %v", verb, err)
			}
			if d := cmp.Diff(tt.want, asked); d != "" {
				t.Errorf("%s: %s", verb, d)
			}
		}
	})
}

// S2-12: a caller that got no answer asks again as the same caller, so that it is still the first.
func TestOnce(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Name: "me"})
		var asked []ops.OnceRequest
		on(s, "once", func(_ int, q ops.OnceRequest) any {
			if asked = append(asked, q); len(asked) == 1 {
				return nil // silence
			}
			return ops.OnceResponse{First: q.Caller == asked[0].Caller, Period: "2026-11-28"}
		})
		first, err := c.Once(
			t.Context(), "report",
			drover.OnceOptions{Period: "week", TimeZone: "Europe/Berlin", WorkflowID: "w", RunID: "r"},
		)
		if err != nil || !first {
			t.Fatalf("got %v, %v, want true", first, err)
		}
		want := ops.OnceRequest{
			V: 1, Name: "report", Period: "week", TimeZone: "Europe/Berlin", Caller: asked[0].Caller,
			WorkflowID: "w", Run: "r", Identity: "me",
		}
		if d := cmp.Diff(want, asked[1]); d != "" || want.Caller == "" {
			t.Fatal(d, want)
		}
		if first, err := c.Once(t.Context(), "report", drover.OnceOptions{}); err != nil || first {
			t.Fatalf("got %v, %v of another caller, want false", first, err)
		}
	})
}

// A report that is made once a day, however many programs try.
func ExampleClient_Once() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := drover.Connect(ctx, &drover.Options{URL: "nats://127.0.0.1:4222"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	first, err := c.Once(
		ctx, "daily-report", drover.OnceOptions{Period: "day", TimeZone: "Europe/Berlin"},
	)
	if err != nil {
		log.Fatal(err)
	}
	if first {
		fmt.Println("making the report")
	}
}

// A workflow at three each night, Berlin time.
func ExampleClient_CreateSchedule() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := drover.Connect(ctx, &drover.Options{URL: "nats://127.0.0.1:4222"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	a, err := c.CreateSchedule(ctx, ops.Schedule{
		ID:     "nightly",
		Times:  &ops.ScheduleTimes{Cron: []string{"0 3 * * *"}, TimeZone: "Europe/Berlin"},
		Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "report"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("next", a.NextTimes)
}
