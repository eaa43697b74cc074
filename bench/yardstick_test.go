package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestYardstickIsWhatWasRecorded: the table adds up to what the recorder of L1 has counted at the commit.
func TestYardstickIsWhatWasRecorded(t *testing.T) {
	var l line
	yardstickTape(10, 4, 4, "dev").describe(&l)
	if want := map[string]float64{"history": 8, "in": 4, "tasks-bench": 3}; !maps.Equal(l.PerClass, want) || l.Messages != 15 {
		t.Errorf("got %v messages a workflow, %v, want 15, %v", l.Messages, l.PerClass, want)
	}
	for class, want := range map[string]float64{"history": 857.16, "in": 281.21, "tasks-bench": 619.89} {
		if got := l.ClassBytes[class]; math.Abs(got-want) > 0.5 {
			t.Errorf("%s: got %.2f bytes a message, want %.2f", class, got, want)
		}
	}
}

// shapeOf is a subject of the yardstick with its names taken out, and these.
func shapeOf(t *testing.T, subject string) (shape, partition, workflow, run string) {
	t.Helper()
	rest, ours := strings.CutPrefix(subject, yardstickSubjects)
	words := strings.Split(rest, ".")
	if !ours || len(words) < 2 {
		t.Fatalf("got subject %s, want one of a namespace", subject)
	}
	if words[0] == "task" {
		return rest, "", "", ""
	}
	partition, words[1] = words[1], "{partition}"
	workflow, words[2] = words[2], "{workflow}"
	if words[0] == "history" {
		run, words[3] = words[3], "{run}"
	}
	return strings.Join(words, "."), partition, workflow, run
}

// TestYardstickPlaysItsTable: each workflow has the messages of the table in their order, in streams that take them. As many workflows
// are at it as are outstanding, and the next ones begin behind them.
func TestYardstickPlaysItsTable(t *testing.T) {
	const n, outstanding, partitions = 11, 4, 3
	type played struct {
		stream, subject string
		size            int
		from, taken     string
	}
	type names struct{ partition, workflow, run string }
	tp := yardstickTape(n, outstanding, partitions, "dev")
	if got, want := len(tp.Messages), n*len(yardstickMessages); got != want {
		t.Fatalf("got %d messages, want %d", got, want)
	}
	workflows := map[string]bool{}
	next := 0
	for first := 0; first < n; first += outstanding {
		of := make([]names, min(outstanding, n-first))
		for place, row := range yardstickMessages {
			want := played{row.stream, row.subject, row.size, row.from, row.taken}
			for i := range of {
				m := tp.Messages[next]
				s := tp.Streams[m.Stream]
				if !covers(s.Config.Subjects[0], m.Subject) {
					t.Errorf("message %d: the stream %s does not take %s", next, s.Config.Name, m.Subject)
				}
				got := played{stream: s.class(), size: len(m.Body), from: m.From}
				for _, c := range s.Consumers {
					if c.FilterSubject == "" || covers(c.FilterSubject, m.Subject) {
						got.taken += taker(c)
					}
				}
				var its names
				got.subject, its.partition, its.workflow, its.run = shapeOf(t, m.Subject)
				if got != want {
					t.Errorf("message %d: got %+v, want %+v, number %d of the table", next, got, want, place)
				}
				if place == 0 {
					of[i] = its
					workflows[its.workflow] = true
					if want := fmt.Sprint((first + i) % partitions); its.partition != want || len(its.workflow) != nameSize {
						t.Errorf("workflow %d: got %+v, want partition %s and %d letters", first+i, its, want, nameSize)
					}
				}
				if its.run != "" && of[i].run == "" {
					of[i].run = its.run
					if len(its.run) != nameSize || its.run == its.workflow || its.run[:kinship] != its.workflow[:kinship] {
						t.Errorf("workflow %d: got run %s of %s", first+i, its.run, its.workflow)
					}
				}
				if its.workflow != "" && (its.workflow != of[i].workflow || its.partition != of[i].partition) || its.run != "" && its.run != of[i].run {
					t.Errorf("message %d: got names %+v, want %+v", next, its, of[i])
				}
				next++
			}
		}
	}
	if len(workflows) != n {
		t.Errorf("got %d workflows, want %d", len(workflows), n)
	}
}

// TestYardstickStaysTheSame: two tapes are the same to the byte; and two messages at the same place differ in what is fresh, which no
// compression takes away, and in nothing else.
func TestYardstickStaysTheSame(t *testing.T) {
	one, other := yardstickTape(5, 5, 4, "dev"), yardstickTape(5, 5, 4, "dev")
	if !reflect.DeepEqual(one, other) {
		t.Fatal("got two tapes that differ, want the same twice")
	}
	for i, m := range yardstickMessages {
		a, b := one.Messages[5*i].Body, one.Messages[5*i+1].Body
		if !bytes.Equal(a[m.fresh:], b[m.fresh:]) {
			t.Errorf("place %d: two messages differ behind the %d bytes that are fresh", i, m.fresh)
		}
		same := 0
		for j := range m.fresh {
			if a[j] == b[j] {
				same++
			}
		}
		if same > m.fresh/4 {
			t.Errorf("place %d: %d of %d fresh bytes are the same in two messages", i, same, m.fresh)
		}
	}
}

// TestMoversMoveTheYardstick: what the streams have taken in the end is what the table says, and what workers acknowledge is gone.
func TestMoversMoveTheYardstick(t *testing.T) {
	const n, partitions = 20, 4
	each := map[string]uint64{}
	for _, m := range yardstickMessages {
		each[m.stream]++
	}
	want := map[string]stored{
		"drover-default-tasks-bench": {0, n * each["tasks-bench"]},
		"drover-default-signals":     {},
		"drover-default-dead":        {},
	}
	for p := range partitions {
		want[fmt.Sprint("drover-default-alarms-", p)] = stored{}
		for _, kind := range []string{"history", "in"} {
			all := n / partitions * each[kind]
			want[fmt.Sprint("drover-default-", kind, "-", p)] = stored{all, all}
		}
	}
	tp := yardstickTape(n, 4, partitions, "dev")
	if len(tp.Streams) != len(want) {
		t.Errorf("got %d streams, want %d", len(tp.Streams), len(want))
	}
	playedAll(t, tp, want)
}

func TestYardstickRefusesFlags(t *testing.T) {
	for _, tc := range []struct {
		o    options
		want string
	}{
		{options{n: -1, concurrency: "64", partitions: 4}, "-n is -1"},
		{options{concurrency: "0,256", partitions: 4}, "-conc is 0"},
		{options{concurrency: "many", partitions: 4}, "-conc: "},
		{options{concurrency: "64"}, "-partitions is 0"},
	} {
		err := yardstick(context.Background(), &bench{o: tc.o, dir: t.TempDir()}, &line{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: got %v, want %q", tc.o, err, tc.want)
		}
	}
}
