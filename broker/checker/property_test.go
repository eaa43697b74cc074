package checker_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

func TestLegalHistoriesPass(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := history(rt)
		all := records(t, "r", text)
		stored := store(t, all)
		var last schemas.Timestamp
		for i, s := range stored {
			for _, e := range s.Record.Events {
				last = max(last, e.Time)
			}
			stored[i].At = last
		}
		for n := 1; n <= len(stored); n++ { // at every prefix of it
			if found := checker.CheckRecords("w", "r", stored[:n]); len(found) != 0 {
				rt.Fatalf("after %d records: %v\n%s\n%s", n, found, text, showRecords(all[:n]))
			}
		}
	})
}

// Drops and swaps of events, and changed references, are caught in any history.
func TestRandomDamageIsCaught(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := script(t, history(rt))
		order := make([]int, len(events))
		for i := range order {
			order[i] = i
		}
		for range rapid.IntRange(1, 4).Draw(rt, "damages") {
			i := rapid.IntRange(0, len(order)-1).Draw(rt, "at")
			j := rapid.IntRange(0, len(order)-1).Draw(rt, "and")
			switch rapid.IntRange(0, 2).Draw(rt, "damage") {
			case 0:
				order[i], order[j] = order[j], order[i]
			case 1:
				order = slices.Insert(order, i, order[j])
			default:
				if len(order) > 1 {
					order = slices.Delete(order, i, i+1)
				}
			}
		}
		prefix := true
		for i, from := range order {
			prefix = prefix && i == from
		}
		if !prefix && len(checker.CheckEvents("w", "r", pick(events, order))) == 0 {
			rt.Fatalf("passes in the order %v\n%s", order, show(events))
		}
		damageReference(rt, events)
	})
}

func damageReference(rt *rapid.T, events []schemas.Event) {
	forged := clone(events)
	e := rapid.SampledFrom(forged).Draw(rt, "event")
	refs := references(e)
	for _, field := range slices.Sorted(maps.Keys(refs)) {
		before := *refs[field]
		*refs[field] = rapid.Int64Range(-1, int64(len(events)+1)).Draw(rt, field)
		if *refs[field] == before || allowed(events, e, field, *refs[field]) {
			*refs[field] = before
			continue
		}
		if len(checker.CheckEvents("w", "r", forged)) == 0 {
			rt.Fatalf("event %d passes with %s %d instead of %d\n%s", e.ID, field, *refs[field], before, show(events))
		}
		*refs[field] = before
	}
}

// allowed tells of another value that a reference may have, because nothing in the event says which one is meant: 0 where
// the service may leave it out, another activity, another start of the same one.
func allowed(events []schemas.Event, e schemas.Event, field string, value int64) bool {
	if mayBeZero(e, field) && value == 0 {
		return true
	}
	if value < 1 || value >= e.ID {
		return false
	}
	switch target := events[value-1].Attributes.(type) {
	case *schemas.ActivityScheduled:
		return field == "ScheduledEventID"
	case *schemas.ActivityStarted:
		scheduled := references(e)["ScheduledEventID"]
		return field == "StartedEventID" && scheduled != nil && target.ScheduledEventID == *scheduled
	}
	return false
}

// Time alone decides: the same history a nanosecond faster than its timers and timeouts allow is caught.
func TestFasterHistoriesAreCaught(t *testing.T) {
	waits := 0
	faster := func(rt *rapid.T) {
		events := script(t, history(rt))
		for i, e := range events {
			switch e.Attributes.(type) {
			case *schemas.TimerExpired, *schemas.ActivityScheduledTimeout, *schemas.WorkflowTimedOut:
			default:
				continue
			}
			waits++
			forged := clone(events[:i+1])
			short := forged[0].Time + schemas.Timestamp(time.Second)
			for j := range forged {
				forged[j].Time = min(forged[j].Time, short)
			}
			if rules(checker.CheckEvents("w", "r", forged)) == "passes" {
				rt.Fatalf("event %d passes within a second\n%s", e.ID, show(forged))
			}
		}
	}
	for range 10 { // now and then none of a hundred histories waits for anything
		if rapid.Check(t, faster); waits > 0 {
			return
		}
	}
	t.Fatal("no history waited for anything")
}

// Whatever is read as events is checked without a panic.
func FuzzCheckEvents(f *testing.F) {
	for _, text := range golden {
		body, err := schemas.MarshalJSON(&schemas.HistoryResponse{Events: script(f, text)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var page schemas.HistoryResponse
		if schemas.Unmarshal(body, &page) != nil {
			return
		}
		for _, v := range checker.CheckEvents("", "", page.Events) {
			if v.Rule == "" || v.Detail == "" {
				t.Fatalf("a violation that says nothing: %v", v)
			}
		}
	})
}

func BenchmarkHistory(b *testing.B) {
	events := script(b, golden["S1-45 A and B in parallel, then C"])
	b.ReportAllocs()
	for b.Loop() {
		if found := checker.CheckEvents("w", "r", events); len(found) != 0 {
			b.Fatal(found)
		}
	}
}
