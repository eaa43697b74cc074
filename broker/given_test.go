package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/namespaces"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops/permissions"
	"github.com/droverhq/drover/schemas"
)

// target is a subject that somebody of Drover hears, or a stream takes, and a body that does
// something there: to run r1 of workflow o, of type order, with a task of list main. %s stands for
// the token of that.
type target struct{ subject, body string }

func targets(run, token string) []target {
	q := `{"workflowId":"o","run":"` + run + `","reason":"forged"}`
	report := `{"token":"` + token + `","kind":"success","result":"forged"}`
	all := []target{
		{ns.API("start"), `{"workflowId":"forged","type":"order"}`},
		{ns.API("signal"), `{"workflowId":"o","name":"forged"}`},
		{ns.API("replay"), `{"workflowId":"ended","again":true}`},
		{ns.API("replayForce"), `{"workflowId":"ended","again":true}`},
		{ns.API("breakLock"), `{"workflowId":"o","lock":"L","scope":""}`},
		{ns.API("typeRegister"), `{"kind":"workflow","name":"forged"}`},
		{ns.API("typeDeprecate"), `{"kind":"workflow","name":"order"}`},
		{ns.API("tasklist"), `{"list":"forged"}`},
		{ns.API("upload"), `{"size":300000}`},
		{ns.Owner(0), q},
		{ns.Fire(0), `{"rings":[{"workflowId":"o","run":"` + run + `","due":1,"sequence":1,"fence":1}]}`},
		{ns.Beat(0, "o", "main"), `{"token":"` + token + `"}`},
		{ns.Outcome(0, "o", "main"), report},
		{ns.Announce("order"), `{"left":"w"}`},
		{ns.ActOutcome(0, "o", "main"), report},
		{ns.Signal("o", "forged"), `"forged"`},
		{ns.Offer("other"), strings.ReplaceAll(offered, "TOKEN", token)},
		{ns.Decide("spare"), `{"token":"x","type":"spare","workflowId":"o","run":"r1","startedId":3,"events":[{"id":1,"type":"Signal","time":"2026-01-01T00:00:00Z","attributes":{"signalName":"s"}},{"id":2,"type":"Signal","time":"2026-01-01T00:00:00Z","attributes":{"signalName":"s"}},{"id":3,"type":"Signal","time":"2026-01-01T00:00:00Z","attributes":{"signalName":"s"}}],"attempt":1}`},
		{ns.Control("other-1"), `{"kind":"drain"}`},
		{ns.Owned(0), `{}`},
		{schemas.NamespaceSubject("create"), `{"name":"forged"}`},
		{schemas.NamespaceSubject("delete"), `{"name":"second","force":true}`},
	}
	for _, verb := range []string{"terminate", "cancel", "pause", "resume", "repair"} {
		all = append(all, target{ns.API(verb), q})
	}
	for _, kind := range []string{"terminate", "cancel", "pause", "resume", "start", "alarm", "child", "signal", "external", "breakLock"} {
		all = append(all, target{ns.In(0, "o", kind), q})
	}
	return all
}

const offered = `{"namespace":"default","workflowId":"o","run":"r1","workflowType":"order","activityId":"a","type":"work","list":"other","attempt":1,"scheduledEventId":5,` +
	`"idempotencyKey":"k","token":"TOKEN","fence":1,"report":"drover.default.in.0.o.act.other","beat":"drover.default.beat.0.o.other"}`

// E3: NATS lets every user name any reply subject, and the server publishes what it gives out there
// by its own right. No role gains anything by that: what a consumer has delivered, what stands in a
// stream, an acknowledgement or another answer of the server is no request, no signal, no outcome,
// no offer and no question, wherever it comes.
func TestWhatTheServerGivesOutIsNoRequest(t *testing.T) {
	for _, role := range permissions.Roles() {
		t.Run(string(role), func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) { testGivenOut(t, role) })
		})
	}
}

func testGivenOut(t *testing.T, role permissions.Role) {
	o := permissions.Options{Role: role}
	if role == permissions.Activity {
		o.Lists = []string{"main"}
	}
	template, err := permissions.For(o)
	if err != nil {
		t.Fatal(err)
	}
	p := template.Permissions()
	f := newFleet(t)
	f.door = embeddedtest.StartOpen(t, embeddedtest.User{Name: "mallory", Publish: p.Publish.Allow, Subscribe: p.Subscribe.Allow})
	f.play(true, 1, func(t *testing.T, f *fleet) {
		v := f.victims()
		m := &mallory{fleet: f, conn: embeddedtest.As(t, f.door, "mallory"), may: p.Publish.Allow, victims: v}
		before := f.standing()
		for _, tt := range targets(v.run, v.token) {
			if m.allowed(tt.subject) {
				continue // it may do so anyway
			}
			m.attack(tt)
			if after := f.standing(); after != before {
				t.Errorf("%s: what stands has changed (-before +after):\n%s", tt.subject, cmp.Diff(before, after))
				before = after
			}
		}
		v.check(t)
	})
}

