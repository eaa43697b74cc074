package broker_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/schemas"
)

var (
	rereadSeeds = flag.Int("reread-seeds", 0, "how many random games, of minutes each, are played in memory, read anew, and taken over; 0 = a short one")
	rereadFrom  = flag.Uint64("reread-from", 50, "the first seed of these games")
)

// move is one thing that happens in a game.
type move struct {
	at   time.Duration
	kind string
	wid  string
	n    int // of a script, or which of the tasks in hand
}

// game is a script of what happens to workflows o and p, and to the children c and d.
type game struct {
	scripts [][]string // decisions, by the number in the name of a signal
	faults  []string   // how the decider fails at first, if it does
	moves   []move
	rest    time.Duration // after them
}

const (
	mostScripts = 24
	// How deciders fail.
	reports, livenessProbe = "error", "silence"
)

var gameIDs = []string{"o", "p", "c", "d"}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newGame(seed uint64) *game {
	r := rand.New(rand.NewPCG(seed, 7))
	g := &game{rest: 200 * time.Second}
	gaps, moves := []int{50, 300, 2000, 6000, 13000, 16000, 45000}, 30
	if *rereadSeeds == 0 {
		g.rest, gaps, moves = 6*time.Second, []int{50, 3000}, 7
	}
	for i := range mostScripts {
		var all []string
		for range r.IntN(3) {
			all = append(all, alone(r))
		}
		if all = append(all, alone(r)); r.IntN(2) == 0 {
			all[len(all)-1] = among(r, min(i+1+r.IntN(mostScripts), mostScripts))
		}
		if i > 2 && r.IntN(12) == 0 {
			all = append(all, pick(r, complete[1:len(complete)-1], `{"type":"ContinueAsNew","attributes":{}}`, `{"type":"FailWorkflow","attributes":{"reason":"r"}}`))
		}
		g.scripts = append(g.scripts, all)
		g.faults = append(g.faults, pick(r, "", "", "", "", "", "", reports, livenessProbe))
	}
	at := time.Duration(0)
	for range moves {
		at += time.Duration(pick(r, gaps...)+r.IntN(40)) * time.Millisecond
		m := move{at: at, wid: pick(r, "o", "o", "o", "p", "c", "d"), n: r.IntN(mostScripts)}
		m.kind = pick(r, "signal", "signal", "signal", "signal", "signal", "pull", "pull", "pull", "started", "started", "begin", "begin", "beat", "success", "failed", "failed", "canceled", "pause", "resume", "resume", "cancel", "deaf", "hear", "hear")
		g.moves = append(g.moves, m)
	}
	return g
}

// alone is a decision that nobody else has part in.
func alone(r *rand.Rand) string {
	option := func(name string, values ...string) string {
		if r.IntN(3) > 0 {
			return ""
		}
		return `,"` + name + `":` + pick(r, values...)
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		return scheduleActivity(pick(r, "a", "b", "e"), option("startDelay", "5", "40")+option("retry", `{"initialInterval":7,"maximumAttempts":3}`, `{"initialInterval":30}`)+
			option("heartbeatTimeout", "15", "50")+option("startToCloseTimeout", "20", "90")+option("scheduleToStartTimeout", "20", "70")+option("scheduleToCloseTimeout", "35", "200")+option("notIdempotent", "true"))
	case 4:
		return `{"type":"RequestCancelActivity","attributes":{"activityId":"` + pick(r, "a", "b", "e") + `"}}`
	case 5, 6:
		return fmt.Sprintf(`{"type":"ScheduleTimer","attributes":{"timerId":"%s","startToFireTimeout":%d}}`, pick(r, "t", "u"), pick(r, 1, 14, 33, 120))
	case 7:
		return `{"type":"CancelTimer","attributes":{"timerId":"` + pick(r, "t", "u") + `"}}`
	}
	return pick(r, `{"type":"RecordMarker","attributes":{"markerName":"m"}}`, `{"type":"SetAttributes","attributes":{"attributes":{"x":"1"}}}`,
		`{"type":"SetReplayPoint","attributes":{"name":"r"}}`, `{"type":"SetRetention","attributes":{"retention":"1d"}}`)
}

