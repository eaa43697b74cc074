package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/freeport"
	"github.com/droverhq/drover/internal/poll"
)

// trio are the options of three nodes.
func trio(t *testing.T) (all [3]embedded.Options) {
	t.Helper()
	ports, err := freeport.Several(3)
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, p := range ports {
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", p))
	}
	for i := range all {
		all[i] = embedded.Options{
			StoreDir: t.TempDir(), Port: -1,
			Cluster: embedded.Cluster{Name: "c", Routes: routes, Port: ports[i], User: "u", Password: "p"},
		}
	}
	return all
}

func await(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.AwaitCluster(ctx, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
}

// put makes the stream s with three copies, or finds it, and stores a message. A cluster that has just begun takes a moment.
func put(t *testing.T, s *embedded.Server) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s.Conn()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, time.Minute, "a stream with three copies takes a message", func() bool {
		_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s.>"}, Replicas: 3})
		if err == nil {
			_, err = js.Publish(t.Context(), "s.a", []byte("x"))
		}
		return err == nil
	})
}

// A node starts before the others are there, tells how many it sees, and follows the leader once there is one. A node that
// is left alone says so.
func TestClusterOfThree(t *testing.T) {
	o := trio(t)
	first, err := embedded.Start(t.Context(), o[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Shutdown)
	if err := first.Quorum(); !errors.Is(err, embedded.ErrNoQuorum) || !strings.Contains(err.Error(), "sees 1 of 3 servers of cluster c") {
		t.Fatalf("got %v, want no quorum with 1 of 3", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	var said []int
	err = first.AwaitCluster(ctx, func(seen, size int) { said = append(said, seen, size); cancel(stop) })
	if !errors.Is(err, stop) || len(said) != 2 || said[0] != 1 || said[1] != 3 {
		t.Fatalf("got %v and told %v, want that 1 of 3 nodes are seen, and the cause of the end", err, said)
	}
	servers := []*embedded.Server{first}
	for i := 1; i < 3; i++ {
		s, err := embedded.Start(t.Context(), o[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Shutdown)
		servers = append(servers, s)
	}
	for _, s := range servers {
		await(t, s)
		if s.Profile() != embedded.ProfileCluster || !s.Clustered() || s.ClusterName() != "c" || !strings.HasPrefix(s.ServerName(), "drover-") {
			t.Fatalf("got profile %v, clustered %v, cluster %q, server %q", s.Profile(), s.Clustered(), s.ClusterName(), s.ServerName())
		}
	}
	poll.Until(t, time.Minute, "all nodes see each other", func() bool {
		for _, s := range servers {
			if seen, size := s.Seen(); seen != 3 || size != 3 || s.Quorum() != nil {
				return false
			}
		}
		return true
	})
	put(t, first)
	poll.Until(t, time.Minute, "all copies are there", func() bool {
		for i := range o {
			if dirs, _ := filepath.Glob(filepath.Join(o[i].StoreDir, "jetstream", "*", "streams", "s")); len(dirs) != 1 {
				return false
			}
		}
		return true
	})

	var wg sync.WaitGroup
	for _, s := range servers[1:] {
		wg.Go(s.Shutdown)
	}
	wg.Wait()
	poll.Until(t, time.Minute, "the last node has lost the quorum", func() bool { return first.Quorum() != nil })
	first.Shutdown()
	storesAreBound(t, o[0])
	lostStreamIsRefused(t, o)
}

// storesAreBound starts the store of a node as what it is not.
func storesAreBound(t *testing.T, o embedded.Options) {
	t.Helper()
	alone := embedded.Options{StoreDir: o.StoreDir, DontListen: true}
	refused(t, alone, embedded.ErrStoreBound, "cluster c", "Cluster.Name c", "another StoreDir")
	elsewhere := o
	elsewhere.Cluster.Name = "d"
	refused(t, elsewhere, embedded.ErrStoreBound, "cluster c, not of d", "another StoreDir")
	renamed := o
	renamed.ServerName = "other"
	refused(t, renamed, embedded.ErrStoreBound, "not of other", "set ServerName to it")
	path := filepath.Join(o.StoreDir, "cluster")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "{")
	refused(t, o, embedded.ErrStoreDamaged, path, "restore it")
	write(t, path, string(was))
}

// lostStreamIsRefused damages a copy of a stream: the node does not start and let the others believe that it has it.
func lostStreamIsRefused(t *testing.T, o [3]embedded.Options) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(o[0].StoreDir, "jetstream", "*", "streams", "s"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("got %v, %v, want one stream", dirs, err)
	}
	write(t, filepath.Join(dirs[0], "meta.inf"), "{")
	refused(t, o[0], embedded.ErrStoreDamaged, dirs[0], "move the whole store away", "fill this one anew")
}

// A cluster would delete the streams of a server of its own as orphans.
func TestStoreOfASingleServerIsRefused(t *testing.T) {
	o := trio(t)[0]
	s := start(t, embedded.Options{StoreDir: o.StoreDir})
	js := connect(t, s)
	makeStream(t, s, js, "history")
	if _, err := js.Publish(t.Context(), "history.a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	refused(t, o, embedded.ErrStoreBound, "history", "would delete", "without Cluster", "empty StoreDir")
	s = start(t, embedded.Options{StoreDir: o.StoreDir})
	if i, err := connect(t, s).Stream(t.Context(), "history"); err != nil || i.CachedInfo().State.Msgs != 1 {
		t.Fatalf("got %v, %v, want the message still there", i, err)
	}
}

func TestServerOfItsOwnHasAQuorum(t *testing.T) {
	s := start(t, embedded.Options{})
	seen, size := s.Seen()
	if err := s.AwaitCluster(t.Context(), nil); err != nil || s.Quorum() != nil || seen != 1 || size != 1 || s.Clustered() {
		t.Fatalf("got %v, %v, %d of %d, want a quorum of one", err, s.Quorum(), seen, size)
	}
}

func TestHostileClusters(t *testing.T) {
	dir := t.TempDir()
	routes := []string{"a:6222", "nats://b:6222", "nats://u:p@c:6222"}
	for _, tc := range []struct {
		field string
		o     embedded.Options
		c     embedded.Cluster
	}{
		{"Cluster.Name", embedded.Options{}, embedded.Cluster{Routes: routes}},
		{"Cluster.Name", embedded.Options{}, embedded.Cluster{Size: 3}},
		{"Cluster.Name", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "two words", Routes: routes}},
		{"StoreDir", embedded.Options{Profile: embedded.ProfileCluster}, embedded.Cluster{Name: "c", Routes: routes}},
		{"Profile", embedded.Options{StoreDir: dir, Profile: embedded.ProfileSingle}, embedded.Cluster{Name: "c", Routes: routes}},
		{"Profile", embedded.Options{StoreDir: dir, Profile: embedded.ProfileDev}, embedded.Cluster{Name: "c", Routes: routes}},
		{"Profile", embedded.Options{StoreDir: dir, Profile: embedded.ProfileCluster}, embedded.Cluster{}},
		{"SyncInterval", embedded.Options{StoreDir: dir, SyncInterval: time.Second}, embedded.Cluster{Name: "c", Routes: routes}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c"}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes[:1]}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Size: 5, Routes: routes}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: []string{"a:6222", "nats://a:6222", "b:6222"}}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: []string{"a", "b:6222"}}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: []string{"http://a:1", "b:6222"}}},
		{"Cluster.Routes", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: []string{"a:6222/x", "b:6222"}}},
		{"Cluster.Size", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Size: 2}},
		{"Cluster.Size", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Size: 8}},
		{"Cluster.Port", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Port: -1}},
		{"Cluster.Host", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Host: "h:1"}},
		{"Cluster.Advertise", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Advertise: "h"}},
		{"Cluster.User", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, User: "u"}},
		{"Cluster.Password", embedded.Options{StoreDir: dir}, embedded.Cluster{Name: "c", Routes: routes, Password: "p"}},
	} {
		t.Run(tc.field, func(t *testing.T) {
			tc.o.Cluster = tc.c
			refused(t, tc.o, embedded.ErrInvalidOptions, tc.field, "use ")
		})
	}
	refused(t, embedded.Options{StoreDir: dir, DontListen: true, Cluster: embedded.Cluster{Name: "c", Routes: routes}}, embedded.ErrInvalidOptions, "DontListen", "use a Port")
	o := embedded.Options{StoreDir: dir, Port: 6222, Cluster: embedded.Cluster{Name: "c", Routes: routes}}
	refused(t, o, embedded.ErrInvalidOptions, "Port and Cluster.Port", "use two")
	if s := o.String(); strings.Contains(s, "p@") || !strings.Contains(s, "cluster=c listen=127.0.0.1:6222 size=3 routes=a:6222,b:6222,c:6222") {
		t.Fatalf("got %q, want the cluster without a password", s)
	}
}

func TestClusterPortInUse(t *testing.T) {
	o := trio(t)[0]
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.Cluster.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused(t, o, embedded.ErrPortInUse, l.Addr().String(), "another Cluster.Port")
}
