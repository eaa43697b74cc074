package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/ops/metrics"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/signals"
)

// seen is what a registry shows: values by name and labels, those of histograms by what they have counted.
func seen(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			key := strings.TrimPrefix(f.GetName(), "drover_")
			for _, l := range m.GetLabel() {
				if l.GetName() != "namespace" {
					key += " " + l.GetValue()
				}
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				values[key] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				values[key] = m.GetGauge().GetValue()
			default:
				values[key] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serving(t, Options{
		Embedded: embedded.Options{Port: -1}, Partitions: 2, Metrics: registry,
		Roles: []string{RoleBroker, RoleTimers, RoleOps},
	})
	second, err := New(Options{Embedded: embedded.Options{Port: -1}, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "a registry of its own") {
		t.Errorf("two servers on one registry: got %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := drover.Connect(ctx, &drover.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	deciders := c.Deciders(nil)
	deciders.Register("order", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		run, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, _, _ := run.Activity("pay"); {
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(nil)}, nil
		case status.Open():
			return nil, nil
		}
		switch run.Timer("nap") {
		case decider.TimerFired:
		case decider.TimerOpen:
			return nil, nil
		default:
			return []schemas.Decision{decider.Timer("nap", 10*time.Millisecond)}, nil
		}
		return []schemas.Decision{decider.Schedule("pay", "pay", nil, decider.List("bank"))}, nil
	}))
	work := c.Activities(&activity.Options{Lists: []string{"bank"}})
	activity.Register(work, "pay", func(context.Context, any) (any, error) { return nil, nil })
	go deciders.Run(ctx)
	go work.Run(ctx)
	for range 3 {
		run, err := c.Start(ctx, "order", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Result(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	// Who is answered may look before it is counted that he was.
	exact := map[string]float64{
		"runs_started_total order": 3, "runs_closed_total completed order": 3, "run_duration_seconds order": 3,
		"runs_closed_total failed order": 0, "activities_total bank completed pay": 3,
		"partition_owned 0": 1, "partition_owned 1": 1, "partition_takeovers_total new": 2, "partition_takeover_seconds": 2,
		"timer_claims": 2, "claims_held partition": 2, "claims_held alarms": 2,
		"master": 1, "claims_lost_total": 0, "metric_overflow_total": 0, "index_rows": 3, "index_building": 0,
	}
	atLeast := map[string]float64{
		"commit_records_total": 3, "commit_events_total": 6, "commit_bytes_total": 100, "commit_seconds": 3,
		"decisions_total completed order": 3, "decision_wait_seconds order": 3, "decision_duration_seconds order": 3,
		"activity_wait_seconds bank pay": 3, "activity_duration_seconds bank pay": 3,
		"api_requests_total ok start": 3, "api_duration_seconds start": 3, "api_requests_total ok result": 3,
		"alarm_late_seconds": 1, "alarms_pending 0": 0, "effects_behind_records 1": 0,
	}
	said := ""
	poll.Until(t, time.Minute, "the metrics of three runs", func() bool {
		got := seen(t, registry)
		var wrong []string
		for key, want := range exact {
			if n, ok := got[key]; !ok || n != want {
				wrong = append(wrong, fmt.Sprintf("%s: %v", key, n))
			}
		}
		for key, least := range atLeast {
			if n, ok := got[key]; !ok || n < least {
				wrong = append(wrong, fmt.Sprintf("%s: %v", key, n))
			}
		}
		if slices.Sort(wrong); fmt.Sprint(wrong) != said {
			said = fmt.Sprint(wrong)
			t.Logf("not yet: %s", said)
		}
		return len(wrong) == 0
	})
	lead(ctx, t, s, c)
	// Verbs of the role ops are counted before they are answered.
	for _, verb := range []string{"scheduleCreate", "alwaysAdd", "groups"} {
		if got := seen(t, registry)["api_requests_total ok "+verb]; got < 1 {
			t.Errorf("%s was answered %v times", verb, got)
		}
	}
	s.stop()
	<-s.ended
	if got := seen(t, registry); len(got) != 0 {
		t.Errorf("a server that has ended shows %v", got)
	}
}

// lead has a set of its own read what a master reads, of a server with one of each.
func lead(ctx context.Context, t *testing.T, s *served, c *drover.Client) {
	t.Helper()
	deciders := c.Deciders(nil)
	deciders.Register("guard", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		run, err := task.View(ctx)
		if err != nil || run.Lock("door", "").Status != 0 {
			return nil, err
		}
		return []schemas.Decision{decider.AcquireLock("door")}, nil
	}))
	go deciders.Run(ctx)
	for range 2 {
		if _, err := c.Start(ctx, "guard", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := signals.Publish(ctx, c, c.Namespace(), "nobody", "knock", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSchedule(ctx, ops.Schedule{
		ID:     "nightly",
		Times:  &ops.ScheduleTimes{Cron: []string{"0 3 * * *"}},
		Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "guard"}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddAlwaysOn(ctx, ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "daemon", Type: "guard"}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"list_backlog bank": 0, "list_in_hand bank": 0, "list_workers_waiting bank": 1, "list_oldest_seconds bank": 0,
		"dead_letters_stored unknown-workflow": 1, "locks_held": 1, "locks_waiting": 2, "nodes ready": 1,
		"schedule_slots_total missed nightly": 0, "always_on_up daemon": 1, "runs_open guard": 3,
	}
	poll.Until(t, time.Minute, "what a master reads", func() bool {
		once, end := context.WithCancel(ctx)
		defer end()
		registry, set := prometheus.NewRegistry(), metrics.New("", "")
		registry.MustRegister(set)
		go set.Namespace(c.Namespace()).Lead(once, metrics.Source{Client: c, Nodes: s.server.node.register})
		var got map[string]float64
		poll.Until(t, time.Minute, "a first reading", func() bool {
			got = seen(t, registry)
			_, read := got["nodes ready"]
			return read
		})
		for key, n := range want {
			if v, ok := got[key]; !ok || v != n {
				t.Logf("not yet: %s is %v", key, v)
				return false
			}
		}
		return true
	})
}
