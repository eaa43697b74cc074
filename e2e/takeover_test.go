package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

const (
	partitions = 8
	shortTTL   = 2 * time.Second
)

// pair is two brokers on one NATS server, with a load.
type pair struct {
	*world
	one, two *process
	p        *pressure
	notes    string
	observer *claims.Claims
	ids      [partitions]string // a workflow id of each partition
}

func newPair(t *testing.T) *pair {
	t.Helper()
	w := newWorld(t)
	w.bareNATS()
	f := &pair{world: w, notes: filepath.Join(w.dir, "notes")}
	if err := os.Mkdir(f.notes, 0o700); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--claim-ttl", shortTTL.String(), "--partitions", fmt.Sprint(partitions)}
	f.one = w.beside("one", "broker", flags...)
	f.two = w.beside("two", "broker", flags...)
	w.beside("timers", "timers", flags...)
	w.role("decider", load.Type)
	asRole(t, w.dir, "worker", map[string]string{envURL: w.url, envName: load.List, envDir: f.notes})
	f.p = newPressure(w)
	var err error
	if f.observer, err = claims.Open(natsconn.Of(w.client), namespace.BucketClaims(), claims.Options{Node: "observer"}); err != nil {
		t.Fatal(err)
	}
	for i := 0; slices.Contains(f.ids[:], ""); i++ {
		id := fmt.Sprintf("idle-%d", i)
		if n := subject.Partition(id, partitions); f.ids[n] == "" {
			f.ids[n] = id
			w.start("nobody", id, nil, startOptions{})
		}
	}
	poll.Until(t, patience, "both brokers own partitions", func() bool {
		o := f.owners()
		return o["one"] > 0 && o["two"] > 0 && o["one"]+o["two"] == partitions
	})
	return f
}