// among is one that others answer. What it causes with others is the script next, which is a later one: none goes on for ever.
func among(r *rand.Rand, next int) string {
	wid := pick(r, "o", "p", "c", "d", "nobody")
	switch r.IntN(7) {
	case 0:
		return fmt.Sprintf(`{"type":"StartChild","attributes":{"workflowId":"%s","workflowType":"order","input":%d,"childPolicy":"%s","executionStartToCloseTimeout":%d}}`, pick(r, "c", "d", "p"), next, pick(r, "TERMINATE", "REQUEST_CANCEL", "ABANDON"), pick(r, 25, 300, 3000))
	case 1, 2:
		return fmt.Sprintf(`{"type":"SignalExternal","attributes":{"workflowId":"%s","signalName":"s%d"}}`, wid, next)
	case 3:
		return `{"type":"CancelExternal","attributes":{"workflowId":"` + wid + `"}}`
	case 4:
		return acquire(pick(r, "L", "M"), pick(r, ``, `,"lease":30`))
	case 5:
		return release(pick(r, "L", "M"), "")
	}
	return pick(r, stateDecision("GetState", "k", ""), stateDecision("SetState", "k", `,"value":1`), stateDecision("SetState", "k", `,"value":2,"require":1`), stateDecision("ClearState", "k", ""))
}

var signalName = regexp.MustCompile(`^s(\d+)$`)

// decide plays the decider of all workflows.
func (g *game) decide(f *fleet) func(*nats.Msg) {
	return func(m *nats.Msg) {
		var d decisionTask
		if err := json.Unmarshal(m.Data, &d); err != nil {
			f.t.Errorf("decision task %s: %v", m.Data, err)
			return
		}
		time.Sleep(5 * time.Millisecond) // what others have been asked comes first
		decisions := []string{}
		for _, e := range d.Events {
			n := -1
			switch e.Type {
			case "Signal":
				if name, _ := e.Attributes["signalName"].(string); signalName.MatchString(name) {
					_, _ = fmt.Sscanf(name, "s%d", &n)
				}
			case "WorkflowStarted":
				if v, ok := e.Attributes["input"].(float64); ok {
					n = int(v)
				}
			}
			if n < 0 || n >= mostScripts {
				continue
			}
			if d.Attempt == 1 {
				switch g.faults[n] {
				case reports:
					_ = m.Respond([]byte(`{"token":"` + d.Token + `","error":{"cause":"DECIDER_ERROR","reason":"no"}}`))
					return
				case livenessProbe:
					return
				}
			}
			decisions = append(decisions, g.scripts[n]...)
		}
		if d.Attempt > 4 {
			decisions = nil // they did not stand beside each other
		}
		_ = m.Respond([]byte(`{"token":"` + d.Token + `","decisions":[` + strings.Join(decisions, ",") + `]}`))
	}
}

// outcome is what a game has come to.
type outcome struct {
	events map[string][]string // by workflow id
	times  map[string][]schemas.Timestamp
	dead   []string
	tasks  uint64 // that were put on the list
	inbox  uint64 // messages
}

// play plays a game. rest is called between moves, with the time until the next one.
func (g *game) play(f *fleet, rest func(time.Duration)) (o outcome) {
	f.t.Helper()
	listen := func() *nats.Subscription {
		sub, err := f.nc.QueueSubscribe(ns.Decide("order"), "deciders", g.decide(f))
		if err != nil {
			f.t.Fatal(err)
		}
		f.request0(ns.Announce("order")) // who waits for a decider asks at once
		return sub
	}
	sub := listen()
	f.start(`{"workflowId":"o","type":"order","run":"ro"}`)
	f.start(`{"workflowId":"p","type":"order","run":"rp","executionStartToCloseTimeout":600}`)
	began := time.Now()
	var hand []*task
	known := map[string]bool{}
	for i, m := range g.moves {
		if d := time.Until(began.Add(m.at)); d > 0 {
			rest(d)
		}
		var t *task
		if len(hand) > 0 {
			t = hand[m.n%len(hand)]
		}
		switch m.kind {
		case "signal":
			f.publish(fmt.Sprintf("drover.default.signal.%s.s%d", m.wid, m.n), "")
		case "pause", "resume", "cancel":
			if a := f.api(m.kind, fmt.Sprintf(`{"workflowId":"%s","requestId":"q%d"}`, m.wid, i)); a == nil {
				f.t.Fatal("no answer")
			}
		case "deaf":
			if sub != nil {
				_ = sub.Unsubscribe()
				f.flush()
				sub = nil
			}
		case "hear":
			if sub == nil {
				sub = listen()
			}
		case "pull":
			for {
				k := f.tryPull(time.Millisecond)
				if k == nil || !known[k.Token] {
					if k != nil {
						known[k.Token] = true
						hand = append(hand, k)
					}
					break
				}
			}
		case "beat":
			if t != nil {
				f.tryRequest(t.Beat, `{"token":"`+t.Token+`","details":"`+fmt.Sprint(i)+`"}`)
			}
		case "begin":
			if t != nil {
				if p := t.begin(fmt.Sprint("n", i)); p.Go && p.Token != "" {
					t.Token = p.Token
				}
			}
		case "started":
			if t != nil {
				t.report("started", "")
			}
		case "success", "failed", "canceled":
			if t != nil {
				t.report(m.kind, `,"reason":"r"`)
				_ = t.msg.Ack()
				hand = slices.DeleteFunc(hand, func(k *task) bool { return k == t })
			}
		}
	}
	rest(g.rest)
	return g.collect(f, began)
}

