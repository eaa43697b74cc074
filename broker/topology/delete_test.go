package topology_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
)

// full makes a namespace with one of everything, and a run that has ended.
func full(t *testing.T, conn *natsconn.Conn, name subject.Namespace) {
	t.Helper()
	ensure(t, conn, topology.Options{Namespace: string(name), Partitions: 2})
	for _, list := range []string{"words", "signals"} {
		if err := topology.EnsureList(t.Context(), conn, name, list, topology.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.JetStream().CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: name.StorePayloads(), Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	history(t, conn, name, "done", "completed")
}

// history writes the last record of a run as a list would read it.
func history(t *testing.T, conn *natsconn.Conn, ns subject.Namespace, wid, status string) {
	t.Helper()
	if _, err := conn.PublishSync(t.Context(), ns.History(1, wid, "r1"), natsconn.Header{"Drover-Status": {status}}, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, conn *natsconn.Conn, ns subject.Namespace, o topology.DeleteOptions) {
	t.Helper()
	if err := topology.Delete(t.Context(), conn, ns, o); err != nil {
		t.Fatal(err)
	}
}

func TestDelete(t *testing.T) {
	conn := dial(t, embedded.Options{})
	kept := foreign(t, conn)
	full(t, conn, "a-b")
	full(t, conn, "tasks")
	kept = append(kept, belonging(t, conn, "a-b")...)
	kept = append(kept, belonging(t, conn, "tasks")...)
	kept = append(kept, "KV_drover-nodes")
	full(t, conn, "a")

	history(t, conn, "a", "my/order", "open")
	history(t, conn, "a", "other", "paused")
	err := topology.Delete(t.Context(), conn, "a", topology.DeleteOptions{})
	open, ok := errors.AsType[*topology.OpenRunsError](err)
	if !ok || !errors.Is(err, topology.ErrOpenRuns) || open.Open != 2 || !strings.Contains(err.Error(), `"my/order"`) {
		t.Fatalf("got %v, want a refusal that names one of 2", err)
	}
	if i, err := topology.Lookup(t.Context(), conn, "a"); err != nil || i.Deleting {
		t.Fatalf("got %+v, %v, want the namespace untouched", i, err)
	}
	remove(t, conn, "a", topology.DeleteOptions{Force: true, Reason: "a test"})
	all := names(t, conn)
	slices.Sort(all)
	slices.Sort(kept)
	if d := cmp.Diff(kept, all); d != "" {
		t.Fatalf("streams (-want +got):\n%s", d)
	}
	if err := topology.Delete(t.Context(), conn, "a", topology.DeleteOptions{}); !errors.Is(err, topology.ErrNoNamespace) {
		t.Fatalf("got %v, want %v", err, topology.ErrNoNamespace)
	}
	for name, want := range map[subject.Namespace]error{"x": topology.ErrConflict, "a.b": subject.ErrInvalidID} {
		if err := topology.Delete(t.Context(), conn, name, topology.DeleteOptions{Force: true}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	// It may be made anew, with something else.
	ensure(t, conn, topology.Options{Namespace: "a", Partitions: 3})
}

// logger calls fn with the number of each stream that is made or deleted, from the goroutine that did it.
func logger(message string, fn func(n int, stream string)) logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(nowhere{})
	l.SetLevel(logrus.DebugLevel)
	var mu sync.Mutex
	n := 0
	l.AddHook(hook(func(e *logrus.Entry) {
		if e.Message != message {
			return
		}
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		fn(now, fmt.Sprint(e.Data["stream"]))
	}))
	return l
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

type hook func(*logrus.Entry)

func (hook) Levels() []logrus.Level       { return logrus.AllLevels }
func (h hook) Fire(e *logrus.Entry) error { h(e); return nil }

// A deletion is cut short after each of its streams: the namespace is still found, nobody can use or make it, and the next
// deletion completes it.
func TestDeleteIsCutShort(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for cut := 1; ; cut++ {
		full(t, conn, "a")
		history(t, conn, "a", "w", "open")
		ctx, cancel := context.WithCancel(t.Context())
		last := ""
		err := topology.Delete(ctx, conn, "a", topology.DeleteOptions{Force: true, Logger: logger("stream deleted", func(n int, stream string) {
			if last = stream; n == cut {
				cancel()
			}
		})})
		cancel()
		if last == "drover-a-signals" {
			if left := belonging(t, conn, "a"); err != nil || len(left) != 0 || cut < 14 {
				t.Fatalf("after %d streams: got %v, left %v, want nil and nothing", cut, err, left)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cut %d: got %v, want %v", cut, err, context.Canceled)
		}
		if i, err := topology.Lookup(t.Context(), conn, "a"); err != nil || !i.Deleting {
			t.Fatalf("cut %d: got %+v, %v, want it marked", cut, i, err)
		}
		if _, err := topology.Describe(t.Context(), conn, "a"); err != nil {
			t.Fatalf("cut %d: describe: %v", cut, err)
		}
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "a", Memory: true}); !errors.Is(err, topology.ErrDeleting) {
			t.Fatalf("cut %d: ensure: got %v, want %v", cut, err, topology.ErrDeleting)
		}
		if err := topology.EnsureList(t.Context(), conn, "a", "more", topology.ListOptions{}); !errors.Is(err, topology.ErrDeleting) {
			t.Fatalf("cut %d: list: got %v, want %v", cut, err, topology.ErrDeleting)
		}
		remove(t, conn, "a", topology.DeleteOptions{}) // decided already, so the open run does not matter
		if left := belonging(t, conn, "a"); len(left) != 0 {
			t.Fatalf("cut %d: got %v left, want nothing", cut, left)
		}
	}
}

// The making of a namespace is cut short after each of its streams: it can be completed, and it can be deleted.
func TestEnsureIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		conn := dial(t, embedded.Options{})
		for cut, done := 1, false; !done; cut++ {
			for _, way := range []string{"complete", "delete"} {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := topology.Ensure(ctx, conn, topology.Options{Namespace: "a", Memory: true, Partitions: 2, Logger: logger("stream made", func(n int, _ string) {
					if n == cut {
						cancel()
					}
				})})
				done = ctx.Err() == nil // it was not cut
				cancel()
				synctest.Wait() // what it had asked for is made by now
				if done != (err == nil) && !errors.Is(err, context.Canceled) {
					t.Fatalf("cut %d: got %v, want %v", cut, err, context.Canceled)
				}
				if i, err := topology.Lookup(t.Context(), conn, "a"); err != nil || i.Partitions != 2 {
					t.Fatalf("cut %d: got %+v, %v, want 2 partitions", cut, i, err)
				}
				if way == "complete" {
					ensure(t, conn, topology.Options{Namespace: "a", Partitions: 2})
					if got := len(belonging(t, conn, "a")); got != 16 {
						t.Fatalf("cut %d: got %d streams, want 16", cut, got)
					}
				}
				remove(t, conn, "a", topology.DeleteOptions{})
				if left := belonging(t, conn, "a"); len(left) != 0 {
					t.Fatalf("cut %d: got %v left, want nothing", cut, left)
				}
			}
		}
	})
}

// One is slow: while it deletes, another one completes the deletion and the namespace is made anew. The new one is left alone.
func TestDeleteSparesALaterNamespace(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for at := 1; at < 17; at++ {
		full(t, conn, "a")
		err := topology.Delete(t.Context(), conn, "a", topology.DeleteOptions{Logger: logger("stream deleted", func(n int, _ string) {
			if n == at {
				remove(t, conn, "a", topology.DeleteOptions{})
				full(t, conn, "a")
			}
		})})
		if !errors.Is(err, topology.ErrConflict) || !strings.Contains(err.Error(), "namespace list") {
			t.Fatalf("at %d: got %v, want %v", at, err, topology.ErrConflict)
		}
		if got := len(belonging(t, conn, "a")); got != 19 {
			t.Fatalf("at %d: got %d streams, want the new one's 19", at, got)
		}
		remove(t, conn, "a", topology.DeleteOptions{})
	}
}

// A namespace is deleted while a server makes what is missing of it. The server is told, and leaves nothing lagging: nobody would look for it.
func TestEnsureIsOvertakenByADeletion(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for at := 2; at < 10; at++ {
		var once sync.Once
		_, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "a", Memory: true, Partitions: 2, Logger: logger("stream made", func(n int, _ string) {
			if n >= at {
				once.Do(func() { remove(t, conn, "a", topology.DeleteOptions{}) })
			}
		})})
		if !errors.Is(err, topology.ErrDeleting) {
			t.Fatalf("at %d: got %v, want %v", at, err, topology.ErrDeleting)
		}
		if left := belonging(t, conn, "a"); len(left) != 0 {
			t.Fatalf("at %d: got %v left, want nothing", at, left)
		}
		if _, err := conn.JetStream().Stream(t.Context(), "KV_"+subject.BucketNodes); at == 9 && err != nil {
			t.Errorf("the bucket of the nodes of all namespaces: %v", err)
		}
		if err := topology.Delete(t.Context(), conn, "a", topology.DeleteOptions{}); err != nil && !errors.Is(err, topology.ErrNoNamespace) {
			t.Fatalf("at %d: got %v", at, err)
		}
	}
}

