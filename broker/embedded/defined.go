package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// definedFile names the streams whose definitions are durable, as account/stream, one a line.
	definedFile = "defined"
	// tornFolder keeps, within the store, what was set aside.
	tornFolder = "torn"
)

// defined remembers for good which streams have a durable definition. A torn definition of one of
// them is damage, and the store is refused. A torn one of any other was written in the moment
// before the power went, and so was all that the stream holds: the profile that leaves a definition
// unsynced promises nothing of that moment, and the start goes on without the stream.
//
// Only its server's syncer notes, one look after the other.
type defined struct {
	path string
	// nil: a store from before there was such a file; everything counts as durable
	names map[string]bool
}

// openDefined reads the file; a store without streams gets one. No syncer runs on a store that ends
// with the server, nor for a node of a cluster: they have none.
func (s *Server) openDefined() (defined, error) {
	d := defined{path: filepath.Join(s.store.dir, definedFile)}
	if s.store.temporary || s.opts.Cluster.on() {
		return d, nil
	}
	b, err := os.ReadFile(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(s.streamsOnDisk()) > 0:
		return d, nil
	case errors.Is(err, fs.ErrNotExist):
		d.names = make(map[string]bool)
		return d, writeDurably(d.path, "")
	case err != nil:
		return d, err
	}
	d.names = make(map[string]bool)
	for name := range strings.Lines(string(b)) {
		d.names[strings.TrimSuffix(name, "\n")] = true
	}
	return d, nil
}

// has tells whether the definition of a stream was durable once.
func (d *defined) has(st streamDir) bool {
	return d.names == nil || d.names[st.account+"/"+st.name]
}

// note makes it durable that these streams are the defined ones.
func (d *defined) note(names []string) error {
	if d.names != nil && len(names) == len(d.names) &&
		!slices.ContainsFunc(names, func(n string) bool { return !d.names[n] }) {
		return nil
	}
	slices.Sort(names)
	text := strings.Join(names, "\n")
	if text != "" {
		text += "\n"
	}
	if err := writeDurably(d.path, text); err != nil {
		return err
	}
	d.names = make(map[string]bool, len(names))
	for _, n := range names {
		d.names[n] = true
	}
	return nil
}
