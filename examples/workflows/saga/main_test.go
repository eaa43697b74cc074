package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

func TestBookTrip(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implement(w)
		e.Go(w)
		for _, tc := range []struct {
			city         string
			soldOut      bool
			booked, back []string
		}{
			{"Rome", false, []string{"hotel-4711", "flight-4711", "car-4711"}, nil},
			{"Venice", true, nil, []string{"flight-4711", "hotel-4711"}},
		} {
			run, err := drover.Start(t.Context(), e.Client, BookTrip, tc.city, nil)
			if err != nil {
				t.Fatal(err)
			}
			booked, err := drovertest.Result(e, run)
			if !slices.Equal(booked, tc.booked) || errors.Is(err, SoldOut) != tc.soldOut {
				t.Errorf("%s: got %q, %v; want %q, sold out %v",
					tc.city, booked, err, tc.booked, tc.soldOut)
			}
			if back := unbooked(t, run.Run); !slices.Equal(back, tc.back) {
				t.Errorf("%s: canceled %q, want %q", tc.city, back, tc.back)
			}
		}
	})
}

// unbooked are the bookings that a run has canceled, in their order.
func unbooked(t *testing.T, run *drover.Run) (all []string) {
	t.Helper()
	for event, err := range run.History(t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		a, ok := event.Attributes.(*schemas.ActivityScheduled)
		if !ok || a.ActivityType != Unbook.Name() {
			continue
		}
		booking, err := Unbook.DecodeInput(a.Input)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, booking)
	}
	return all
}
