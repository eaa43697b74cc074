package natsconn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/droverhq/drover/internal/virtual"
)

// hearing are the users of a server where one may hear these subjects.
func hearing(subjects ...string) []*server.User {
	return []*server.User{
		{Username: "root", Password: "p"},
		{Username: "hears", Password: "p", Permissions: &server.Permissions{Subscribe: &server.SubjectPermission{Allow: subjects}}},
	}
}

// What a reload takes away is heard again when another gives it back; until then it is asked for, and what is heard stays as it is.
func TestTakenSubscriptionComesBack(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		o := serverOptions(t)
		o.Users = hearing("_INBOX.>", "work", "more", "never.not")
		srv, stop := start(t, o)
		t.Cleanup(stop)
		c, root := dial(t, Options{InProcess: srv, User: "hears", Password: "p"}), dial(t, Options{InProcess: srv, User: "root", Password: "p"})
		heard := make(chan string, 9)
		for _, s := range []string{"work", "more", "never"} {
			if _, err := c.Subscribe(s, map[bool]string{true: "queue"}[s == "work"], func(m Msg) { heard <- m.Subject }); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		allow := func(subjects ...string) {
			next := o.Clone()
			next.Users = hearing(subjects...)
			if err := srv.ReloadOptions(next); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * regainFirst)
		}
		want := func(subjects ...string) {
			t.Helper()
			for _, s := range []string{"more", "never", "work"} {
				if err := root.Publish(s, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			var got []string
			for len(heard) > 0 {
				got = append(got, <-heard)
			}
			if slices.Sort(got); !slices.Equal(got, subjects) {
				t.Fatalf("got %v, want %v", got, subjects)
			}
		}
		want("more", "work")
		dials := c.Dials()
		allow("other")
		want()
		if n := c.Dials(); n != dials {
			t.Fatalf("connected %d times anew for what is not granted", n-dials)
		}
		allow("_INBOX.>", "work")
		want("work")
		if _, err := c.StreamLastSeq(t.Context(), "S"); err == nil || c.hears() != nil {
			t.Fatalf("got %v, %v, want no such stream and an inbox", err, c.hears())
		}
		allow("_INBOX.>", "work", "more")
		want("more", "work")
		dials = c.Dials()
		time.Sleep(6 * regainFirst)
		if n := c.Dials(); n != dials {
			t.Fatalf("connected %d times anew, with all that had been granted, for what was refused from the beginning", n-dials)
		}
	})
}

// What is beyond the subscriptions that the server takes is heard when there is room for it; until then nothing is made anew.
func TestSubscriptionTooManyComesBack(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		o := serverOptions(t)
		o.MaxSubs = 3 // the reply inbox is one
		srv, stop := start(t, o)
		t.Cleanup(stop)
		c, other := dial(t, Options{InProcess: srv}), dial(t, Options{InProcess: srv})
		heard := make(chan string, 9)
		subs := map[string]Subscription{}
		for _, s := range []string{"first", "second", "third"} {
			sub, err := c.Subscribe(s, "", func(m Msg) { heard <- m.Subject })
			if err != nil {
				t.Fatal(err)
			}
			subs[s] = sub
		}
		dials := c.Dials()
		time.Sleep(6 * regainFirst)
		if n := c.Dials(); n != dials {
			t.Fatalf("connected %d times anew, with no room", n-dials)
		}
		subs["first"].Close()
		time.Sleep(12 * regainFirst)
		for _, s := range []string{"first", "second", "third"} {
			if err := other.Publish(s, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := []string{}
		for len(heard) > 0 {
			got = append(got, <-heard)
		}
		if slices.Sort(got); !slices.Equal(got, []string{"second", "third"}) {
			t.Fatalf("got %v, want what was one subscription too many too, as there is room", got)
		}
		if n := c.Dials(); n != dials+1 {
			t.Fatalf("connected %d times anew, want once", n-dials)
		}
	})
}
