package natsconn

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/poll"
)

// domains runs a server of the domain hub, and a leaf of it that has the domain given, or without one no JetStream.
func domains(t *testing.T, leafDomain string) (hub, leaf *server.Server) {
	t.Helper()
	o := listening(t)
	o.JetStreamDomain, o.LeafNode.Host, o.LeafNode.Port = "hub", "127.0.0.1", -1
	hub, stop := start(t, o)
	t.Cleanup(stop)
	to := &url.URL{Scheme: "nats", Host: net.JoinHostPort(o.LeafNode.Host, strconv.Itoa(o.LeafNode.Port))} // the server has filled in the port
	o = listening(t)
	o.JetStream, o.JetStreamDomain = leafDomain != "", leafDomain
	o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{to}}}
	leaf, stop = start(t, o)
	t.Cleanup(stop)
	poll.Until(t, time.Minute, "the leaf's connection", func() bool { return leaf.NumLeafNodes() == 1 && hub.NumLeafNodes() == 1 })
	return hub, leaf
}

func dialDomain(t *testing.T, s *server.Server, domain string) *Conn {
	t.Helper()
	o := Options{URL: s.ClientURL()}
	if domain != "" {
		o.APIPrefix = "$JS." + domain + ".API"
	}
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The subjects of buckets do not cross from a leaf node into another domain, only those of the API do. A bucket is written from there all the same,
// and not one of the same name that the leaf has.
func TestBucketOfAnotherDomain(t *testing.T) {
	for _, own := range []string{"leaf", ""} {
		hub, leaf := domains(t, own)
		make := func(s *server.Server, domain string) *Conn {
			c := dialDomain(t, s, domain)
			if _, err := c.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", LimitMarkerTTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			return c
		}
		there, local := make(hub, "hub"), (*Conn)(nil)
		if own != "" {
			local = make(leaf, own)
		}
		c := dialDomain(t, leaf, "hub")
		rev, err := c.KVCreate(t.Context(), "b", "k", []byte("1"), time.Hour)
		if err != nil {
			t.Fatalf("from a leaf of domain %q: %v", own, err)
		}
		if rev, err = c.KVUpdate(t.Context(), "b", "k", []byte("2"), rev, 0); err != nil {
			t.Fatalf("from a leaf of domain %q: %v", own, err)
		}
		if _, err := c.KVUpdate(t.Context(), "b", "k", []byte("3"), rev-1, 0); !errors.Is(err, ErrWrongSequence) {
			t.Errorf("from a leaf of domain %q: got %v after another's update, want ErrWrongSequence", own, err)
		}
		if got, at, err := there.KVGet(t.Context(), "b", "k"); string(got) != "2" || at != rev || err != nil {
			t.Errorf("from a leaf of domain %q: got %q at %d (%v) in the hub, want 2 at %d", own, got, at, err, rev)
		}
		if err := c.KVDelete(t.Context(), "b", "k", rev); err != nil {
			t.Errorf("from a leaf of domain %q: %v", own, err)
		}
		if keys, err := there.KVKeys(t.Context(), "b"); len(keys) != 0 || err != nil {
			t.Errorf("from a leaf of domain %q: got the keys %v (%v) after the deletion, want none", own, keys, err)
		}
		if local != nil {
			if got, rev, err := local.KVLast(t.Context(), "b", "k"); got != nil || rev != 0 || err != nil {
				t.Errorf("got %q at %d (%v) in the leaf's own bucket, want nothing", got, rev, err)
			}
		}
	}
}

// Whoever is connected to a server of the domain needs no right but that to the subjects of the bucket.
func TestBucketOfTheOwnDomain(t *testing.T) {
	o := listening(t)
	o.JetStreamDomain = "hub"
	o.Users = []*server.User{{Username: "root", Password: "p"}, {Username: "u", Password: "p", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{"$KV.b.>"}},
	}}}
	s, stop := start(t, o)
	t.Cleanup(stop)
	dial := func(user string) *Conn {
		c, err := Dial(t.Context(), Options{URL: s.ClientURL(), APIPrefix: "$JS.hub.API", User: user, Password: "p"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	root, u := dial("root"), dial("u")
	if _, err := root.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.KVUpdate(t.Context(), "b", "k", []byte("1"), 0, 0); err != nil {
		t.Error(err)
	}
}
