package embedded

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"
)

// Profile is a choice of durability. Values are append-only.
type Profile int

const (
	// ProfileDev syncs files once a SyncInterval: kill -9 loses nothing that was acknowledged, a
	// power cut up to that.
	ProfileDev Profile = iota + 1
	// ProfileSingle syncs each write before it is acknowledged: nothing is lost by a power cut.
	// Streams that acknowledge before they write (persist_mode async) are synced as in ProfileDev.
	ProfileSingle
	// ProfileCluster is that of a node of a [Cluster]: each write is synced by more than half of
	// the nodes before it is acknowledged. Nothing is lost by the loss of fewer than half of them,
	// nor by a power cut of all. Less than sync always is not offered: one node that forgets its
	// tail in a crash can then outvote the one that has it.
	ProfileCluster
)

// String returns the name that the command line uses.
func (p Profile) String() string {
	switch p {
	case ProfileDev:
		return "dev"
	case ProfileSingle:
		return "single"
	case ProfileCluster:
		return "cluster"
	default:
		return fmt.Sprintf("Profile(%d)", int(p))
	}
}

const (
	defaultHost       = "127.0.0.1"
	defaultPort       = 4222
	randomPort        = -1
	defaultMaxPayload = 1 << 20
	// Messages stay 64 KiB below the server's limit, so that a smaller one would leave too little
	// for a record.
	minMaxPayload = 128 << 10
	// The server refuses a payload above what it buffers for one connection (MAX_PENDING_SIZE).
	maxMaxPayload = 64 << 20
	// The limit of a memory store. The server's own choice, three quarters of the machine, suits no
	// laptop.
	defaultMemory     = 1 << 30
	minMaxStore       = 16 << 20
	maxServerName     = 64
	devSyncInterval   = time.Second
	minSyncInterval   = 10 * time.Millisecond
	maxSyncInterval   = 24 * time.Hour
	serverNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
)

// Options of [Start]. The zero value is a memory store on 127.0.0.1:4222.
type Options struct {
	// StoreDir is the folder of the store; it is made when it is missing. Empty means a store in
	// memory, whose temporary folder is removed at Shutdown. Defaults to "".
	StoreDir string
	// Profile is the durability. Defaults to ProfileSingle with a StoreDir, to ProfileDev without,
	// and to ProfileCluster with a Cluster.
	Profile Profile
	// SyncInterval is the time between two syncs of ProfileDev, from 10 ms to 24 h; a power cut
	// loses up to it. Each sync costs 80 µs a stream even when nothing was written: a day of
	// virtual time with 15 file streams takes two minutes at 1 s, and half a second at 1 h.
	// Defaults to 1 s.
	SyncInterval time.Duration
	// Host is the address to listen on. The server has no authentication, so that only loopback is
	// safe. Defaults to 127.0.0.1.
	Host string
	// Port is the port to listen on; -1 takes a free one. Defaults to 4222.
	Port int
	// DontListen serves in-process connections only; Host and Port are then not used. It is
	// required inside a testing/synctest bubble. Defaults to false.
	DontListen bool
	// MaxPayload is the size in bytes of the largest message, from 128 KiB to 64 MiB. Defaults to 1
	// MiB.
	MaxPayload int
	// MaxStore limits the bytes of all streams, at least 16 MiB; a publish beyond it is refused.
	// Defaults to what the store takes at the start and three quarters of the disk space that is
	// free then; in memory to 1 GiB.
	MaxStore int64
	// ServerName is the server's name in monitoring: up to 64 letters, digits, '-', '_' and '.'.
	// Each node of a cluster must have its own, and keep it. Defaults to that of the last start in
	// a cluster, or to "drover-" and the first 8 characters of the store id.
	ServerName string
	// Cluster makes it a node of a cluster, which needs a StoreDir. Defaults to none.
	Cluster Cluster
	// Logger receives the server's warnings and errors; its notices at debug level. Defaults to
	// none.
	Logger logrus.FieldLogger
}

// String prints the options as one line of words, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	words := []string{"store=" + cmp.Or(o.StoreDir, "memory"), "profile=" + o.Profile.String()}
	if o.Profile == ProfileDev && o.StoreDir != "" {
		words = append(words, "sync="+o.SyncInterval.String())
	}
	switch {
	case o.DontListen:
		words = append(words, "listen=none")
	case o.Port == randomPort:
		words = append(words, "listen="+o.Host+":random")
	default:
		words = append(words, "listen="+net.JoinHostPort(o.Host, fmt.Sprint(o.Port)))
	}
	words = append(words, fmt.Sprintf("max-payload=%d", o.MaxPayload))
	if o.MaxStore > 0 {
		words = append(words, fmt.Sprintf("max-store=%d", o.MaxStore))
	} else {
		words = append(words, "max-store=free-disk")
	}
	if o.Cluster.on() {
		words = append(words, "cluster="+o.Cluster.String())
	}
	return strings.Join(words, " ")
}

func (o Options) withDefaults() Options {
	if o.Cluster.on() {
		o.Profile = cmp.Or(o.Profile, ProfileCluster)
		o.Cluster = o.Cluster.withDefaults()
	}
	if o.StoreDir == "" {
		o.Profile = cmp.Or(o.Profile, ProfileDev)
		o.MaxStore = cmp.Or(o.MaxStore, defaultMemory)
	}
	o.Profile = cmp.Or(o.Profile, ProfileSingle)
	if o.Profile == ProfileDev {
		o.SyncInterval = cmp.Or(o.SyncInterval, devSyncInterval)
	}
	o.Host = cmp.Or(o.Host, defaultHost)
	o.Port = cmp.Or(o.Port, defaultPort)
	o.MaxPayload = cmp.Or(o.MaxPayload, defaultMaxPayload)
	return o
}

