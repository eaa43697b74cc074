package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// toldSpan is what an owner says of its records.
type toldSpan struct {
	from, to uint64
	changed  []broker.Change
}

// listener gathers what owners tell, by partition.
type listener struct {
	mu    sync.Mutex
	spans map[int][]toldSpan
}

func (l *listener) listen(o *broker.Options) {
	o.Changed = func(p int, from, to uint64, changed []broker.Change) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.spans[p] = append(l.spans[p], toldSpan{from, to, changed})
	}
}

// linesIn are the lines of the runs of a partition, by the records that say so, as headers have them.
func (f *fleet) linesIn(p int) (lines map[uint64]runs.Line, last uint64) {
	f.t.Helper()
	lines = map[uint64]runs.Line{}
	err := f.post.Scan(context.Background(), ns.StreamHistory(p), natsconn.ReadOptions{HeadersOnly: true}, func(s natsconn.Stored) error {
		last = s.Seq
		if !runs.IsRecord(&s) { // a fence
			return nil
		}
		l, err := runs.ReadLine(s)
		lines[s.Seq] = l
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return lines, last
}

func asText(t *testing.T, l runs.Line) string {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Whoever hears what owners tell knows of every run that a span of records belongs to, once, what the headers of its last record there say, and why
// it has failed, whatever happens to it and whoever has the partition.
func TestOwnersTellWhatHasChanged(t *testing.T) { // P-14
	const partitions, rounds = 2, 12
	virtually(t, partitions, func(t *testing.T, f *fleet) {
		heard := &listener{spans: map[int][]toldSpan{}}
		first := f.node("a", nil, heard.listen)
		f.decider("order", func(d *decisionTask) string {
			if !d.has("WorkflowStarted") {
				return complete
			}
			switch in, _ := d.Events[0].Attributes["input"].(string); in {
			case "fails":
				return `[{"type":"FailWorkflow","attributes":{"reason":"no\nway"}}]`
			case "kept":
				return `[{"type":"SetRetention","attributes":{"retention":"max(2, 1h)","hash":"h"}},{"type":"CompleteWorkflow"}]`
			case "again":
				return `[{"type":"ContinueAsNew","attributes":{"input":"kept"}}]`
			case "parent":
				return `[{"type":"SetRetention","attributes":{"retention":"3"}},{"type":"StartChild","attributes":{"workflowId":"kid-` + d.WorkflowID + `","workflowType":"order","childPolicy":"ABANDON"}},{"type":"CompleteWorkflow"}]`
			case "waits":
				return `[{"type":"SetAttributes","attributes":{"attributes":{"asked":"` + d.WorkflowID + `"}}}]`
			}
			return complete
		})
		some := func(name string) {
			for i := range rounds {
				kind := []string{"", "fails", "kept", "again", "parent", "waits"}[i%6]
				f.start(fmt.Sprintf(`{"workflowId":"%s%d","type":"order","input":%q,"tagList":["t%d"],"executionStartToCloseTimeout":5}`, name, i, kind, i))
			}
			f.start(fmt.Sprintf(`{"workflowId":"%s-ended","type":"order","input":"waits"}`, name))
			time.Sleep(time.Second)
			f.api("terminate", fmt.Sprintf(`{"workflowId":"%s-ended"}`, name))
			time.Sleep(9 * time.Second)
		}
		some("x")
		f.node("b", nil, heard.listen)
		time.Sleep(5 * time.Second) // it has its share
		some("y")
		first.stop()
		time.Sleep(5 * time.Second)
		some("z")

		heard.mu.Lock()
		defer heard.mu.Unlock()
		kinds, spans := map[schemas.Status]int{}, 0
		reader := &runs.Reader{Conn: f.post, Namespace: ns}
		for p := range partitions {
			want, last := f.linesIn(p)
			covered := map[uint64]bool{}
			for _, s := range heard.spans[p] {
				spans++
				if s.from == 0 || s.from > s.to || s.to > last {
					t.Fatalf("partition %d: told of %d to %d of %d records", p, s.from, s.to, last)
				}
				latest := map[string]uint64{} // the record of each run that changed
				for seq := s.from; seq <= s.to; seq++ {
					covered[seq] = true
					if l, ok := want[seq]; ok {
						latest[l.WorkflowID+" "+l.Run] = seq
					}
				}
				if len(s.changed) != len(latest) {
					t.Fatalf("partition %d, records %d to %d: told of %d runs, want %d", p, s.from, s.to, len(s.changed), len(latest))
				}
				for i, c := range s.changed {
					line := want[c.Sequence]
					late := line.ClosedAt.Sub(c.Line.ClosedAt)
					if latest[line.WorkflowID+" "+line.Run] != c.Sequence || late < 0 || late > time.Second || i > 0 && s.changed[i-1].Sequence >= c.Sequence {
						t.Fatalf("partition %d, records %d to %d: told of %+v, in the history is %+v", p, s.from, s.to, c, line)
					}
					line.ClosedAt = c.Line.ClosedAt
					if got, want := asText(t, c.Line), asText(t, line); got != want {
						t.Fatalf("got %s, want %s", got, want)
					}
					kinds[c.Line.Status]++
					reason := ""
					if c.Line.Status == schemas.StatusFailed {
						reason = "no way"
					}
					read, err := reader.ReasonAt(t.Context(), p, c.Line.WorkflowID, c.Line.Run, c.Sequence)
					if err != nil || c.Reason != reason || read != reason {
						t.Fatalf("%s has failed for %q, its last record tells %q, %v; want %q", c.Line.WorkflowID, c.Reason, read, err, reason)
					}
				}
			}
			for seq := range last {
				if !covered[seq+1] {
					t.Errorf("partition %d: nobody has told of record %d, the fences of owners included: it has to be read", p, seq+1)
				}
			}
		}
		if len(kinds) != 6 || spans < 2*partitions || spans > 200 {
			t.Errorf("got %d spans, with runs that are %v: want some, and open ones, and ends of each kind", spans, kinds)
		}
	})
}
