package keyed_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/keyed"
)

var (
	errServer = errors.New("the server is away")
	errFenced = errors.New("a later owner has fenced the partition")
	errBad    = errors.New("no list")
)

// list is a record: who has come, in their order.
type list struct {
	Came []string `json:"came"`
}

// store is the bucket that the owners share.
type store struct {
	keys  map[string]list
	revs  map[string]uint64
	last  uint64
	fence *owner // the latest that has fenced
}

func newStore() *store { return &store{keys: map[string]list{}, revs: map[string]uint64{}} }

// owner is host and bucket of one queue, on a loop that a test turns by hand.
type owner struct {
	t     *testing.T
	store *store
	queue *keyed.Queue[string, list]

	ended    bool
	fences   int // times that the fence was read
	reads    int
	writes   int
	loop     []func()
	pauses   []time.Duration
	warnings []string
	told     []string
	pending  bool
	refuse   map[string]bool // ops that are to be tried again, once

	readErr, fenceErr           error  // of the next one
	lost                        bool   // the answer to the next write
	beforeRead, afterRead, done func() // run once
}

func (s *store) owner(t *testing.T) *owner {
	o := &owner{t: t, store: s, refuse: map[string]bool{}}
	o.queue = keyed.New[string, list](o, o)
	s.fence = o
	return o
}

// run turns the loop until nothing is left to do.
func (o *owner) run() {
	for turns := 0; len(o.loop) > 0; turns++ {
		if turns > 1000 {
			o.t.Fatal("the queue goes on without an end")
		}
		f := o.loop[0]
		o.loop = o.loop[1:]
		f()
	}
}

func (o *owner) CanWrite() bool { return !o.ended }

func (o *owner) Work(work func(context.Context) error, done func(error)) {
	o.loop = append(o.loop, func() {
		err := work(o.t.Context())
		o.loop = append(o.loop, func() { done(err) })
	})
}

func (o *owner) After(d time.Duration, f func()) func() {
	o.pauses, o.loop = append(o.pauses, d), append(o.loop, f)
	return func() {}
}

func (o *owner) Fenced(context.Context) error {
	o.fences++
	if err := o.fenceErr; err != nil {
		o.fenceErr = nil
		return err
	}
	if o.store.fence != o {
		return errFenced
	}
	return nil
}

func (o *owner) Ended(_ string, err error) bool {
	o.ended = o.ended || errors.Is(err, errFenced)
	return o.ended
}

func (o *owner) Warn(_ string, err error, text string) {
	o.warnings = append(o.warnings, text+": "+err.Error())
}

func (o *owner) Name() string { return "list" }

func (o *owner) Read(_ context.Context, key string, _ []string) (e keyed.Entry[list], err error) {
	once(&o.beforeRead)
	o.reads++
	if err, o.readErr = o.readErr, nil; err != nil {
		return e, err
	}
	if l, ok := o.store.keys[key]; ok {
		e.Record = &list{Came: slices.Clone(l.Came)}
	}
	e.Revision = o.store.revs[key]
	once(&o.afterRead)
	return e, nil
}

