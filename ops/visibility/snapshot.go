package visibility

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/schemas"
)

const (
	// saveEvery is how often a snapshot is written, if anything has changed.
	saveEvery = 5 * time.Minute
	// lastSave bounds the last look at the stream before the snapshot of a stop.
	lastSave = 2 * time.Second
)

// stream is what a snapshot tells of the stream that it is of.
type stream struct {
	Made   schemas.Timestamp `json:"made"`
	Seen   uint64            `json:"seen,omitempty"`
	SeenAt schemas.Timestamp `json:"seenAt,omitempty"`
}

// file is where the snapshot of the partition is; empty if there is none to be.
func (t *part) file() string {
	if t.x.o.Dir == "" {
		return ""
	}
	return filepath.Join(t.x.o.Dir, fmt.Sprintf("%s.%d", t.x.o.Namespace, t.p))
}

// load begins with the snapshot, if there is one. Whatever is odd about it, it is not used.
func (t *part) load() {
	if t.file() == "" {
		return
	}
	if err := t.readFile(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.x.o.Logger.WithField("err", err).WithField("file", t.file()).
			Info("a snapshot of the index is of no use; the histories are read instead")
	}
}

// readFile is load.
func (t *part) readFile() error {
	f, err := os.Open(t.file())
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	s, mark, err := index.Read(f)
	if err != nil {
		return err
	}
	var of stream
	if err := json.Unmarshal([]byte(mark.Incarnation), &of); err != nil {
		return err
	}
	if s.Partition() != t.p || of.Made == 0 {
		return fmt.Errorf("it is of partition %d, want %d", s.Partition(), t.p)
	}
	t.store.Store(s)
	t.position.Store(mark.Position)
	t.x.follower.Next[t.p] = mark.Position + 1
	t.made, t.seen, t.seenAt = of.Made.Time(), of.Seen, time.Time{}
	if of.Seen != 0 {
		t.seenAt = of.SeenAt.Time()
	}
	t.away = true
	return nil
}

// save writes a snapshot, if something has changed since the last one and that is long ago, or is
// the last. Nothing is put meanwhile.
func (t *part) save(ctx context.Context, last bool) {
	if t.file() == "" || !t.built.Load() || t.changes == t.saved ||
		!last && time.Since(t.savedAt) < saveEvery {
		return
	}
	if last {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
		defer cancel()
		if err := t.check(ending); err != nil {
			return // what is there may be of a stream that is no more
		}
	}
	t.savedAt = time.Now()
	if err := t.writeFile(); err != nil {
		t.x.o.Logger.WithField("err", err).WithField("file", t.file()).
			Warn("no snapshot of the index can be written; after a start the histories are read")
		return
	}
	t.saved = t.changes
}

// writeFile writes the snapshot beside the one that is there, and puts it in its place.
func (t *part) writeFile() (err error) {
	of := stream{Made: schemas.At(t.made), Seen: t.seen}
	if t.seen != 0 {
		of.SeenAt = schemas.At(t.seenAt)
	}
	incarnation, err := json.Marshal(of)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.x.o.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(t.file()+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = t.store.Load().Write(f, index.Mark{
		Position: t.position.Load(), Incarnation: string(incarnation),
	})
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), t.file())
}
