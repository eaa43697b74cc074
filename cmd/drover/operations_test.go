package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas/ops"
)

// What the namespace did by itself is listed, the latest last; --follow goes on with what comes.
func TestOperationsCommand(t *testing.T) {
	s := newService(t)
	entry := func(seq uint64, o ops.Operation) ops.OperationEntry {
		o.At, o.Identity = at(float64(seq)), "node-1"
		return ops.OperationEntry{Sequence: seq, Operation: o}
	}
	all := []ops.OperationEntry{
		entry(1, ops.Operation{
			Kind: ops.OperationSlotsMissed, Subject: "a b", Count: 3, Slot: at(
				0,
			), Reason: "nobody was there",
		}),
		entry(2, ops.Operation{Kind: ops.OperationRecycleSet}),
	}
	for want, o := range map[string]ops.Operation{
		"1 time":          {Kind: ops.OperationScheduleTrigger, Count: 1},
		"9 times: why":    {Kind: ops.OperationScheduleBackfill, Count: 9, Reason: "why"},
		"2 runs go on":    {Kind: ops.OperationScheduleDeleted, Count: 2},
		"10: it has died": {Kind: ops.OperationAlwaysFailing, Count: 10, Reason: "it has died"},
	} {
		if row := workflows.OperationRow(entry(1, o)); row[4] != want {
			t.Errorf("got the reason %q, want %q", row[4], want)
		}
	}
	var asked []ops.OperationsRequest
	heard := func() {}
	on(s, "operations", func(q ops.OperationsRequest) any {
		a := ops.OperationsResponse{Operations: []ops.OperationEntry{}}
		if asked = append(asked, q); len(asked) > 1 {
			heard()
		}
		for _, e := range all {
			if e.Sequence > q.After {
				a.Operations = append(a.Operations, e)
			}
		}
		return a
	})
	s.drover("", "operations", "--kind", "slotsMissed", "--limit", "5").want(t, cli.ExitDone,
		`TIME                      KIND         SUBJECT  BY      REASON
2026-01-02 03:04:06.000Z  slotsMissed  "a b"    node-1  `+
			`3, the last of 2026-01-02 03:04:05.000Z: nobody was there
2026-01-02 03:04:07.000Z  recycleSet   -        node-1  -
`)
	if q := asked[0]; q.Latest != 5 || q.Kind != ops.OperationSlotsMissed {
		t.Errorf("asked %+v", q)
	}
	// It is ended by Ctrl-C, here after the second question.
	asked = nil
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	heard = stop
	var out, errs bytes.Buffer
	args := []string{"operations", "--follow", "--json", "--nats", s.url}
	s.settle()
	code := execute(ctx, args, strings.NewReader(""), &out, &errs)
	s.settle()
	if code != cli.ExitDone || strings.Count(out.String(), "\n") != 2 || asked[0].Latest != 100 {
		t.Errorf("got %d %s%s after %+v, want each operation once", code, &out, &errs, asked)
	}
	if q := asked[1]; q.After != 2 || q.Latest != 0 {
		t.Errorf("asked %+v, want to go on after the last one", q)
	}
	heard = func() {}
	all = nil
	s.drover("", "operations").want(t, cli.ExitDone, "", "no operations")
	s.drover("", "operations", "--limit", "-1").want(t, cli.ExitUsage, "", "--limit is -1")
}