func once(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

func (o *owner) Advice(err error) string {
	if errors.Is(err, errBad) {
		return "delete it"
	}
	return ""
}

// Apply adds who is not there; "-x" takes x out.
func (o *owner) Apply(_ string, ops []string, got keyed.Entry[list]) (next *list, changed bool) {
	next = &list{}
	if got.Record != nil {
		next.Came = slices.Clone(got.Record.Came)
	}
	o.pending = false
	for _, op := range ops {
		if who, leaves := strings.CutPrefix(op, "-"); leaves {
			if i := slices.Index(next.Came, who); i >= 0 {
				next.Came, changed = slices.Delete(next.Came, i, i+1), true
			}
		} else if !slices.Contains(next.Came, op) && !o.refuse[op] {
			next.Came, changed = append(next.Came, op), true
		}
	}
	return next, changed
}

func (o *owner) Empty(l *list) bool { return len(l.Came) == 0 }

func (o *owner) Write(_ context.Context, key string, body []byte, rev uint64) (uint64, error) {
	o.writes++
	if o.store.revs[key] != rev {
		return 0, natsconn.ErrWrongSequence
	}
	o.store.put(o.t, key, body)
	if o.lost {
		o.lost = false
		return 0, errServer
	}
	return o.store.last, nil
}

func (o *owner) Done(key string, ops []string, e keyed.Entry[list], _ bool) (again []string) {
	once(&o.done)
	if e.Revision != o.store.revs[key] {
		o.t.Errorf("told of revision %d, want %d", e.Revision, o.store.revs[key])
	}
	for _, op := range ops {
		if o.refuse[op] {
			delete(o.refuse, op)
			again = append(again, op)
			continue
		}
		o.told = append(o.told, op)
	}
	return again
}

func (o *owner) Pending(string) bool { return o.pending }

func (s *store) put(t *testing.T, key string, body []byte) {
	t.Helper()
	s.last++
	s.revs[key] = s.last
	delete(s.keys, key)
	if body == nil {
		return
	}
	var l list
	if err := json.Unmarshal(body, &l); err != nil {
		t.Fatal(err)
	}
	s.keys[key] = l
}

// has fails unless the key holds these, and the owner has told those and is at rest.
func (o *owner) has(came, told string) {
	o.t.Helper()
	if got := strings.Join(o.store.keys["k"].Came, " "); got != came {
		o.t.Errorf("the key has %q, want %q", got, came)
	}
	if got := strings.Join(o.told, " "); got != told {
		o.t.Errorf("told %q, want %q", got, told)
	}
	if o.queue.Busy() == o.CanWrite() {
		o.t.Errorf("busy is %v, and the owner may write: %v", o.queue.Busy(), o.CanWrite())
	}
}

func TestOpsAreAppliedInTheOrderOfTheirCallers(t *testing.T) {
	o := newStore().owner(t)
	o.queue.Add("k", "a", false)
	o.queue.Add("k", "b", false)
	o.queue.Add("k", "c", false)
	waiting := 0
	for key := range o.queue.All() {
		if key == "k" {
			waiting++
		}
	}
	if waiting != 3 || !o.queue.Busy() {
		t.Errorf("%d ops wait, busy is %v", waiting, o.queue.Busy())
	}
	o.run()
	o.has("a b c", "a b c")
	if o.writes != 2 {
		t.Errorf("%d writes, want one for the first, and one for those that came meanwhile", o.writes)
	}
	if o.fences != 0 {
		t.Error("the fence was read, and nothing was repeated")
	}
}

func TestOpsOfOneKeyDoNotWaitForAnother(t *testing.T) {
	o := newStore().owner(t)
	o.readErr = errServer
	o.queue.Add("other", "x", false)
	o.queue.Add("k", "a", false)
	o.run()
	o.has("a", "a x")
}

func TestConflictIsReadAgain(t *testing.T) {
	s := newStore()
	o := s.owner(t)
	o.afterRead = func() {
		s.put(t, "k", []byte(`{"came":["another"]}`))
		o.queue.Add("k", "b", false) // comes while the first try is at work
	}
	o.queue.Add("k", "a", false)
	o.run()
	o.has("another a b", "a b")
	if o.fences != 1 {
		t.Errorf("the fence was read %d times, want once, by the second try", o.fences)
	}
	if len(o.pauses) != 1 || o.pauses[0] > 20*time.Millisecond || len(o.warnings) > 0 {
		t.Errorf("paused %v, warned %q; want one short pause", o.pauses, o.warnings)
	}
}

// The write arrived, and its answer did not: nothing is entered twice.
func TestLostAnswerIsFoundInTheKey(t *testing.T) {
	o := newStore().owner(t)
	o.lost = true
	o.queue.Add("k", "a", false)
	o.run()
	o.has("a", "a")
	if o.writes != 1 || o.fences != 1 || len(o.warnings) != 1 {
		t.Errorf("%d writes, %d reads of the fence, warnings %q", o.writes, o.fences, o.warnings)
	}
}

func TestEmptyRecordIsDeleted(t *testing.T) {
	o := newStore().owner(t)
	o.queue.Add("k", "a", false)
	o.run()
	o.queue.Add("k", "-a", false)
	o.run()
	if _, there := o.store.keys["k"]; there {
		t.Error("the key is still there")
	}
	o.has("", "a -a")
}

func TestFailuresAreTriedAgainWithGrowingPauses(t *testing.T) {
	o := newStore().owner(t)
	failures := 0
	var fail func()
	fail = func() {
		if failures++; failures <= 40 {
			o.readErr, o.beforeRead = errServer, fail
		}
	}
	o.beforeRead = fail
	o.queue.Add("k", "a", false)
	o.run()
	o.has("a", "a")
	if !slices.IsSorted(o.pauses) || o.pauses[0] == 0 || o.pauses[len(o.pauses)-1] != keyed.MendPause {
		t.Errorf("paused %v", o.pauses)
	}
}

func TestKeyThatHoldsNoRecordIsReadAgain(t *testing.T) {
	o := newStore().owner(t)
	o.readErr = errBad
	o.queue.Add("k", "a", false)
	o.run()
	o.has("a", "a")
	advised := strings.HasPrefix(strings.Join(o.warnings, ""), "delete it")
	if !advised || !slices.Equal(o.pauses, []time.Duration{keyed.MendPause}) {
		t.Errorf("paused %v, warned %q", o.pauses, o.warnings)
	}
}

// An owner ends between the read and the write, or before either: it writes nothing more.
func TestEndedOwnerWritesNothing(t *testing.T) {
	for name, end := range map[string]func(*owner){
		"before the read": func(o *owner) { o.ended = true },
		"after the read":  func(o *owner) { o.afterRead = func() { o.ended = true } },
		"before a try is made again": func(o *owner) {
			o.readErr, o.beforeRead = errServer, func() { o.ended = true }
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newStore().owner(t)
			end(o)
			o.queue.Add("k", "a", false)
			o.run()
			o.has("", "")
			if o.writes > 0 || o.reads > 1 {
				t.Errorf("%d reads, %d writes", o.reads, o.writes)
			}
		})
	}
}