// Whoever makes a list, or a namespace, is told to stop, as a server that serves it, or cannot go on because it is deleted meanwhile. What was
// made goes all the same.
func TestWhatIsMadeBesideADeletionGoes(t *testing.T) {
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	conn := embeddedtest.Connect(t, s)
	wire := cutwire.New(s.Conn())
	mine := embeddedtest.Through(t, wire)
	makes := map[string]func(context.Context) error{
		"$JS.API.STREAM.CREATE.drover-a-in-1": func(ctx context.Context) error {
			_, err := topology.Ensure(ctx, mine, topology.Options{Namespace: "a", Memory: true, Partitions: 2})
			return err
		},
		"$JS.API.CONSUMER.": func(ctx context.Context) error {
			return topology.EnsureList(ctx, mine, "a", "new", topology.ListOptions{})
		},
	}
	for at, makeIt := range makes {
		for _, told := range []bool{false, true} {
			ensure(t, conn, topology.Options{Namespace: "a", Memory: true, Partitions: 2})
			if strings.Contains(at, "STREAM") {
				if err := conn.JetStream().DeleteStream(t.Context(), "drover-a-in-1"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var once sync.Once
			wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
				if strings.HasPrefix(subject, at) {
					once.Do(func() {
						remove(t, conn, "a", topology.DeleteOptions{})
						if told {
							cancel()
						}
					})
				}
				return cutwire.Pass
			})
			if err := makeIt(ctx); !errors.Is(err, topology.ErrDeleting) && (!told || !errors.Is(err, context.Canceled)) {
				t.Errorf("at %s, told %v: got %v", at, told, err)
			}
			cancel()
			if left := belonging(t, conn, "a"); len(left) != 0 {
				t.Fatalf("at %s, told %v: got %v left, want nothing", at, told, left)
			}
		}
	}
}