// owners counts the partitions of each broker, by the claims.
func (f *pair) owners() map[string]int {
	f.t.Helper()
	ctx, cancel := f.bounded()
	defer cancel()
	held, err := f.observer.List(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	n := map[string]int{}
	for _, h := range held {
		if _, ok := claims.ParsePartition(h.Key); ok && !h.Expired {
			n[h.Node]++
		}
	}
	return n
}

// serves tells whether a broker answers for a partition.
func (f *pair) serves(nc *nats.Conn, broker string, partition int) bool {
	m, err := nc.Request(namespace.API("describe"), fmt.Appendf(nil, `{"workflowId":%q}`, f.ids[partition]), 100*time.Millisecond)
	if err != nil {
		return false
	}
	var d struct {
		Owner string `json:"owner"`
	}
	return json.Unmarshal(m.Data, &d) == nil && d.Owner == broker
}

func onceLoads(n int) []load.Input {
	all := make([]load.Input, n)
	for i := range all {
		all[i] = load.Input{Steps: 3, Once: true}
	}
	return all
}

// A broker is killed with -9 under load. The other one serves every partition when its claims have run out. That it takes no more than a
// second after that is shown in virtual time (broker/claims), and with -kills.
func TestOneOfTwoBrokersDies(t *testing.T) {
	f := newPair(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc := f.plain()
	f.p.Reach(ctx, f.p.begin(ctx, "before", onceLoads(12))/3)
	killed := time.Now()
	f.one.Kill()
	for partition := range partitions {
		poll.Until(t, patience, fmt.Sprintf("broker two serves partition %d", partition), func() bool { return f.serves(nc, "two", partition) })
	}
	took := time.Since(killed)
	if limit := shortTTL + looseLimit; took > limit {
		t.Errorf("all partitions are served %v after the kill, want at most %v", took, limit)
	}
	t.Logf("all partitions are served %v after the kill", took.Round(time.Millisecond))
	f.p.begin(ctx, "after", onceLoads(4))
	f.p.End()
	f.onlyOnce(16 * 3)
	f.p.nothingLost()
}

// A broker is stopped for longer than its claims last, under load, while the other one takes over, and goes on. Nothing
// forks, what must not run twice has run once, and a write that it had prepared is refused.
func TestStoppedBrokerGoesOn(t *testing.T) {
	f := newPair(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f.p.Reach(ctx, f.p.begin(ctx, "before", onceLoads(16))/3)
	f.one.Signal(syscall.SIGSTOP)
	prepared := f.believes(ctx)
	poll.Until(t, patience, "broker two owns all partitions", func() bool { return f.owners()["two"] == partitions })
	more := f.p.begin(ctx, "meanwhile", onceLoads(8))
	f.p.Reach(ctx, more/2)
	f.refused(ctx, prepared)

	f.p.begin(ctx, "again", onceLoads(8))
	f.one.Signal(syscall.SIGCONT)
	f.p.End()
	f.one.Alive()
	f.onlyOnce(32 * 3)
	// It has noticed, and takes its share again.
	poll.Until(t, patience, "broker one owns partitions again", func() bool { return f.owners()["one"] > 0 })
	if log, err := os.ReadFile(f.one.Log); err != nil || !bytes.Contains(log, []byte("claim lost")) {
		t.Errorf("the log of broker one does not say that its claims are lost: %v", err)
	}
	f.p.begin(ctx, "after", onceLoads(8))
	f.p.End()
	f.onlyOnce(40 * 3)
	f.p.nothingLost()
}

// A broker is stopped for longer than its claims last, and is asked meanwhile. When it goes on it answers nothing of what it remembers of
// partitions that are another's by now: what has happened there since has been acknowledged to others (P-16).
func TestStoppedBrokerAnswersNothingOld(t *testing.T) {
	const workflows, asked = 2, 10 // times each; a broker in two is asked
	f := newPair(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc := f.plain()
	var ones []string
	for n, id := range f.ids {
		if len(ones) < workflows && f.serves(nc, "one", n) {
			ones = append(ones, id)
		}
	}
	f.one.Signal(syscall.SIGSTOP)
	poll.Until(t, patience, "broker two owns all partitions", func() bool { return f.owners()["two"] == partitions })
	for _, id := range ones {
		if err := f.client.Run(id, "").Terminate(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	answers, err := nc.SubscribeSync(nc.NewInbox() + ".*")
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]string{} // what was asked and not answered, by where the answer goes
	for _, id := range ones {
		for i := range asked {
			to := strings.TrimSuffix(answers.Subject, "*") + fmt.Sprint(id, "-", i)
			open[to] = id
			if err := nc.PublishRequest(namespace.API("describe"), to, fmt.Appendf(nil, `{"workflowId":%q}`, id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	waited := 0
	for begun := false; len(open) > 0; {
		m, err := answers.NextMsg(time.Second)
		if errors.Is(err, nats.ErrTimeout) && !begun { // the others are the stopped broker's
			begun, waited = true, len(open)
			f.one.Signal(syscall.SIGCONT)
			continue
		}
		if err != nil {
			t.Fatalf("%v with %d of %d questions open: %v", err, len(open), len(ones)*asked, open)
		}
		var d schemas.DescribeResponse
		if err := json.Unmarshal(m.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Execution.Status != schemas.StatusTerminated {
			t.Errorf("workflow %s has ended, and is told of as %s by broker %q", open[m.Subject], m.Data, d.Owner)
		}
		delete(open, m.Subject)
	}
	if waited == 0 || len(ones) == 0 {
		t.Fatalf("of %d workflows of broker one %d questions came to it while it was stopped: want some of both", len(ones), waited)
	}
}

// believes notes where each history ends: what a broker that stands still believes.
func (f *pair) believes(ctx context.Context) (last [partitions]uint64) {
	f.t.Helper()
	for n := range last {
		var err error
		if last[n], err = natsconn.Of(f.client).StreamLastSeq(ctx, namespace.StreamHistory(n)); err != nil {
			f.t.Fatal(err)
		}
	}
	return last
}

// refused sends, for the partitions that have had a new owner since, the write that the former one would send.
func (f *pair) refused(ctx context.Context, prepared [partitions]uint64) {
	f.t.Helper()
	fenced := 0
	for n, last := range prepared {
		fence, err := natsconn.Of(f.client).LastBySubject(ctx, namespace.StreamHistory(n), namespace.Fence(n))
		if err != nil {
			f.t.Fatal(err)
		}
		if fence.Seq <= last {
			continue // it was broker two's all the time
		}
		fenced++
		body, err := schemas.Marshal(&schemas.Record{WorkflowID: f.ids[n], Run: "late"})
		if err != nil {
			f.t.Fatal(err)
		}
		h := natsconn.Header{}
		natsconn.ExpectLastSeq(h, last)
		_, err = natsconn.Of(f.client).PublishSync(ctx, namespace.History(n, f.ids[n], "late"), h, body)
		if !errors.Is(err, natsconn.ErrWrongSequence) {
			f.t.Errorf("partition %d: a write after sequence %d, which the fence %d follows: got %v, want it refused", n, last, fence.Seq, err)
		}
	}
	if fenced == 0 {
		f.t.Error("no partition has had a new owner")
	}
}

// onlyOnce checks the notes of the worker: so many activities have run, each of them once.
func (f *pair) onlyOnce(want int) {
	f.t.Helper()
	files, err := os.ReadDir(f.notes)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(files) != want {
		f.t.Errorf("%d activities have run, want %d", len(files), want)
	}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(f.notes, file.Name()))
		if err != nil {
			f.t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n != 1 {
			f.t.Errorf("activity %s is not idempotent and has run %d times:\n%s", file.Name(), n, b)
		}
	}
}
