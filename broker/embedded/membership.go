package embedded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrStoreBound reports a store that belongs to another kind of server, to another cluster, or to
// another server of it.
var ErrStoreBound = errors.New("store belongs to another server")

// memberFile stands in the store of a node, from before its first start in the cluster.
const memberFile = "cluster"

// member says whose store it is.
type member struct {
	Cluster string `json:"cluster"`
	Server  string `json:"server"`
}

// bind finds out whether the store may be used by this kind of server, and binds it to its cluster
// on the first start. It sets the server's name. It must run before the NATS server starts: that
// one deletes, as orphans, streams that its cluster does not know, and takes a member of a cluster
// for a server of its own without a word.
func (s *Server) bind() error {
	name := cmp.Or(s.opts.ServerName, "drover-"+strings.ToLower(s.store.id[:8]))
	c := s.opts.Cluster
	path := filepath.Join(s.store.dir, memberFile)
	have, err := readMember(path)
	if err != nil {
		return err
	}
	switch {
	case have == nil && !c.on():
	case have == nil:
		if streams := s.streamsOnDisk(); len(streams) > 0 {
			return fmt.Errorf(
				"%w: %s holds %d streams of a single server, such as %s, which cluster %s would delete: "+
					"start it without Cluster to use them, or choose an empty StoreDir",
				ErrStoreBound,
				s.store.dir,
				len(streams),
				streams[0].name,
				c.Name,
			)
		}
		if err := writeMember(path, member{c.Name, name}); err != nil {
			return unusable(s.store.dir, err)
		}
	case !c.on():
		return fmt.Errorf(
			"%w: %s is that of server %s of cluster %s: start it with Cluster.Name %s and its "+
				"Routes, or choose another StoreDir", ErrStoreBound, s.store.dir, have.Server,
			have.Cluster, have.Cluster)
	case have.Cluster != c.Name:
		return fmt.Errorf(
			"%w: %s is that of cluster %s, not of %s: set Cluster.Name to %s, or choose another StoreDir",
			ErrStoreBound, s.store.dir, have.Cluster, c.Name, have.Cluster)
	case s.opts.ServerName != "" && s.opts.ServerName != have.Server:
		return fmt.Errorf(
			"%w: %s is that of server %s of cluster %s, not of %s: the cluster knows it by that "+
				"name, set ServerName to it, or choose another StoreDir", ErrStoreBound,
			s.store.dir, have.Server, have.Cluster, s.opts.ServerName)
	default:
		name = have.Server
	}
	s.opts.ServerName = name
	return nil
}

func readMember(path string) (*member, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusable(filepath.Dir(path), err)
	}
	var m member
	if err := json.Unmarshal(b, &m); err != nil || m.Cluster == "" || m.Server == "" {
		return nil, fmt.Errorf(
			"%w: %s does not name a cluster and a server: restore it from a backup, or write "+
				"{\"cluster\":…,\"server\":…} as the other nodes know them", ErrStoreDamaged, path)
	}
	return &m, nil
}

func writeMember(path string, m member) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeDurably(path, string(b)+"\n")
}

// streamDir is the folder of a stream.
type streamDir struct{ account, name, dir string }

// streamsOnDisk lists the folders of streams, those with and those without messages.
func (s *Server) streamsOnDisk() []streamDir {
	var all []streamDir
	root := filepath.Join(s.store.dir, server.JetStreamStoreDir)
	for _, d := range matches(root, "*", "streams", "*") {
		name := filepath.Base(d)
		if strings.HasPrefix(name, ".") {
			continue // being removed
		}
		all = append(all,
			streamDir{account: filepath.Base(filepath.Dir(filepath.Dir(d))), name: name, dir: d})
	}
	slices.SortFunc(all, func(a, b streamDir) int { return cmp.Compare(a.dir, b.dir) })
	return all
}

// matches lists the paths below a folder whose names fit patterns, which are well formed. The path
// of the folder is none.
func matches(dir string, patterns ...string) []string {
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
	found, _ := filepath.Glob(filepath.Join(escaped, filepath.Join(patterns...)))
	return found
}

// unrecovered lists the folders of streams that hold messages and that a node of a cluster has not
// recovered. The server's own health check speaks of streams only once there is a leader, and by
// then has begun to fill them anew from the others: with an empty log under a vote that counts, so
// that two nodes with such a loss could outvote the third.
func (s *Server) unrecovered(before []streamDir) []string {
	have := map[string]map[string]bool{}
	var lost []string
	for _, d := range before {
		if have[d.account] == nil {
			have[d.account] = s.streamsOf(d.account)
		}
		if !have[d.account][d.name] && hasMessages(d.dir) {
			lost = append(lost, d.dir)
		}
	}
	return lost
}

func (s *Server) streamsOf(account string) map[string]bool {
	names := map[string]bool{}
	if detail, err := s.srv.JszAccount(&server.JSzOptions{Account: account, Streams: true}); err == nil {
		for _, st := range detail.Streams {
			names[st.Name] = true
		}
	}
	return names
}