func TestDeleteByManyAtOnce(t *testing.T) {
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	conn := embeddedtest.Connect(t, s)
	full(t, conn, "a")
	var wg sync.WaitGroup
	for range 6 {
		mine := embeddedtest.Connect(t, s)
		wg.Go(func() {
			if err := topology.Delete(t.Context(), mine, "a", topology.DeleteOptions{}); err != nil && !errors.Is(err, topology.ErrNoNamespace) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if left := belonging(t, conn, "a"); len(left) != 0 {
		t.Fatalf("got %v left, want nothing", left)
	}
}

// Servers are waited for, those that have crashed until their claims expire, and those that do not listen not for ever.
func TestDeleteWaitsForClaims(t *testing.T) {
	for _, tc := range []struct {
		name         string
		ttl, release time.Duration
		letGo        time.Duration
		least, most  time.Duration
	}{
		{"released", 0, 5 * time.Second, time.Minute, 5 * time.Second, 5200 * time.Millisecond},
		{"expires", 10 * time.Second, 0, time.Minute, 10 * time.Second, 12 * time.Second},
		{"stubborn", 0, 0, 0, 12 * time.Second, 12200 * time.Millisecond},
		{"stubborn for less", 0, 0, time.Second, time.Second, 1200 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				conn := dial(t, embedded.Options{})
				ns := ensure(t, conn, topology.Options{Namespace: "a"}).Name
				rev, err := conn.KVCreate(t.Context(), ns.BucketClaims(), "partition.0", []byte("x"), tc.ttl)
				if err != nil {
					t.Fatal(err)
				}
				told := make(chan string, 8)
				sub, err := conn.Subscribe("drover-server.changed", "", func(m natsconn.Msg) { told <- string(m.Data) })
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Close()
				began := time.Now()
				done := make(chan error, 1)
				go func() { done <- topology.Delete(t.Context(), conn, ns, topology.DeleteOptions{LetGo: tc.letGo}) }()
				if got := <-told; got != "a" {
					t.Fatalf("got word about %q, want a", got)
				}
				if tc.release > 0 {
					time.Sleep(tc.release)
					if err := conn.KVDelete(t.Context(), ns.BucketClaims(), "partition.0", rev); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < tc.least || took > tc.most {
					t.Fatalf("got %v, want %v to %v", took, tc.least, tc.most)
				}
				if left := belonging(t, conn, "a"); len(left) != 0 {
					t.Fatalf("got %v left, want nothing", left)
				}
			})
		})
	}
}

// Claims that cannot be read are not let go of; without their bucket nobody has any.
func TestDeleteWithoutAnAnswerAboutClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		conn := embeddedtest.Connect(t, s)
		wire := cutwire.New(s.Conn())
		mine := embeddedtest.Through(t, wire)
		ns := ensure(t, conn, topology.Options{Namespace: "a"}).Name
		rev, err := conn.KVCreate(t.Context(), ns.BucketClaims(), "partition.0", []byte("x"), 0)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
			if strings.Contains(subject, ns.BucketClaims()) && time.Since(began) < 15*time.Second {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		time.AfterFunc(20*time.Second, func() {
			if err := conn.KVDelete(context.Background(), ns.BucketClaims(), "partition.0", rev); err != nil {
				t.Error(err)
			}
		})
		if err := topology.Delete(t.Context(), mine, ns, topology.DeleteOptions{LetGo: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("got %v, want that it waits for the claim, 20s", took)
		}
		ensure(t, conn, topology.Options{Namespace: "a"})
		if err := conn.JetStream().DeleteStream(t.Context(), "KV_"+ns.BucketClaims()); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		remove(t, conn, ns, topology.DeleteOptions{})
		if took := time.Since(began); took > time.Second {
			t.Errorf("got %v without a bucket of claims, want no wait", took)
		}
	})
}