// victims are whom the attacks are on: a run that waits, with a task on its list, workers of
// others, and the service for namespaces.
type victims struct {
	run, token string
	stopped    chan error // of the workers
	worked     chan string
}

func (f *fleet) victims() *victims {
	f.t.Helper()
	f.node("a", nil)
	ctx, cancel := context.WithCancel(context.Background())
	f.t.Cleanup(cancel)
	v := &victims{stopped: make(chan error, 9), worked: make(chan string, 99)}
	worker := f.dial(f)
	f.t.Cleanup(worker.Close)
	w := activity.New(worker, &activity.Options{Lists: []string{"other"}, Identity: "other-1"})
	activity.Register(w, "work", func(context.Context, schemas.Payload) (string, error) { v.worked <- "activity"; return "", nil })
	d := decider.New(worker, nil)
	d.Register("spare", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		v.worked <- "decider"
		return nil, nil
	}))
	for _, serve := range []func() error{
		func() error { return w.Run(ctx) }, func() error { return d.Run(ctx) },
		func() error { return namespaces.Serve(ctx, worker, namespaces.ServeOptions{Memory: true}) },
	} {
		go func() { v.stopped <- serve() }()
	}
	if _, err := topology.Ensure(f.t.Context(), f.post, topology.Options{Namespace: "second", Memory: true, Partitions: 1}); err != nil {
		f.t.Fatal(err)
	}
	for _, bucket := range []string{ns.BucketState(), ns.BucketFlows()} {
		_, err := f.js.CreateKeyValue(f.t.Context(), jetstream.KeyValueConfig{Bucket: bucket, Storage: jetstream.MemoryStorage})
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			f.t.Fatal(err)
		}
	}
	f.decider("order", one(""))
	f.decider("quick", func(*decisionTask) string { return complete })
	f.start(`{"workflowId":"ended","type":"quick","run":"r0"}`)
	f.completes("ended")
	f.start(startO)
	k := f.pull()
	v.run, v.token = f.lastRun("o"), k.Token
	if err := k.msg.Nak(); err != nil {
		f.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	return v
}

func (v *victims) check(t *testing.T) {
	t.Helper()
	select {
	case err := <-v.stopped:
		t.Errorf("a worker or a service has ended: %v", err)
	case who := <-v.worked:
		t.Errorf("the %s has worked", who)
	default:
	}
}

// mallory is a user with the rights of a role.
type mallory struct {
	*fleet
	*victims
	conn *natsconn.Conn
	may  []string
}

func (m *mallory) allowed(subj string) bool {
	return slices.ContainsFunc(m.may, func(a string) bool { return permissions.Covers(a, subj) })
}

