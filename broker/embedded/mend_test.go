package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// Of the definition of a stream that holds messages a power cut has torn a part. A checksum is written again. A torn definition
// that was durable once is damage; any other is of the last moment, and its stream is set aside and can be made again.
func TestDefinitionBesideMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		file    string
		content string
		young   bool // the definition was never durable
		old     bool // the store is from before that was noted
		refuse  bool
		gone    bool
	}{
		"empty checksum":                  {file: "meta.sum"},
		"torn checksum":                   {file: "meta.sum", content: "0f3", young: true},
		"checksum of the one before":      {file: "meta.sum", content: "0123456789abcdef"},
		"torn, was durable":               {file: "meta.inf", content: `{"name":`, refuse: true},
		"torn, was not":                   {file: "meta.inf", content: `{"name":`, young: true, gone: true},
		"empty, was not":                  {file: "meta.inf", young: true, gone: true},
		"of another stream, was not":      {file: "meta.inf", content: `{"name":"b"}`, young: true, gone: true},
		"torn, in a store of old":         {file: "meta.inf", content: `{"name":`, old: true, refuse: true},
		"torn checksum in a store of old": {file: "meta.sum", content: "0f3", old: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			o := embedded.Options{StoreDir: dir}
			s := start(t, o)
			js := connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()
			noted := filepath.Join(dir, "defined")
			if b, err := os.ReadFile(noted); err != nil || string(b) != "$G/a\n" {
				t.Fatalf("got %q, %v noted, want stream a", b, err)
			}
			switch {
			case tc.young:
				write(t, noted, "")
			case tc.old:
				if err := os.Remove(noted); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(dir, "jetstream", "$G", "streams", "a", tc.file), tc.content)
			if tc.refuse {
				o.DontListen = true
				refused(t, o, embedded.ErrStoreDamaged, "backup")
				return
			}
			want := uint64(1)
			if tc.gone {
				want = 0
			}
			for range 2 { // the start after has what was made again
				s = start(t, o)
				js = connect(t, s)
				makeStream(t, s, js, "a")
				st, err := js.Stream(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if got := st.CachedInfo().State.Msgs; got != want {
					t.Fatalf("got %d messages, want %d", got, want)
				}
				if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
					t.Fatal(err)
				}
				want++
				s.Shutdown()
			}
			aside, err := os.ReadDir(filepath.Join(dir, "torn"))
			if (len(aside) == 1) != tc.gone || tc.gone && err != nil {
				t.Fatalf("got %q, %v set aside, want it: %v", aside, err, tc.gone)
			}
		})
	}
}

// A definition without messages is torn, or that of a consumer: whoever makes it again has it after the next start too.
func TestTornDefinitionIsMadeAgain(t *testing.T) {
	for name, at := range map[string]string{"stream": "", "consumer": filepath.Join("obs", "worker")} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			config := jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}
			for n := range 3 {
				s := start(t, embedded.Options{StoreDir: dir})
				js := connect(t, s)
				if n == 2 {
					if _, err := js.Consumer(t.Context(), "a", "worker"); err != nil {
						t.Fatal(err)
					}
					break
				}
				makeStream(t, s, js, "a")
				if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
					t.Fatal(err)
				}
				s.Shutdown()
				if n == 0 {
					write(t, filepath.Join(dir, "jetstream", "$G", "streams", "a", at, "meta.inf"), `{"na`)
				}
			}
		})
	}
}

// A power cut falls between the two files that define a stream, or a consumer. The next start has neither; who makes them
// again may use them, and the start after that has them with all that they hold.
func TestHalfMadeStreamIsMadeAgain(t *testing.T) {
	for name, half := range map[string]string{"stream": "", "consumer": filepath.Join("obs", "worker")} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			config := jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}
			s := start(t, embedded.Options{StoreDir: dir})
			js := connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()
			folder := filepath.Join(dir, "jetstream", "$G", "streams", "a", half)
			for _, file := range []string{"meta.sum", "o.dat"} {
				if err := os.Remove(filepath.Join(folder, file)); err != nil && (file == "meta.sum" || !os.IsNotExist(err)) {
					t.Fatal(err)
				}
			}
			if half == "" { // the server makes the folder of messages and their first block later
				if err := os.RemoveAll(filepath.Join(folder, "msgs")); err != nil {
					t.Fatal(err)
				}
			}

			s = start(t, embedded.Options{StoreDir: dir})
			js = connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", config); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			s.Shutdown()

			s = start(t, embedded.Options{StoreDir: dir})
			js = connect(t, s)
			c, err := js.Consumer(t.Context(), "a", "worker")
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Next()
			if err != nil || string(m.Data()) != "x" {
				t.Fatalf("got %v, %v, want the message", m, err)
			}
		})
	}
}