var ulid = regexp.MustCompile(`[0-7][0-9A-HJKMNP-TV-Z]{25}`)

func (g *game) collect(f *fleet, began time.Time) (o outcome) {
	o.events, o.times = map[string][]string{}, map[string][]schemas.Timestamp{}
	names := map[string]string{}
	plain := func(s string) string {
		return ulid.ReplaceAllStringFunc(s, func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprint("run", len(names))
			}
			return names[id]
		})
	}
	byID := map[string][]schemas.Event{}
	runOf := map[string][]string{}
	for _, r := range f.records(0) {
		for _, e := range r.Events {
			byID[r.WorkflowID] = append(byID[r.WorkflowID], e)
			runOf[r.WorkflowID] = append(runOf[r.WorkflowID], r.Run)
		}
	}
	for _, wid := range gameIDs {
		for i, e := range byID[wid] {
			body, err := json.Marshal(e.Attributes)
			if err != nil {
				f.t.Fatal(err)
			}
			var m map[string]any
			_ = json.Unmarshal(body, &m)
			for _, k := range []string{"replyDigest", "nextTime", "taskSequence", "revision", "details", "expires"} {
				delete(m, k)
			}
			body, _ = json.Marshal(m)
			o.events[wid] = append(o.events[wid], fmt.Sprintf("%s %d %s %s", plain(runOf[wid][i]), e.ID, e.Type(), plain(string(body))))
			o.times[wid] = append(o.times[wid], e.Time.Add(schemas.Duration(-began.UnixNano())))
		}
	}
	o.dead = f.dead()
	slices.Sort(o.dead)
	_, o.inbox, _ = f.post.StreamState(f.t.Context(), ns.StreamIn(0))
	_, o.tasks, _ = f.post.StreamState(f.t.Context(), ns.StreamTasks("main")) // there may be none
	return o
}

// differs tells how two outcomes differ.
func (o outcome) differs(other outcome, late time.Duration) (all []string) {
	for _, wid := range gameIDs {
		a, b := o.events[wid], other.events[wid]
		for i := range max(len(a), len(b)) {
			switch {
			case i >= len(a):
				all = append(all, fmt.Sprintf("%s: more with the other: %v %s", wid, time.Duration(other.times[wid][i]), b[i]))
			case i >= len(b):
				all = append(all, fmt.Sprintf("%s: more with the one: %v %s", wid, time.Duration(o.times[wid][i]), a[i]))
			case a[i] != b[i]:
				all = append(all, fmt.Sprintf("%s:\n  %v %s\n  %v %s", wid, time.Duration(o.times[wid][i]), a[i], time.Duration(other.times[wid][i]), b[i]))
			case max(o.times[wid][i]-other.times[wid][i], other.times[wid][i]-o.times[wid][i]) > schemas.Timestamp(late):
				all = append(all, fmt.Sprintf("%s: at %v and %v: %s", wid, time.Duration(o.times[wid][i]), time.Duration(other.times[wid][i]), a[i]))
			default:
				continue
			}
			break
		}
	}
	if a, b := fmt.Sprint(o.tasks, o.dead, o.inbox), fmt.Sprint(other.tasks, other.dead, other.inbox); a != b {
		all = append(all, fmt.Sprintf("tasks, dead letters, inbox: %s and %s", a, b))
	}
	return all
}

