package broker_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

var (
	manyOutcomes = flag.Int("outcomes", 160, "second outcomes: how many outcomes that do not count are stored while owners change")
	manyStops    = flag.Int("stops", 2, "second outcomes: how many owners are stopped meanwhile")
	manyKills    = flag.Int("kills", 2, "second outcomes: how many owners are killed meanwhile")
)

// Outcomes that were stored are each in exactly one place, the history or the dead letters, however many owners leave or die meanwhile: the one that counts,
// and those that come when the task is done. (E4)
func TestSecondOutcomes(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		o := &outcomes{fleet: f, told: map[string]bool{}, stored: map[string]bool{}, late: make(chan struct{})}
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.StartedID > 24:
				return complete
			case d.has("WorkflowStarted") || d.has("ActivitySuccess") || d.has("ActivityFailed"):
				return "[" + scheduleActivity(fmt.Sprint("a", d.StartedID), "") + "]"
			}
			return "[]"
		})
		living := []*node{o.begin(0), o.begin(1)}
		stop := make(chan struct{})
		var work, runs sync.WaitGroup
		for range 4 {
			work.Go(func() { o.work(stop) })
		}
		perRun := 4*secondsEach + 1
		next := make(chan int)
		for range 8 {
			runs.Go(func() {
				for i := range next {
					id := fmt.Sprint("w", i)
					f.start(`{"workflowId":"` + id + `","type":"order","run":"` + id + `","requestId":"` + id + `"}`)
					o.tell(ns.ActOutcome(subject.Partition("no"+id, 2), "no"+id, "main"), "no"+id+".5.1", o.unique())
					o.count(1)
					f.completes(id)
				}
			})
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for i := range (*manyOutcomes + perRun - 1) / perRun {
				next <- i
			}
			close(next)
			runs.Wait()
		}()

		r := rand.New(rand.NewPCG(4, 4))
		ends := slices.Concat(slices.Repeat([]string{"stop"}, *manyStops), slices.Repeat([]string{"kill"}, *manyKills))
		r.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		for i, end := range ends {
			f.until(time.Hour, func() bool { return o.seconds() >= (i+1)**manyOutcomes/(len(ends)+2) || isOver(over) })
			living = append(living, o.begin(i+2))
			n := r.IntN(2)
			select { // in the middle of something
			case <-o.late:
			case <-over:
			case <-time.After(time.Minute):
			}
			time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
			if end == "stop" {
				living[n].stop()
			} else {
				living[n].kill()
			}
			living = slices.Delete(living, n, n+1)
		}
		<-over
		close(stop)
		work.Wait()

		var places map[string]int
		f.until(10*time.Minute, func() bool {
			places = o.places()
			return len(places) == len(o.stored)
		})
		time.Sleep(time.Minute)
		places = o.places()
		none, two := 0, 0
		for mark := range o.stored {
			switch places[mark] {
			case 0:
				none++
			case 1:
			default:
				two++
			}
		}
		t.Logf("%d outcomes stored, %d of them second ones, under %d stops and %d kills: %d in no place, %d in more than one",
			len(o.stored), o.seconds(), *manyStops, *manyKills, none, two)
		if none+two > 0 || o.seconds() < *manyOutcomes {
			t.Errorf("%d of %d outcomes are in no place and %d in more than one; want all in one, and %d second ones", none, len(o.stored), two, *manyOutcomes)
		}
	})
}

// secondsEach is how many outcomes follow the first of a task.
const secondsEach = 4

// outcomes is a worker whose outcomes differ, each by a mark of its own.
type outcomes struct {
	*fleet

	mu     sync.Mutex
	last   int
	more   int             // second ones
	told   map[string]bool // tokens
	stored map[string]bool // marks
	slow   int
	late   chan struct{} // sent to when a letter, or a look into a history, takes its time
}

// begin starts a node, some of whose letters and looks into histories take a while.
func (o *outcomes) begin(i int) *node {
	n := o.node(fmt.Sprint("n", i), func(subj string, _ []byte) cutwire.Verdict {
		if !strings.HasPrefix(subj, "drover.default.dead.") && !strings.HasPrefix(subj, "$JS.API.DIRECT.GET.") {
			return cutwire.Pass
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.slow++; o.slow%3 != 0 {
			return cutwire.Pass
		}
		select {
		case o.late <- struct{}{}:
		default:
		}
		return cutwire.Late
	})
	n.wire.Delay(50 * time.Millisecond)
	return n
}

func isOver(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (o *outcomes) unique() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	return fmt.Sprintf("mark %d.", o.last)
}

func (o *outcomes) seconds() int { return o.count(0) }

func (o *outcomes) count(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.more += n
	return o.more
}

// work does the tasks of list main, each once: the first outcome goes to the owner or into the inbox, the others into the inbox.
func (o *outcomes) work(stop <-chan struct{}) {
	for !isOver(stop) {
		k := o.tryPull(time.Second)
		if k == nil {
			continue
		}
		o.mu.Lock()
		again := o.told[k.Token]
		o.told[k.Token] = true
		o.mu.Unlock()
		if !again {
			mark := o.unique()
			if strings.HasSuffix(mark, "3.") || !o.hands(k, mark) {
				o.tell(k.Report, k.Token, mark)
			}
			for range secondsEach {
				o.tell(k.Report, k.Token, o.unique())
			}
			o.count(secondsEach)
		}
		_ = k.msg.Ack() // a hint
	}
}

func outcomeOf(token, mark string) string {
	return `{"token":"` + token + `","kind":"success","result":"` + mark + `"}`
}

// tell puts an outcome into the inbox, and waits until it is there.
func (o *outcomes) tell(to, token, mark string) {
	o.publish(to, outcomeOf(token, mark))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored[mark] = true
}

// hands gives an outcome to the owner, and tells whether it is in the history.
func (o *outcomes) hands(k *task, mark string) bool {
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Second)
	defer cancel()
	m, err := o.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: direct(k.Beat), Data: []byte(outcomeOf(k.Token, mark))})
	if err != nil || !strings.Contains(string(m.Data), `"sequence"`) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stored[mark] = true
	return true
}

var aMark = regexp.MustCompile(`mark \d+\.`)

// places counts in how many events and dead letters each mark is.
func (o *outcomes) places() map[string]int {
	o.t.Helper()
	n := map[string]int{}
	note := func(body []byte) {
		if mark := aMark.Find(body); mark != nil {
			n[string(mark)]++
		}
	}
	for _, l := range o.letters() {
		note(l.Body)
	}
	for p := range o.partitions {
		err := o.post.Scan(o.t.Context(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(p)}}, func(s natsconn.Stored) error {
			var r schemas.Record
			if err := schemas.Unmarshal(s.Data, &r); err != nil {
				return err
			}
			for _, e := range r.Events {
				if a, ok := e.Attributes.(*schemas.ActivitySuccess); ok {
					note(a.Result)
				}
			}
			return nil
		})
		if err != nil {
			o.t.Fatal(err)
		}
	}
	return n
}
