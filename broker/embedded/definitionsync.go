package embedded

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// keptPerSync is how often within a sync interval the definitions are looked at. The server syncs
// the first messages of a new stream half an interval after it was made at the earliest: its
// definition must be durable before them.
const keptPerSync = 4

// definitionSyncer makes the definitions of streams and consumers durable where the server does
// not: in ProfileDev, and in ProfileSingle for streams that acknowledge before they write. The
// server writes them once, and a power cut up to 30 s later, when the kernel writes them back by
// itself, leaves an empty file. Then the stream could not be recovered, with all its synced
// messages, and the whole store would be refused.
//
// Considered: to sync everything. Considered: to sync when a stream is made. Others make streams
// too.
//
// It looks several times a second, so a look must cost little where there are many streams. The
// server replaces a definition by renaming, which changes the time of its folder: a folder that has
// its time of the last look holds nothing new. Reading all folders in each look was left: with 100
// task lists, of three consumers each, that took a seventh of the server's CPU.
type definitionSyncer struct {
	dir     string // of JetStream
	defined *defined
	folders map[string]*syncedFolder
	listed  bool // this look has read a folder anew
}

// syncedFolder is what is known of one, as of its time. Zero times are not known.
type syncedFolder struct {
	changed time.Time
	names   []string             // of the folders below
	synced  map[string]time.Time // times of its definitions
	looked  bool                 // in this look
}

// folderGrain is how long a folder may change without changing its time: no file system of ours is
// coarser.
const folderGrain = 100 * time.Millisecond

// definitionFiles define a stream or a consumer, each in its folder.
var definitionFiles = []string{
	server.JetStreamMetaFile, server.JetStreamMetaFileSum, server.JetStreamMetaFileKey,
}

func newDefinitionSyncer(storeDir string, d *defined) *definitionSyncer {
	return &definitionSyncer{
		dir: filepath.Join(storeDir, server.JetStreamStoreDir), defined: d,
		folders: make(map[string]*syncedFolder),
	}
}

// syncAll syncs what has changed since the last call, and notes the streams whose definitions are
// durable. A file that is gone by then was deleted or is being replaced.
func (k *definitionSyncer) syncAll() error {
	var failed error
	var durable []string
	k.listed = false
	for _, account := range k.below(k.dir) {
		streams := filepath.Join(k.dir, account, "streams")
		for _, name := range k.below(streams) {
			stream := filepath.Join(streams, name)
			if err := k.sync(stream); err != nil {
				failed = errors.Join(failed, err)
			} else if k.folders[stream].defined() {
				durable = append(durable, account+"/"+name)
			}
			consumers := filepath.Join(stream, "obs")
			for _, name := range k.below(consumers) {
				failed = errors.Join(failed, k.sync(filepath.Join(consumers, name)))
			}
		}
	}
	for dir, f := range k.folders {
		if k.listed && !f.looked { // it is gone
			delete(k.folders, dir)
		}
		f.looked = false
	}
	return errors.Join(failed, k.defined.note(durable))
}

// defined tells whether both files of a definition are synced.
func (f *syncedFolder) defined() bool {
	return f != nil && !f.synced[server.JetStreamMetaFile].IsZero() &&
		!f.synced[server.JetStreamMetaFileSum].IsZero()
}

// look tells whether a folder may hold something new; nil if it is gone.
func (k *definitionSyncer) look(dir string) (f *syncedFolder, changed time.Time, news bool) {
	fi, err := os.Stat(dir)
	if err != nil {
		return nil, changed, false
	}
	if f = k.folders[dir]; f == nil {
		f = &syncedFolder{}
		k.folders[dir] = f
	}
	f.looked = true
	if f.changed.Equal(fi.ModTime()) {
		return f, f.changed, false
	}
	f.changed = time.Time{} // until all of it is dealt with
	if time.Since(fi.ModTime()) > folderGrain {
		changed = fi.ModTime()
	}
	return f, changed, true
}

// below are the names in a folder of folders.
func (k *definitionSyncer) below(dir string) []string {
	f, changed, news := k.look(dir)
	if f == nil || !news {
		return names(f)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names(f)
	}
	k.listed, f.names, f.changed = true, nil, changed
	for _, e := range entries {
		if e.IsDir() {
			f.names = append(f.names, e.Name())
		}
	}
	return f.names
}

func names(f *syncedFolder) []string {
	if f == nil {
		return nil
	}
	return f.names
}

// sync syncs the definitions in a folder that have changed.
func (k *definitionSyncer) sync(dir string) (failed error) {
	f, changed, news := k.look(dir)
	if !news {
		return nil
	}
	for _, name := range definitionFiles {
		path := filepath.Join(dir, name)
		fi, err := os.Stat(path)
		if err != nil || f.synced[name].Equal(fi.ModTime()) {
			continue
		}
		if err := syncPath(path); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if f.synced == nil {
			f.synced = make(map[string]time.Time, len(definitionFiles))
		}
		f.synced[name] = fi.ModTime()
	}
	if failed == nil {
		f.changed = changed
	}
	return failed
}

func syncPath(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// keepDefinitions runs a definition syncer until quit is closed, with a last look then.
func (s *Server) keepDefinitions(quit <-chan struct{}) {
	k := newDefinitionSyncer(s.store.dir, &s.defined)
	tick := time.NewTicker(cmp.Or(s.opts.SyncInterval, devSyncInterval) / keptPerSync)
	defer tick.Stop()
	complained := false
	for last := false; !last; {
		select {
		case <-quit:
			last = true
		case <-tick.C:
		}
		err := k.syncAll()
		if err != nil && !complained {
			s.log.WithField("err", err).
				Warn("embedded server: the definitions of streams cannot be synced; a power cut " +
					"could make the store unusable")
		}
		complained = err != nil
	}
}
