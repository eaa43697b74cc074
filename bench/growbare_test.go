package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/subject"
)

// The bare streams have as many messages and subjects as those of the server, of the same size, on the subjects of those workflows that wait.
func TestBareStreamsAreLikeTheServers(t *testing.T) {
	const partitions = 2
	_, js := house(t, &tape{})
	stream := func(name, of string, subjects, messages, bytes uint64) *jetstream.StreamInfo {
		return &jetstream.StreamInfo{
			Config: jetstream.StreamConfig{Name: name, Subjects: []string{of}, Storage: jetstream.FileStorage},
			State:  jetstream.StreamState{NumSubjects: subjects, Msgs: messages, Bytes: bytes},
		}
	}
	of := func(waiting, bursts uint64) (w world) {
		for p := range partitions {
			n := uint64(0)
			for i := range bareIDs(0, int(waiting), partitions, func(int) bool { return false }) {
				if i == p {
					n++
				}
			}
			w = append(w, stream(namespace.StreamHistory(p), namespace.AllHistory(p), n+bursts, n+4*bursts, (n+4*bursts)*400),
				stream(namespace.StreamAlarms(p), namespace.AllAlarms(p), n, n, n*200))
		}
		return w
	}
	var had copied
	for _, to := range []struct{ waiting, bursts uint64 }{{100, 10}, {300, 20}} {
		want := of(to.waiting, to.bursts)
		if err := had.repeat(t.Context(), js, int(to.waiting), want); err != nil {
			t.Fatal(err)
		}
		for _, info := range want {
			s, err := js.Stream(t.Context(), bareConfig(&info.Config).Name)
			if err != nil {
				t.Fatal(err)
			}
			got, want := s.CachedInfo().State, info.State
			if got.NumSubjects != want.NumSubjects || got.Msgs != want.Msgs {
				t.Errorf("%s: got %d subjects and %d messages, want %d and %d", info.Config.Name, got.NumSubjects, got.Msgs, want.NumSubjects, want.Msgs)
			}
			if least := want.Bytes - want.Bytes/20; got.Bytes > want.Bytes+want.Bytes/20 || got.Bytes < least {
				t.Errorf("%s: got %d bytes, want %d", info.Config.Name, got.Bytes, want.Bytes)
			}
		}
	}
	for _, wid := range []string{"idle-0", "idle-299"} {
		p := subject.Partition(wid, partitions)
		for _, name := range []string{namespace.StreamHistory(p), namespace.StreamAlarms(p)} {
			s, err := js.Stream(t.Context(), bareConfig(&jetstream.StreamConfig{Name: name}).Name)
			if err != nil {
				t.Fatal(err)
			}
			filter := namespace.HistoryOfWorkflow(p, wid)
			if name == namespace.StreamAlarms(p) {
				filter = strings.Replace(filter, ".history.", ".alarm.", 1)
			}
			info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(filter))
			if err != nil || len(info.State.Subjects) != 1 {
				t.Errorf("%s in %s: got %v, %v, want one subject", wid, name, info.State.Subjects, err)
			}
		}
	}
}

// What is beyond counts from when each server was empty, and a line with it comes back as it was printed.
func TestBeyondIsForEachWorkflow(t *testing.T) {
	m := memory{RSS: 700, BareRSS: 400, Live: 500, BareLive: 300}
	m.compare(10, 50, 30)
	if m.Beyond != 28 || m.BeyondLive != 20 {
		t.Errorf("got %v bytes beyond, %v alive; want 28, 20", m.Beyond, m.BeyondLive)
	}
	line, err := json.Marshal(point{At: 10, memory: m, Rested: &m})
	if err != nil {
		t.Fatal(err)
	}
	var got point
	if err := json.Unmarshal(line, &got); err != nil || got.memory != m || got.Rested == nil || *got.Rested != m {
		t.Errorf("got %+v, %v from %s", got, err, line)
	}
}