// A later owner has fenced the partition, and the former one does not know it yet.
func TestRepeatedTryFindsTheFence(t *testing.T) {
	for name, add := range map[string]func(*owner){
		"an op that a former owner may have done": func(o *owner) { o.queue.Add("k", "a", true) },
		"after a failure": func(o *owner) {
			o.readErr = errServer
			o.queue.Add("k", "a", false)
		},
		"after a conflict": func(o *owner) {
			o.afterRead = func() { o.store.last++; o.store.revs["k"] = o.store.last }
			o.queue.Add("k", "a", false)
		},
		"what is pending": func(o *owner) { o.pending = true; o.queue.Look("k") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			o := s.owner(t)
			s.owner(t) // fences
			add(o)
			o.run()
			o.has("", "")
			if !o.ended {
				t.Error("the owner goes on")
			}
		})
	}
}

// The fence cannot be read: the try is made again, and reads it again.
func TestFenceThatCannotBeRead(t *testing.T) {
	o := newStore().owner(t)
	o.fenceErr = errServer
	o.queue.Add("k", "a", true)
	o.run()
	o.has("a", "a")
	if o.fences != 2 || o.ended {
		t.Errorf("the fence was read %d times, ended is %v", o.fences, o.ended)
	}
}

// What the bucket cannot do yet comes again after a pause, after what has come meanwhile.
func TestOpThatIsToBeTriedAgain(t *testing.T) {
	o := newStore().owner(t)
	o.refuse["a"] = true
	o.queue.Add("k", "a", false)
	o.queue.Add("k", "b", false)
	o.run()
	o.has("b a", "b a")
	if len(o.pauses) != 1 {
		t.Errorf("paused %v, want once", o.pauses)
	}
}

// What becomes pending while a key is being changed is applied by one more try.
func TestPendingIsTriedWithoutAnOp(t *testing.T) {
	o := newStore().owner(t)
	o.queue.Add("k", "a", false)
	o.done = func() { o.pending = true; o.queue.Look("k") }
	o.run()
	o.has("a", "a")
	if o.reads != 2 || o.writes != 1 {
		t.Errorf("%d reads and %d writes, want one more read", o.reads, o.writes)
	}
}

// Owners of several partitions want one key: everybody enters, in the end, and nobody twice.
func TestManyOwnersOfOneKey(t *testing.T) {
	s := newStore()
	var owners []*owner
	for _, wid := range strings.Fields("a b c d e") {
		o := s.owner(t)
		o.queue.Add("k", wid, false)
		owners = append(owners, o)
	}
	for busy := true; busy; { // a step of each at a time
		busy = false
		for _, o := range owners {
			s.fence = o // each is the owner of its own partition
			if len(o.loop) > 0 {
				f := o.loop[0]
				o.loop = o.loop[1:]
				f()
				busy = true
			}
		}
	}
	came := slices.Clone(s.keys["k"].Came)
	slices.Sort(came)
	if got := strings.Join(came, " "); got != "a b c d e" {
		t.Errorf("the key has %q", got)
	}
	for _, o := range owners {
		if len(o.told) != 1 || o.queue.Busy() {
			t.Errorf("told %q, busy is %v", o.told, o.queue.Busy())
		}
	}
}