// What happens to a run does not depend on whether it stays in memory: the same game is played with runs that never leave it, and with runs
// that are parked and read again as often as possible, record by record.
func TestReadAnewIsTheSame(t *testing.T) { // P-2, P-10
	playBoth(t, func(*game) {}, (*game).readAnew, time.Second, func(kept, anew *outcome) {})
}

// Nor on who owns it: a new owner may put tasks on their lists again and repeat messages, and be late. It counts heartbeats anew.
func TestTakeoverIsTheSame(t *testing.T) { // P-1
	timeout := regexp.MustCompile(`,"heartbeatTimeout":[0-9]+`)
	playBoth(t, func(g *game) {
		for i := range g.scripts {
			for j, d := range g.scripts[i] {
				g.scripts[i][j] = timeout.ReplaceAllString(d, "")
			}
			if g.faults[i] == livenessProbe {
				g.faults[i] = "" // whoever leaves waits for it
			}
		}
	}, (*game).takenOver, 5*time.Second, func(kept, anew *outcome) {
		kept.inbox, anew.inbox, kept.tasks, anew.tasks = 0, 0, 0, 0
	})
}

func playBoth(t *testing.T, change func(*game), anew func(*game, *testing.T) outcome, late time.Duration, forgive func(kept, anew *outcome)) {
	defer broker.ReadRecordsByThemselves()()
	for seed := *rereadFrom; seed < *rereadFrom+uint64(max(*rereadSeeds, 1)); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGame(seed)
			change(g)
			var some, others []outcome
			var diff []string
			// Which of two messages comes first that are sent at one instant is not determined, so two of several games must be the same.
			for try := 0; try < 4 && (try == 0 || len(diff) > 0); try++ {
				a, b := g.inMemory(t), anew(g, t)
				forgive(&a, &b)
				some, others = append(some, a), append(others, b)
				diff = nearest(some, others, late)
			}
			if len(diff) > 0 {
				t.Errorf("in memory, and read anew:\n%s\nthe game:\n%s", strings.Join(diff, "\n"), g)
			}
		})
	}
}

func (g *game) String() string {
	var b strings.Builder
	for _, m := range g.moves {
		fmt.Fprintf(&b, "%v %s %s %d\n", m.at, m.kind, m.wid, m.n)
	}
	for i := range g.scripts {
		fmt.Fprintf(&b, "s%d %s %s\n", i, g.faults[i], g.scripts[i])
	}
	return b.String()
}

// nearest tells how those two outcomes differ that differ least.
func nearest(some, others []outcome, late time.Duration) (least []string) {
	for i, a := range some {
		for k, b := range others {
			if d := a.differs(b, late); i+k == 0 || len(d) < len(least) {
				least = d
			}
		}
	}
	return least
}

func (g *game) inMemory(t *testing.T) (o outcome) {
	virtually(t, 1, func(_ *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CheckpointEvery = 24 * time.Hour }) // no tick, no parking
		o = g.play(f, time.Sleep)
	})
	return o
}

func (g *game) readAnew(t *testing.T) (o outcome) {
	virtually(t, 1, func(_ *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns, o.SnapshotEvents = 1, 20 })
		o = g.play(f, func(d time.Duration) {
			const parks = 2500 * time.Millisecond
			for ; d > parks; d -= parks {
				time.Sleep(parks)
				for _, wid := range gameIDs {
					f.api("describe", `{"workflowId":"`+wid+`"}`)
					f.api("why", `{"workflowId":"`+wid+`"}`)
					f.audited(wid)
				}
			}
			time.Sleep(d)
		})
	})
	return o
}

func (g *game) takenOver(t *testing.T) (o outcome) {
	virtually(t, 1, func(_ *testing.T, f *fleet) {
		n, owners := f.node("a", nil), 1
		o = g.play(f, func(d time.Duration) {
			end := time.Now().Add(d)
			if d > 100*time.Millisecond {
				time.Sleep(d / 3)
				n.stop()
				n = f.node(fmt.Sprint("a", owners), nil, func(o *broker.Options) { o.SnapshotEvents = 20 })
				owners++
			}
			time.Sleep(time.Until(end))
		})
	})
	return o
}
