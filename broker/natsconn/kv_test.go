package natsconn

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

func bucket(t testing.TB, c *Conn) {
	t.Helper()
	_, err := c.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.FileStorage, LimitMarkerTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKVLife(t *testing.T) {
	c := connect(t)
	bucket(t, c)
	ctx := t.Context()
	_, _, err := c.KVGet(ctx, "b", "k")
	wantErr(t, err, ErrNotFound)
	rev, err := c.KVCreate(ctx, "b", "k", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.KVCreate(ctx, "b", "k", []byte("other"), 0)
	if e, ok := errors.AsType[*SequenceError](err); !ok || e.Last != rev {
		t.Fatalf("got %v, want SequenceError with %d", err, rev)
	}
	_, err = c.KVUpdate(ctx, "b", "k", []byte("other"), rev+5, 0)
	wantErr(t, err, ErrWrongSequence)
	second, err := c.KVUpdate(ctx, "b", "k", []byte("two"), rev, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, got, err := c.KVGet(ctx, "b", "k"); err != nil || string(v) != "two" || got != second {
		t.Fatalf("got %q, %d, %v, want two, %d", v, got, err, second)
	}
	wantErr(t, c.KVDelete(ctx, "b", "k", rev), ErrWrongSequence)
	if err := c.KVDelete(ctx, "b", "k", second); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.KVGet(ctx, "b", "k")
	wantErr(t, err, ErrNotFound)
	if _, err := c.KVCreate(ctx, "b", "k", []byte("three"), 0); err != nil {
		t.Fatalf("create over a marker: %v", err)
	}
	// The library's own view agrees.
	kv, err := c.JetStream().KeyValue(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(ctx, "k"); err != nil || string(e.Value()) != "three" {
		t.Fatalf("got %v, %v, want three", e, err)
	}
	if err := kv.Purge(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.KVGet(ctx, "b", "k")
	wantErr(t, err, ErrNotFound)
}

func TestKVRefuses(t *testing.T) {
	c := connect(t)
	bucket(t, c)
	for _, key := range []string{"", ".", ".a", "a.", "a..b", "a b", "*", "a.>", "ä", "a\n", "a:b"} {
		_, _, err := c.KVGet(t.Context(), "b", key)
		wantErr(t, err, ErrInvalid)
		_, err = c.KVCreate(t.Context(), "b", key, nil, 0)
		wantErr(t, err, ErrInvalid)
		wantErr(t, c.KVDelete(t.Context(), "b", key, 1), ErrInvalid)
	}
	_, _, err := c.KVGet(t.Context(), "none", "k")
	wantErr(t, err, ErrNoStream)
	_, err = c.KVCreate(t.Context(), "none", "k", nil, 0)
	wantErr(t, err, ErrNoStream)
	_, err = c.KVKeys(t.Context(), "none")
	wantErr(t, err, ErrNoStream)
	_, err = c.KVWatch(t.Context(), "b.x", nil)
	wantErr(t, err, ErrInvalid)
	_, err = c.KVKeys(t.Context(), "")
	wantErr(t, err, ErrInvalid)
}

// A lease lives as long as it is renewed, then ends, and the renewal of its late holder is refused.
func TestKVRenewalKeepsTheTTL(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		bucket(t, c)
		ctx := t.Context()
		rev, err := c.KVCreate(ctx, "b", "claim", []byte("a"), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(3 * time.Second)
			if rev, err = c.KVUpdate(ctx, "b", "claim", []byte("a"), rev, 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Second)
		if _, got, err := c.KVGet(ctx, "b", "claim"); err != nil || got != rev {
			t.Fatalf("got %d, %v, want %d alive", got, err, rev)
		}
		time.Sleep(2 * time.Second)
		_, _, err = c.KVGet(ctx, "b", "claim")
		wantErr(t, err, ErrNotFound)
		_, err = c.KVUpdate(ctx, "b", "claim", []byte("a"), rev, 5*time.Second)
		wantErr(t, err, ErrWrongSequence)
		if rev, err = c.KVCreate(ctx, "b", "claim", []byte("b"), 5*time.Second); err != nil {
			t.Fatalf("create over an expiry marker: %v", err)
		}
		// Without a TTL the key stays.
		if _, err = c.KVUpdate(ctx, "b", "claim", []byte("b"), rev, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if v, _, err := c.KVGet(ctx, "b", "claim"); err != nil || string(v) != "b" {
			t.Fatalf("got %q, %v, want b", v, err)
		}
	})
}

// Whenever a marker goes away, a create that comes at that time succeeds.
func TestKVCreateWhileTheMarkerExpires(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		bucket(t, c)
		for i := range 40 {
			rev, err := c.KVCreate(t.Context(), "b", "k", nil, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + time.Duration(i)*25*time.Millisecond)
			if _, got, err := c.KVGet(t.Context(), "b", "k"); err == nil { // the server's clock ticks coarsely
				if got != rev {
					t.Fatalf("got revision %d, want %d", got, rev)
				}
				if err := c.KVDelete(t.Context(), "b", "k", rev); err != nil && !errors.Is(err, ErrWrongSequence) {
					t.Fatal(err)
				}
			}
			time.Sleep(59*time.Second + time.Duration(i)*50*time.Millisecond)
		}
	})
}

type change struct {
	Key, Value string
	Rev        uint64
	Deleted    bool
}

func TestKVWatch(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		bucket(t, c)
		ctx := t.Context()
		for _, k := range []string{"a.b", "c", "d/e"} {
			if _, err := c.KVCreate(ctx, "b", k, []byte(k), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.KVDelete(ctx, "b", "c", 2); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []change
		w, err := c.KVWatch(ctx, "b", func(key string, value []byte, rev uint64, deleted bool) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, change{key, string(value), rev, deleted})
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		<-w.CaughtUp()
		if _, err := c.KVCreate(ctx, "b", "lease", []byte("x"), 2*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		want := []change{{"a.b", "a.b", 1, false}, {"d/e", "d/e", 3, false}, {"c", "", 4, true}, {"lease", "x", 5, false}, {"lease", "", 6, true}}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		keys, err := c.KVKeys(ctx, "b")
		slices.SortFunc(keys, cmp.Compare[string])
		if err != nil || !slices.Equal(keys, []string{"a.b", "d/e"}) {
			t.Fatalf("got %q, %v", keys, err)
		}
	})
}

// Many takers, one lease at a time: whoever creates the key is alone.
func TestKVCreateIsExclusive(t *testing.T) {
	c := connect(t)
	bucket(t, c)
	var wins sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				rev, err := c.KVCreate(t.Context(), "b", "k", []byte("x"), 0)
				switch {
				case err == nil:
					if _, twice := wins.LoadOrStore(rev, true); twice {
						t.Errorf("revision %d was won twice", rev)
					}
					if err := c.KVDelete(t.Context(), "b", "k", rev); err != nil {
						t.Errorf("the winner of %d could not delete: %v", rev, err)
					}
				case !errors.Is(err, ErrWrongSequence) && !errors.Is(err, ErrInFlight):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
