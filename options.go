package drover

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logs"
)

const (
	defaultURL       = "nats://127.0.0.1:4222"
	defaultNamespace = "default"
	// defaultTimeout outlasts both ways of losing an owner: its claim runs out (10 s), its stream
	// elects a leader (6 s).
	defaultTimeout = 15 * time.Second
	// maxTimeout leaves room to add how long a server may hold an answer back.
	maxTimeout = math.MaxInt64 - time.Hour
)

// Options of [Connect]. The zero value connects to a server on this machine. At most one way to
// authenticate may be given: CredsFile, NKeyFile, User and Password, or Token.
type Options struct {
	// URL is the address of NATS, or several with commas. Defaults to $NATS_URL, else to
	// nats://127.0.0.1:4222.
	URL string
	// Namespace is the tenant that this client talks to: up to 64 letters, digits, '-' and '_'.
	// Defaults to "default".
	Namespace string
	// Name is shown by the NATS server's list of connections, and as the identity in histories.
	// Defaults to the program's host name and process id.
	Name string
	// CredsFile is a file with a user JWT and its seed.
	CredsFile string
	// NKeyFile is a file with an NKEY seed.
	NKeyFile string
	// CAFile, CertFile and KeyFile are PEM files for TLS. CertFile and KeyFile belong together.
	CAFile, CertFile, KeyFile string
	// User, Password and Token are plain credentials.
	User, Password, Token string
	// InboxPrefix is the prefix of reply subjects, for users whose permissions demand one. Defaults
	// to "_INBOX".
	InboxPrefix string
	// APIPrefix is the prefix of the JetStream API, for domains and exports. Only what reads
	// JetStream itself needs it, such as workers. Defaults to "$JS.API".
	APIPrefix string
	// RetryOnFailedConnect makes [Connect] try again until its context ends, as long as no NATS
	// server can be reached; the Logger is told. What a server says, such as that it refuses the
	// credentials, is an error at once. Without it, so is a server that is away. Not used with
	// Conn.
	RetryOnFailedConnect bool
	// NamespaceMustExist ends a call with [ErrNotFound] at once if a server says that there is no
	// such namespace. Without it a call goes on asking, since a server that starts may be about to
	// make it.
	NamespaceMustExist bool
	// Timeout is how long a call keeps asking while nobody answers; ctx may end it sooner. A crash
	// of the server that owns a workflow takes up to 11 s to heal, so that a shorter one turns
	// crashes into errors. Defaults to 15 s.
	Timeout time.Duration
	// Logger receives lost connections and calls that wait for somebody to answer; workers of the
	// client that have none use it too. Defaults to one that writes warnings and errors to stderr:
	// lines on a terminal, JSON elsewhere. One with io.Discard says nothing.
	Logger logrus.FieldLogger
	// Conn is a connection that the program has, to use instead of making one. Close leaves it
	// open, and gives it its handlers back, which are called meanwhile too. The fields that say
	// where and as whom to connect must be empty. Give it nats.MaxReconnects(-1), since a client
	// cannot outlive its connection. Defaults to none.
	Conn *nats.Conn
}

func (o Options) withDefaults() Options {
	if o.Conn == nil {
		o.URL = cmp.Or(o.URL, os.Getenv("NATS_URL"), defaultURL)
	}
	o.Namespace = cmp.Or(o.Namespace, defaultNamespace)
	o.Name = cmp.Or(o.Name, defaultName())
	o.Timeout = min(cmp.Or(o.Timeout, defaultTimeout), maxTimeout)
	o.Logger = logs.Or(o.Logger)
	return o
}

// validate judges options that have their defaults. How to authenticate is judged by natsconn.Dial.
func (o Options) validate() error {
	if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return fmt.Errorf("Options.Namespace: %w", err)
	}
	if o.Timeout < 0 {
		return fmt.Errorf("%w: Options.Timeout is %v, want 0 for %v or more",
			natsconn.ErrInvalid, o.Timeout, defaultTimeout)
	}
	if o.Conn != nil && (o.URL != "" ||
		o.dial().String() != (natsconn.Options{Name: o.Name, APIPrefix: o.APIPrefix}).String()) {
		return fmt.Errorf(
			"%w: Options.Conn is given together with where or how to connect: leave out one of them",
			natsconn.ErrInvalid)
	}
	return nil
}

// String prints the options as one line of words without secrets, for the log.
func (o Options) String() string {
	o = o.withDefaults()
	where := "conn=given"
	if o.Conn == nil {
		where = o.dial().String()
	}
	return fmt.Sprintf("namespace=%s timeout=%v %s", o.Namespace, o.Timeout, where)
}

func (o Options) dial() natsconn.Options {
	return natsconn.Options{
		URL: o.URL, Name: o.Name, CredsFile: o.CredsFile, NKeyFile: o.NKeyFile,
		CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile,
		User: o.User, Password: o.Password, Token: o.Token,
		InboxPrefix: o.InboxPrefix, APIPrefix: o.APIPrefix, Logger: o.Logger,
		RetryOnFailedConnect: o.RetryOnFailedConnect,
	}
}

// defaultName tells two processes of one program apart, on one host and on several.
func defaultName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
