package claims_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
)

var fenceSeeds = flag.Int("fence-seeds", 6, "how many random struggles for a claim are judged by the model")

// What holders do. An answer may be unknown: then it may happen at any time after the call, or never.
type (
	took   struct{} // a claim; the number comes with the outcome
	fences struct{ number uint64 }
	writes struct{ number uint64 }
)

type outcome struct {
	number  uint64 // of a claim that was taken
	ok      bool
	unknown bool
}

// resource is what the model knows of a claim and of the history that it guards.
type resource struct {
	taken  uint64 // the highest number that was ever given out
	fenced uint64 // the number of the last fence: only its holder can write
}

// lockModel is a lock with fencing (I9). Numbers strictly grow; a fence never goes back; a write is stored only while the
// fence is the writer's own. So the intervals in which two holders write never overlap, however wrong their clocks are.
var lockModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{resource{}} },
	Step: func(state, input, output any) []any {
		s, out := state.(resource), output.(outcome)
		var then []any
		switch in := input.(type) {
		case took:
			if out.ok && out.number > s.taken {
				then = append(then, resource{taken: out.number, fenced: s.fenced})
			}
		case fences:
			if (out.ok || out.unknown) && in.number >= s.fenced {
				then = append(then, resource{taken: s.taken, fenced: in.number})
			}
			if !out.ok {
				then = append(then, s)
			}
		case writes:
			if !out.ok || s.fenced == in.number {
				then = append(then, s)
			}
		}
		return then
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%T%+v -> %+v", in, in, out) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}

// trace records operations in the order in which they were called and returned: in virtual time many bear one instant.
type trace struct {
	tick atomic.Int64
	mu   sync.Mutex
	all  []porcupine.Operation
}

func (tr *trace) do(client int, in any, f func() outcome) outcome {
	call := tr.tick.Add(1)
	out := f()
	end := tr.tick.Add(1)
	if out.unknown {
		end = math.MaxInt64
	}
	if _, isTook := in.(took); isTook && !out.ok {
		return out // it changes nothing
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.all = append(tr.all, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
	return out
}

func judge(all []porcupine.Operation) porcupine.CheckResult {
	model := lockModel.ToModel()
	return porcupine.CheckOperationsTimeout(model, all, time.Minute)
}

// The model is worth nothing if it takes everything.
func TestLockModelRefuses(t *testing.T) { // I9
	yes := outcome{ok: true}
	type op struct {
		in        any
		out       outcome
		call, end int64
	}
	for _, tt := range []struct {
		name string
		ops  []op
		want porcupine.CheckResult
	}{
		{"one after the other", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {fences{3}, yes, 3, 4}, {writes{3}, yes, 5, 6}, {took{}, outcome{ok: true, number: 7}, 7, 8}, {fences{7}, yes, 9, 10}, {writes{3}, outcome{}, 11, 12}, {writes{7}, yes, 13, 14}}, porcupine.Ok},
		{"a zombie writes before the fence", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {fences{3}, yes, 3, 4}, {took{}, outcome{ok: true, number: 7}, 5, 6}, {writes{3}, yes, 7, 8}, {fences{7}, yes, 9, 10}}, porcupine.Ok},
		{"a zombie writes after the fence", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {fences{3}, yes, 3, 4}, {took{}, outcome{ok: true, number: 7}, 5, 6}, {fences{7}, yes, 7, 8}, {writes{3}, yes, 9, 10}}, porcupine.Illegal},
		{"a zombie's write may be as old as its call", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {fences{3}, yes, 3, 4}, {fences{7}, yes, 6, 7}, {writes{3}, yes, 5, 8}}, porcupine.Ok},
		{"a number twice", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {took{}, outcome{ok: true, number: 3}, 3, 4}}, porcupine.Illegal},
		{"a number falls", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {took{}, outcome{ok: true, number: 2}, 3, 4}}, porcupine.Illegal},
		{"an older claim fences a newer one", []op{{fences{7}, yes, 1, 2}, {fences{3}, yes, 3, 4}}, porcupine.Illegal},
		{"an unknown fence may have been stored", []op{{fences{3}, yes, 1, 2}, {fences{7}, outcome{unknown: true}, 3, math.MaxInt64}, {writes{7}, yes, 5, 6}}, porcupine.Ok},
		{"or not", []op{{fences{3}, yes, 1, 2}, {fences{7}, outcome{unknown: true}, 3, math.MaxInt64}, {writes{3}, yes, 5, 6}}, porcupine.Ok},
		{"but not both ways", []op{{fences{3}, yes, 1, 2}, {fences{7}, outcome{unknown: true}, 3, math.MaxInt64}, {writes{7}, yes, 5, 6}, {writes{3}, yes, 7, 8}}, porcupine.Illegal},
		{"a write without a fence", []op{{took{}, outcome{ok: true, number: 3}, 1, 2}, {writes{3}, yes, 3, 4}}, porcupine.Illegal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var all []porcupine.Operation
			for i, o := range tt.ops {
				all = append(all, porcupine.Operation{ClientId: i, Input: o.in, Output: o.out, Call: o.call, Return: o.end})
			}
			if got := judge(all); got != tt.want {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
		})
	}
}