// validate judges options that have their defaults.
// Validate judges the options as [Start] does, before anything is made.
//
// Errors: [ErrInvalidOptions].
func (o Options) Validate() error { return o.withDefaults().validate() }

// validate judges options that have their defaults.
func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Profile < ProfileDev || o.Profile > ProfileCluster:
		return bad("Profile is %d: use ProfileDev (%d), ProfileSingle (%d) or ProfileCluster (%d)",
			o.Profile, ProfileDev, ProfileSingle, ProfileCluster)
	case o.Cluster.given() && !o.Cluster.on():
		return bad(
			"Cluster.Name is empty and other fields of Cluster are not: use the name that all " +
				"nodes have, or leave out Cluster")
	case o.Cluster.on() && o.StoreDir == "":
		return bad(
			"StoreDir is empty: use a folder; a node in memory forgets its votes when it is started again")
	case (o.Profile == ProfileCluster) != o.Cluster.on():
		return bad(
			"Profile is %v and Cluster.Name is %q: use ProfileCluster with a cluster and only with one",
			o.Profile, o.Cluster.Name)
	case o.Profile == ProfileSingle && o.StoreDir == "":
		return bad(
			"Profile is single, which survives a power cut, and StoreDir is empty: name a folder, or use ProfileDev")
	case o.Profile != ProfileDev && o.SyncInterval != 0:
		return bad(
			"SyncInterval is %v, and Profile %v syncs each write: leave it out, or use ProfileDev",
			o.SyncInterval, o.Profile)
	case o.Profile == ProfileDev && (o.SyncInterval < minSyncInterval || o.SyncInterval > maxSyncInterval):
		return bad("SyncInterval is %v: use %v to %v, or 0 for %v",
			o.SyncInterval, minSyncInterval, maxSyncInterval, devSyncInterval)
	case strings.ContainsRune(o.StoreDir, 0):
		return bad("StoreDir %q has a zero byte: use the path of a folder", o.StoreDir)
	case o.Port < randomPort || o.Port > 65535:
		return bad("Port is %d: use 1 to 65535, -1 for a random one or 0 for %d",
			o.Port, defaultPort)
	case !validHost(o.Host):
		return bad(
			"Host is %q: use an IP address or a host name without port; the port goes into Port",
			o.Host)
	case o.MaxPayload < minMaxPayload || o.MaxPayload > maxMaxPayload:
		return bad("MaxPayload is %d bytes: use %d to %d, or 0 for %d",
			o.MaxPayload, minMaxPayload, maxMaxPayload, defaultMaxPayload)
	case o.MaxStore != 0 && o.MaxStore < minMaxStore:
		return bad("MaxStore is %d bytes: use at least %d, or 0 for the default",
			o.MaxStore, minMaxStore)
	case len(o.ServerName) > maxServerName || strings.Trim(o.ServerName, serverNameLetters) != "":
		return bad("ServerName is %q: use up to %d letters, digits, '-', '_' and '.'",
			o.ServerName, maxServerName)
	case o.Cluster.on() && o.DontListen:
		return bad(
			"DontListen is set and Cluster.Name is %q: use a Port, -1 for a random one; the "+
				"server opens no routes before it listens", o.Cluster.Name)
	case o.Cluster.on() && o.Port == o.Cluster.Port:
		return bad("Port and Cluster.Port are both %d: use two", o.Port)
	}
	if o.Cluster.on() {
		return o.Cluster.validate()
	}
	return nil
}

func validHost(h string) bool {
	if _, err := netip.ParseAddr(h); err == nil {
		return true
	}
	return !strings.ContainsFunc(h,
		func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(":/@[]", r) })
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// serverOptions translates. Only what differs from the server's defaults is named.
func (s *Server) serverOptions() *server.Options {
	o := s.opts
	so := &server.Options{
		ServerName:             cmp.Or(o.ServerName, "drover-"+strings.ToLower(s.store.id[:8])),
		Host:                   o.Host,
		Port:                   o.Port,
		DontListen:             o.DontListen,
		MaxPayload:             int32(o.MaxPayload),
		NoSigs:                 true,
		NoLog:                  true,
		NoSublistCache:         true, // most subjects are seen once (ADR 0046)
		JetStream:              true,
		DisableJetStreamBanner: true,
		StoreDir:               s.store.dir,
		JetStreamMaxMemory:     defaultMemory,
		JetStreamMaxStore:      cmp.Or(o.MaxStore, roomOnDisk(s.store.dir)),
	}
	if s.store.temporary {
		so.JetStreamMaxMemory = o.MaxStore
	}
	switch o.Profile {
	case ProfileDev:
		so.SyncInterval = o.SyncInterval
	case ProfileSingle:
		so.SyncAlways = true
		// of streams that acknowledge before they write: less of them comes back after a power cut
		so.SyncInterval = devSyncInterval
	case ProfileCluster:
		so.SyncAlways = true
	}
	o.Cluster.apply(so)
	return so
}
