//go:build linux

package damage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// wounds are what happens to a file of a stream.
var wounds = map[string]func(t *testing.T, dir string){
	"a flipped bit": func(t *testing.T, dir string) {
		name, b := block(t, dir)
		b[len(b)/2] ^= 0x10
		overwrite(t, name, b)
	},
	"a truncated block": func(t *testing.T, dir string) {
		name, b := block(t, dir)
		overwrite(t, name, b[:len(b)*2/3])
	},
	"a deleted index": func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
			t.Fatal(err)
		}
	},
	"a flipped bit and a deleted index": func(t *testing.T, dir string) {
		name, b := block(t, dir)
		b[len(b)/2] ^= 0x10
		overwrite(t, name, b)
		if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
			t.Fatal(err)
		}
	},
}

// block reads the last file of messages.
func block(t *testing.T, dir string) (name string, data []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: got %v, %v, want files of messages", dir, names, err)
	}
	name = slices.Max(names)
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		t.Fatalf("%s: got %d bytes, %v", name, len(b), err)
	}
	return name, b
}

func overwrite(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBroken(t *testing.T) {
	for _, profile := range []string{"single", "dev"} {
		for _, stream := range []string{"drover-default-history-0", "drover-default-in-0", "drover-default-signals", "drover-default-tasks-load", "drover-default-alarms-0", "KV_drover-default-claims", "KV_drover-default-checkpoints"} {
			for wound, inflict := range wounds {
				t.Run(profile+"/"+stream+"/"+wound, func(t *testing.T) {
					m := newMachine(t, profile, "")
					m.start("--partitions", "1")
					stop := m.workers()
					ctx, cancel := bounded(t)
					defer cancel()
					var runs []*drover.Run
					for i := range 8 {
						l := load{Steps: 2, Signals: i % 2 * 2, Timer: i % 4 / 3 * 3000}
						run, err := m.client.Start(ctx, loadType, l, &drover.StartOptions{ID: fmt.Sprintf("w-%d", i)})
						if err != nil {
							t.Fatal(err)
						}
						if l.Signals > 0 {
							if err := run.Signal(ctx, pokeSignal, "one"); err != nil {
								t.Fatal(err)
							}
						} else if _, err := run.Wait(ctx); err != nil {
							t.Fatal(err)
						}
						runs = append(runs, run)
					}
					time.Sleep(500 * time.Millisecond)
					stop()
					m.server.stop()
					before := m.starts
					inflict(t, filepath.Join(m.store, "jetstream", "$G", "streams", stream, "msgs"))
					if line := m.tryStart("--partitions", "1"); line == "" {
						t.Logf("refused to start: %s", m.logs(before+1))
						return
					}
					defer m.workers()()
					v := m.verify()
					t.Logf("verify after the start: ok %v, %d runs, %d open: %+v", v.OK, v.Runs, v.Open, v.Violations)
					for _, run := range runs {
						one, cancel := context.WithTimeout(ctx, 5*time.Second)
						err := run.Signal(one, pokeSignal, "two")
						o, werr := run.Wait(one)
						cancel()
						status := schemas.Status("")
						if o != nil {
							status = o.Status
						}
						t.Logf("%s: signal %v, end %v %v", run.ID, err, status, werr)
					}
					v = m.verify()
					t.Logf("verify in the end: ok %v, %d runs, %d open: %+v", v.OK, v.Runs, v.Open, v.Violations)
					for l := range strings.Lines(m.logs(before + 1)) {
						if !strings.Contains(l, `"level":"info"`) {
							t.Log(strings.TrimSpace(l))
						}
					}
				})
			}
		}
	}
}