// A server that has read the signals stream before it was marked changes it after that, and wipes the mark out by it. The
// deletion is completed all the same, and sets it again before it goes on: without it a server would make anew what is deleted.
func TestDeletionWhoseMarkIsWipedOut(t *testing.T) {
	for at := range 3 {
		conn := dial(t, embedded.Options{})
		full(t, conn, "a")
		before := config(t, conn, "drover-a-signals")
		wipe := func() {
			if _, err := conn.JetStream().UpdateStream(t.Context(), before); err != nil {
				t.Error(err)
			}
		}
		log := logger("stream deleted", func(n int, _ string) {
			switch i, err := topology.Lookup(t.Context(), conn, "a"); {
			case n == at:
				wipe()
			case n > at && err == nil && !i.Deleting:
				t.Errorf("at %d: %d streams are deleted of a namespace that is not marked", at, n)
			}
		})
		if at == 0 {
			log.(*logrus.Logger).AddHook(hook(func(e *logrus.Entry) {
				if e.Message == "namespace is being deleted" {
					wipe()
				}
			}))
		}
		if err := topology.Delete(t.Context(), conn, "a", topology.DeleteOptions{Logger: log}); err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		if left := belonging(t, conn, "a"); len(left) != 0 {
			t.Fatalf("at %d: got %v left, want nothing", at, left)
		}
	}
}