// ask publishes what the role may, with the target as its reply subject.
//
// Where the server has nothing to give out its answer has a status and no body. It takes the status
// off before a stream stores that, so that nothing tells it from an empty signal that somebody has
// published: see "Those who are not trusted" in docs/run/use-the-nats-you-have.md.
func (m *mallory) ask(subj, body string, tt target, mayBeEmpty ...bool) {
	m.t.Helper()
	if !m.allowed(subj) || len(mayBeEmpty) > 0 && strings.HasPrefix(tt.subject, "drover.default.signal.") {
		return
	}
	if err := m.conn.NATS().PublishMsg(&nats.Msg{Subject: subj, Reply: tt.subject, Data: []byte(body)}); err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	if err := m.conn.NATS().FlushWithContext(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// attack has the server publish to a target in every way that there is.
func (m *mallory) attack(tt target) {
	m.t.Helper()
	for _, bucket := range []string{ns.BucketState(), ns.BucketFlows(), ns.BucketClaims()} { // what others have written there, with any header
		stream, subj := "KV_"+bucket, "$KV."+bucket+".forged"
		if bucket != ns.BucketClaims() {
			verb := tt.subject[strings.LastIndexByte(tt.subject, '.')+1:]
			if tt.subject == ns.Owner(0) {
				verb = "terminate"
			}
			if _, err := m.js.PublishMsg(m.t.Context(), &nats.Msg{Subject: subj, Header: nats.Header{
				"Drover-Verb": {verb}, natsconn.HeaderSubject: {tt.subject}, "Drover-Reply": {"_INBOX.x"}, "Drover-Lenient": {"1"},
			}, Data: []byte(tt.body)}); err != nil {
				m.t.Fatal(err)
			}
		}
		m.ask("$JS.API.STREAM.INFO."+stream, "", tt)
		m.ask("$JS.API.STREAM.MSG.GET."+stream, `{"last_by_subj":"`+subj+`"}`, tt)
		if bucket != ns.BucketClaims() {
			m.ask("$JS.API.DIRECT.GET."+stream, `{"last_by_subj":"`+subj+`"}`, tt)
		}
		m.ask("$JS.API.DIRECT.GET."+stream, `{"last_by_subj":"nothing"}`, tt, true)
	}
	m.ask("$JS.API.INFO", ``, tt)
	m.ask(ns.Signal("nobody", "x"), tt.body, tt) // acknowledged
	m.ask(ns.API("describe"), `{"workflowId":"o"}`, tt)
	tasks := ns.StreamTasks("main")
	m.ask("$JS.API.CONSUMER.MSG.NEXT."+tasks+".workers", `{"batch":1,"no_wait":true}`, tt) // the task
	m.ask("$JS.API.CONSUMER.MSG.NEXT."+tasks+".workers", `{"batch":1,"no_wait":true}`, tt, true)
	m.ask("$JS.API.CONSUMER.MSG.NEXT."+tasks+".workers-high", `{"batch":1,"expires":1000000}`, tt, true)
	time.Sleep(20 * time.Second) // what came has been dealt with, and the lease of the task is over: the next attack has it again
}

// standing is what stands in histories, in claims but for their renewal, locks, types, streams and
// namespaces.
func (f *fleet) standing() string {
	f.t.Helper()
	var b strings.Builder
	for _, stream := range []string{ns.StreamHistory(0), "KV_" + ns.BucketLocks(), "KV_" + ns.BucketTypes(), "KV_" + ns.BucketClaims()} {
		err := f.post.Scan(f.t.Context(), stream, natsconn.ReadOptions{LastPerSubject: stream == "KV_"+ns.BucketClaims()}, func(m natsconn.Stored) error {
			if stream == "KV_"+ns.BucketClaims() {
				fmt.Fprintf(&b, "%s\n", m.Subject)
				return nil
			}
			fmt.Fprintf(&b, "%s %d %d bytes %v\n", m.Subject, m.Seq, len(m.Data), m.Header[schemas.StatusHeader])
			return nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines) // claims come in the order of their renewal
	b.Reset()
	fmt.Fprintln(&b, strings.Join(lines, "\n"))
	names := f.js.StreamNames(f.t.Context())
	var all []string
	for name := range names.Name() {
		if name != "KV_"+ns.BucketState() && name != "KV_"+ns.BucketFlows() { // made by the attack
			all = append(all, name)
		}
	}
	slices.Sort(all)
	fmt.Fprintln(&b, strings.Join(all, "\n"))
	return b.String()
}

// E3: whoever asks from another account has another reply subject than the delivery had, so a task
// is refused for what it is.
func TestATaskIsNoRequest(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		ctx, cancel := context.WithCancel(t.Context())
		var served sync.WaitGroup
		served.Go(func() { _ = namespaces.Serve(ctx, f.post, namespaces.ServeOptions{Memory: true}) })
		defer func() { cancel(); served.Wait() }()
		f.decider("order", one(""))
		f.start(startO)
		task := string(f.pull().msg.Data())
		subjects := []string{schemas.NamespaceSubject("create"), schemas.NamespaceSubject("delete")}
		for _, verb := range permissions.Verbs(permissions.Operator) {
			if !slices.Contains(permissions.OfOps(), verb) {
				subjects = append(subjects, ns.API(verb))
			}
		}
		before := f.standing()
		for _, subj := range subjects {
			for _, body := range []string{task, `{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{}}`, `{"stream":"drover-default-signals","seq":1}`} {
				if got := string(f.request(subj, body)); !strings.Contains(got, "this is no request") {
					t.Errorf("%s answers %s to %.40s…, want a refusal", subj, got, body)
				}
			}
		}
		if after := f.standing(); after != before {
			t.Errorf("what stands has changed (-before +after):\n%s", cmp.Diff(before, after))
		}
	})
}