const history = subject.Namespace("default")

// rival is one process that wants the claim and writes the history under it. A write asks the lease first, as P-16 wants,
// but may be held up for longer than the lease lasts before it is sent: a process that is stopped there and goes on.
type rival struct {
	*claims.Claims
	id     int
	trace  *trace
	conn   *natsconn.Conn
	wire   *cutwire.Wire
	random *rand.Rand
	mu     *sync.Mutex // guards random
	stored *atomic.Int64
	late   *atomic.Int64 // writes of a lease that was over when they were sent, and were refused
}

func (r *rival) pick(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

func (r *rival) run(ctx context.Context, until time.Time) {
	for time.Now().Before(until) && ctx.Err() == nil {
		var l *claims.Lease
		out := r.trace.do(r.id, took{}, func() outcome {
			got, err := r.TryAcquire(ctx, key)
			if err != nil {
				return outcome{}
			}
			l = got
			return outcome{ok: true, number: got.Number()}
		})
		if !out.ok {
			time.Sleep(time.Duration(100+r.pick(900)) * time.Millisecond)
			continue
		}
		r.hold(ctx, l, until)
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = l.Release(free) // the wire may be cut
		cancel()
		time.Sleep(time.Duration(r.pick(2000)) * time.Millisecond)
	}
}

// hold fences the history and writes to it, with the sequences that it predicts, until a write is refused or the lease is
// over. A refused write of a lease that lives is fenced again, as a broker does.
func (r *rival) hold(ctx context.Context, l *claims.Lease, until time.Time) {
	for n := 0; l.Valid() && n < 3 && time.Now().Before(until); n++ {
		var at uint64
		if !r.trace.do(r.id, fences{l.Number()}, func() (out outcome) {
			at, out = r.sent(func(ctx context.Context) (uint64, error) {
				return handover.Fence(ctx, r.conn, history, 0, l.Number(), r.Node())
			})
			return out
		}).ok {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for range 1 + r.pick(8) {
			if !l.Valid() {
				return
			}
			if r.pick(4) == 0 { // stopped between the look and the sending
				time.Sleep(time.Duration(r.pick(25)) * time.Second)
			}
			over := !l.Valid()
			out := r.trace.do(r.id, writes{l.Number()}, func() (out outcome) {
				_, out = r.sent(func(ctx context.Context) (uint64, error) {
					h := natsconn.Header{}
					natsconn.ExpectLastSeq(h, at)
					return r.conn.PublishSync(ctx, history.History(0, "w", "r"), h, []byte("x"))
				})
				return out
			})
			if !out.ok {
				if over && !out.unknown {
					r.late.Add(1)
				}
				break
			}
			r.stored.Add(1)
			at++
			time.Sleep(time.Duration(r.pick(3000)) * time.Millisecond)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (r *rival) sent(f func(context.Context) (uint64, error)) (uint64, outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	seq, err := f(ctx)
	unknown := errors.Is(err, natsconn.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
	return seq, outcome{ok: err == nil, unknown: unknown}
}

// Several holders fight for a claim while acknowledgements are lost, what they send is lost, late or doubled, processes
// stand still for longer than the claim lasts, and a hostile client deletes, overwrites, purges and rolls up the bucket.
// The model finds no order of the operations in which two of them write at a time.
func TestClaimsUnderTheModel(t *testing.T) { // I9, P-2, P-16
	var stored, late atomic.Int64
	operations, ran := 0, 0
	for seed := range *fenceSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				operations += struggle(t, s, uint64(seed), &stored, &late)
				ran++
			})
		})
	}
	t.Logf("%d operations, %d writes stored, %d writes of zombies refused", operations, stored.Load(), late.Load())
	if ran < *fenceSeeds {
		return // a sample may have neither
	}
	if stored.Load() == 0 || late.Load() == 0 && struggleFor > time.Minute {
		t.Fatalf("%d writes were stored and %d writes of zombies refused: want some of both", stored.Load(), late.Load())
	}
}

func struggle(t *testing.T, s *embedded.Server, seed uint64, stored, late *atomic.Int64) int {
	admin := embeddedtest.Connect(t, s)
	if _, err := admin.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{
		Name: history.StreamHistory(0), Subjects: []string{"drover.default.history.0.>"}, Storage: jetstream.MemoryStorage,
	}); err != nil {
		t.Fatal(err)
	}
	tr, random, mu := &trace{}, rand.New(rand.NewPCG(seed, 9)), &sync.Mutex{}
	until := time.Now().Add(struggleFor)
	var wg sync.WaitGroup
	for i := range 4 {
		w := cutwire.New(s.Conn())
		w.Delay(time.Duration(1+i) * 4 * time.Second)
		r := &rival{id: i, trace: tr, conn: embeddedtest.Through(t, w), wire: w, random: random, mu: mu, stored: stored, late: late}
		var err error
		if r.Claims, err = claims.Open(r.conn, bucket, claims.Options{Node: fmt.Sprintf("n%d", i)}); err != nil {
			t.Fatal(err)
		}
		w.Judge(r.unlucky)
		wg.Go(func() { r.run(t.Context(), until) })
	}
	hostile(t, admin, random, mu, until)
	wg.Wait()
	if got := judge(tr.all); got != porcupine.Ok {
		t.Errorf("seed %d: the model says %v to %d operations", seed, got, len(tr.all))
		for _, o := range tr.all {
			t.Logf("%d..%d n%d %T%+v %+v", o.Call, o.Return, o.ClientId, o.Input, o.Input, o.Output)
		}
	}
	return len(tr.all)
}

