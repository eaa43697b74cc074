package execution

import (
	"strconv"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// BenchmarkStepW1 is workload W1 in the core alone: a start, three activities one after the other, each with its start and
// outcome in one message, and the end. 23 events from 12 messages.
func BenchmarkStepW1(b *testing.B) {
	c := Config{}.Defaults()
	start := Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-1", Type: "order", ActivityDefaults: &schemas.ActivityDefaults{List: "main"}}}
	var replies [4]Reply
	for i, d := range []schemas.DecisionAttributes{activity("a"), activity("b"), activity("c"), &schemas.CompleteWorkflow{}} {
		replies[i] = Reply{Digest: "digest", Reply: &schemas.DecisionReply{Decisions: []schemas.Decision{schemas.Decide(d)}}}
	}
	var events int
	b.ReportAllocs()
	for b.Loop() {
		s, now := New("order-1", "run-1"), schemas.Timestamp(1)
		step := func(m Message) {
			now++
			e, _ := s.Step(&c, m, now)
			events += len(e)
		}
		step(start)
		for _, r := range replies {
			step(Taken{})
			step(r)
			for id := range s.Activities {
				step(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: Token(s.Run, id, 1), Elapsed: 1}})
			}
		}
		if !s.Closed() {
			b.Fatal("the run is open")
		}
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkNextDue looks for the earliest of a thousand deadlines, as the owner does after every commit.
func BenchmarkNextDue(b *testing.B) {
	c, s := Config{}.Defaults(), New("order-1", "run-1")
	s.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-1", ActivityDefaults: &schemas.ActivityDefaults{List: "main", ScheduleToCloseTimeout: seconds(60)}}}, 1)
	s.Step(&c, Taken{}, 2)
	reply := &schemas.DecisionReply{}
	for i := range 1000 {
		reply.Decisions = append(reply.Decisions, schemas.Decide(activity(strconv.Itoa(i))))
	}
	s.Step(&c, Reply{Reply: reply}, 3)
	if len(s.Activities) != 1000 {
		b.Fatalf("%d activities are open, want 1,000", len(s.Activities))
	}
	b.ReportAllocs()
	for b.Loop() {
		s.NextDue(&c)
	}
}
