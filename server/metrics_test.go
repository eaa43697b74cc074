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
	"github.com/droverhq/drover/schemas"
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
		"master": 1, "claims_lost_total": 0, "metric_overflow_total": 0,
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
	s.stop()
	<-s.ended
	if got := seen(t, registry); len(got) != 0 {
		t.Errorf("a server that has ended shows %v", got)
	}
}