// unlucky is what the network makes of one message in eight.
func (r *rival) unlucky(subj string, _ []byte) cutwire.Verdict {
	if strings.HasPrefix(subj, "$JS.API.STREAM") {
		return cutwire.Pass
	}
	switch r.pick(32) {
	case 0:
		return cutwire.Unanswered
	case 1:
		return cutwire.Swallow
	case 2:
		return cutwire.Late
	case 3:
		return cutwire.Twice
	}
	return cutwire.Pass
}

// hostile tampers with the bucket, every ten seconds or so, with all the rights of a broker.
func hostile(t *testing.T, c *natsconn.Conn, random *rand.Rand, mu *sync.Mutex, until time.Time) {
	pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	for time.Now().Before(until) {
		time.Sleep(time.Duration(5+pick(15)) * time.Second)
		var err error
		switch pick(5) {
		case 0:
			err = c.Publish("$KV."+bucket+"."+key, natsconn.Header{"KV-Operation": {"DEL"}}, nil)
		case 1:
			err = c.Publish("$KV."+bucket+"."+key, nil, []byte(`{"node":"evil","nonce":"e","ttl":10}`))
		case 2:
			err = c.Publish("$KV."+bucket+"."+key, nil, []byte("mine"))
		case 3:
			err = c.Publish("$KV."+bucket+".x", natsconn.Header{"Nats-Rollup": {"all"}}, nil)
		case 4:
			err = c.PurgeSubject(t.Context(), "KV_"+bucket, "$KV."+bucket+".>")
		}
		if err != nil {
			t.Errorf("the hostile client: %v", err)
		}
	}
}
