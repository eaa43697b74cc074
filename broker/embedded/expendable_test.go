package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// A power cut tears a definition beside messages that are whole. A stream that is noted as expendable is removed and can be made
// again; the store of any other is refused.
func TestTornDefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		file   string // below the stream
		size   int64
		noted  bool
		refuse bool
		gone   bool
	}{
		"definition, noted":             {"meta.inf", 10, true, false, true},
		"checksum, noted":               {"meta.sum", 3, true, false, true},
		"definition of consumer, noted": {filepath.Join("obs", "worker", "meta.inf"), 0, true, false, true},
		"nothing is torn":               {"", 0, true, false, false},
		"definition, not noted":         {"meta.inf", 10, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := oddDir(t)
			o := embedded.Options{StoreDir: dir, Profile: embedded.ProfileSingle}
			s := start(t, o)
			js := connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.CreateOrUpdateConsumer(t.Context(), "a", jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			if tc.noted {
				for range 2 {
					if err := s.Expendable("a"); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.Shutdown()
			if tc.file != "" {
				if err := os.Truncate(filepath.Join(dir, "jetstream", "$G", "streams", "a", tc.file), tc.size); err != nil {
					t.Fatal(err)
				}
			}
			if tc.refuse {
				_, err := embedded.Start(t.Context(), embedded.Options{StoreDir: dir, Profile: embedded.ProfileSingle, DontListen: true})
				if !errors.Is(err, embedded.ErrStoreDamaged) {
					t.Fatalf("got %v, want ErrStoreDamaged", err)
				}
				return
			}
			for range 2 { // the start after has what was made again
				s = start(t, o)
				js = connect(t, s)
				_, err := js.Stream(t.Context(), "a")
				if gone := errors.Is(err, jetstream.ErrStreamNotFound); gone != tc.gone || err != nil && !gone {
					t.Fatalf("got %v, want the stream gone: %v", err, tc.gone)
				}
				tc.gone = false
				makeStream(t, s, js, "a")
				s.Shutdown()
			}
		})
	}
	s := start(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileSingle})
	for _, wrong := range []string{"", "a/b", "a\nb"} {
		if err := s.Expendable(wrong); !errors.Is(err, embedded.ErrInvalidOptions) {
			t.Errorf("%q: got %v, want ErrInvalidOptions", wrong, err)
		}
	}
}
