// Package embeddedtest runs NATS servers with JetStream for tests: with users of narrow
// permissions, for tests of what each may do, by [Start]; and that of package embedded, which has
// no users, by [Serve], with connections to it, by [Connect] and [Dial].
//
// It is for test files only. Call embedded.RegisterTicker in TestMain, outside every synctest
// bubble.
package embeddedtest

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
)

// Password is that of every user.
const Password = "secret"

// Root may do everything.
const Root = "root"

// User is one with permissions. An empty list allows nothing.
type User struct {
	Name               string
	Publish, Subscribe []string
}

// Start runs a server until the test ends. With listen it has an address on loopback, which a
// synctest bubble forbids. Besides the given users there is Root.
func Start(t testing.TB, listen bool, users ...User) (conn nats.InProcessConnProvider, url string) {
	t.Helper()
	o := &server.Options{DontListen: !listen, Users: withRoot(users)}
	s := run(t, o)
	return door{s, o}, s.ClientURL()
}

// StartOpen is [Start] without an address, for a server to which whoever gives no credentials is
// Root.
func StartOpen(t testing.TB, users ...User) nats.InProcessConnProvider {
	t.Helper()
	o := &server.Options{DontListen: true, Users: withRoot(users), NoAuthUser: Root}
	return door{run(t, o), o}
}

// door is the server that [Start] runs, with the options that a reload begins from.
type door struct {
	*server.Server
	o *server.Options
}

// Grant gives a server of [Start] other users while it runs, as a reload of its configuration does.
func Grant(t testing.TB, conn nats.InProcessConnProvider, users ...User) {
	t.Helper()
	d := conn.(door)
	next := d.o.Clone()
	next.Users = withRoot(users)
	if next.Port == 0 { // it does not listen; what stands here for that is the default to a reload
		next.Port = server.RANDOM_PORT
	}
	if err := d.ReloadOptions(next); err != nil {
		t.Fatal(err)
	}
}

func withRoot(users []User) []*server.User {
	all := []*server.User{{Username: Root, Password: Password}}
	for _, u := range users {
		all = append(all,
			&server.User{Username: u.Name, Password: Password, Permissions: &server.Permissions{
				Publish: allow(u.Publish), Subscribe: allow(u.Subscribe),
			}})
	}
	return all
}

// StartSmall is [Start] with listen, for a server without users whose messages have at most so many
// bytes.
func StartSmall(t testing.TB, maxPayload int32) (url string) {
	t.Helper()
	return run(t, &server.Options{MaxPayload: maxPayload}).ClientURL()
}

func run(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", -1, true, t.TempDir(), true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		// for the clocks of bubbles: see rest in package embedded
		time.Sleep(time.Millisecond + 17*time.Nanosecond)
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s
}

// Limits of an account, or of a tier of one.
type Limits = server.JetStreamAccountLimits

// StartTiered is [Start] with listen, for an account whose limits are those of one tier, such as R1
// for streams of one replica, as accounts of hosted servers have them. The address names [Root].
func StartTiered(t testing.TB, tier string, limits Limits) (url string) {
	t.Helper()
	conn, url := Start(t, true)
	Limit(t, conn, tier, limits)
	return strings.Replace(url, "://", "://"+Root+":"+Password+"@", 1)
}

// Limit gives the account of a server without accounts limits: those of a tier, or of all of it if
// that is "".
func Limit(t testing.TB, conn nats.InProcessConnProvider, tier string, limits Limits) {
	t.Helper()
	account := conn.(interface{ GlobalAccount() *server.Account }).GlobalAccount()
	if err := account.UpdateJetStreamLimits(map[string]Limits{tier: limits}); err != nil {
		t.Fatal(err)
	}
}

// Disable takes JetStream from the account of a server without accounts, as a reload of its
// configuration does that leaves it out. What it returns gives it back, with what is on disk.
func Disable(t testing.TB, conn nats.InProcessConnProvider) (enable func()) {
	t.Helper()
	a := conn.(interface{ GlobalAccount() *server.Account }).GlobalAccount()
	if err := a.DisableJetStream(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := a.EnableJetStream(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Serve runs a server without users, as package embedded does, until the test ends.
func Serve(t testing.TB, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

// Connect connects to such a server within the process, until the test ends.
func Connect(t testing.TB, s *embedded.Server) *natsconn.Conn {
	t.Helper()
	return Through(t, s.Conn())
}

// Through connects by way of what gives connections, such as a wire of package cutwire, until the
// test ends.
func Through(t testing.TB, p nats.InProcessConnProvider) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{InProcess: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// As connects to a server of [Start] as one of its users, for the length of the test.
func As(t testing.TB, srv nats.InProcessConnProvider, user string) *natsconn.Conn {
	t.Helper()
	conn, err := natsconn.Dial(t.Context(),
		natsconn.Options{InProcess: srv, User: user, Password: Password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// Dial connects to a server in memory of its own.
func Dial(t testing.TB) *natsconn.Conn {
	t.Helper()
	return Connect(t, Serve(t, embedded.Options{DontListen: true}))
}

// allow makes an empty list mean nothing; to the server it means everything.
func allow(subjects []string) *server.SubjectPermission {
	if len(subjects) == 0 {
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: subjects}
}
