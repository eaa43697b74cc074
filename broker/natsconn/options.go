package natsconn

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/logx"
)

const (
	defaultDialTimeout = 5 * time.Second
	reconnectWait      = 100 * time.Millisecond
	reconnectJitter    = 50 * time.Millisecond
	pingInterval       = 5 * time.Second
	maxPings           = 2
	// The other end of a pipe inside the process cannot fall silent, so pings find nothing; virtual
	// years would be full of them.
	pipePingInterval = time.Hour
	defaultAPI       = "$JS.API"
)

// Options says where and as whom to connect. At most one way to authenticate may be given:
// CredsFile, NKeyFile, User and Password, or Token.
type Options struct {
	// URL is one address or several with commas. Defaults to nats://127.0.0.1:4222. Not used with
	// InProcess.
	URL string
	// Name is shown by the server's connection list. Defaults to "drover".
	Name string
	// CredsFile is a file with a user JWT and its seed.
	CredsFile string
	// NKeyFile is a file with an NKEY seed.
	NKeyFile string
	// CAFile, CertFile and KeyFile are PEM files for TLS. CertFile and KeyFile belong together.
	CAFile, CertFile, KeyFile string
	// User, Password and Token are plain credentials.
	User, Password, Token string
	// InProcess connects to an embedded server without a socket.
	InProcess nats.InProcessConnProvider
	// APIPrefix is the prefix of the JetStream API, for domains and exports. Defaults to "$JS.API".
	APIPrefix string
	// InboxPrefix is the prefix of reply subjects. Defaults to "_INBOX".
	InboxPrefix string
	// Timeout bounds each try to connect. Defaults to 5 seconds.
	Timeout time.Duration
	// RetryOnFailedConnect tries the first connection again until the context ends, as long as no
	// server can be reached: its machine does not answer, or has no name yet. What a server says,
	// such as that it refuses the credentials, is an error at once.
	RetryOnFailedConnect bool
	// RequestTimeout bounds every call whose context has no deadline. An R3 stream takes 4 to 6
	// seconds to elect a leader. Defaults to 10 seconds.
	RequestTimeout time.Duration
	// Logger receives lost connections, refusals and retries. Defaults to none.
	Logger logrus.FieldLogger
}

func (o Options) withDefaults() Options {
	o.URL = cmp.Or(o.URL, nats.DefaultURL)
	o.Name = cmp.Or(o.Name, "drover")
	o.APIPrefix = cmp.Or(o.APIPrefix, defaultAPI)
	o.InboxPrefix = cmp.Or(o.InboxPrefix, nats.InboxPrefix[:len(nats.InboxPrefix)-1])
	o.Timeout = cmp.Or(o.Timeout, defaultDialTimeout)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, defaultRequestTimeout)
	o.Logger = logx.Or(o.Logger)
	return o
}

func (o Options) validate() error {
	ways := 0
	for _, given := range []bool{o.CredsFile != "", o.NKeyFile != "", o.User != "" || o.Password != "", o.Token != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return fmt.Errorf(
			"%w: Options: give only one of CredsFile, NKeyFile, User with Password, and Token",
			ErrInvalid)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return fmt.Errorf("%w: Options: CertFile and KeyFile belong together, give both or none",
			ErrInvalid)
	case o.Timeout < 0:
		return fmt.Errorf("%w: Options.Timeout is %v, want 0 for the default or more",
			ErrInvalid, o.Timeout)
	case o.RequestTimeout < 0:
		return fmt.Errorf("%w: Options.RequestTimeout is %v, want 0 for the default or more",
			ErrInvalid, o.RequestTimeout)
	case strings.ContainsAny(o.InboxPrefix, " *>\t\r\n") || strings.HasSuffix(o.InboxPrefix, "."):
		return fmt.Errorf(
			"%w: Options.InboxPrefix %q, want subject tokens without wildcards and without a dot at the end",
			ErrInvalid, o.InboxPrefix)
	case strings.ContainsAny(o.APIPrefix, " *>\t\r\n") || strings.HasSuffix(o.APIPrefix, "."):
		return fmt.Errorf(
			"%w: Options.APIPrefix %q, want subject tokens without wildcards and without a dot at the end",
			ErrInvalid, o.APIPrefix)
	}
	return nil
}

// String shows the options without secrets.
func (o Options) String() string {
	where, how := redact(o.URL), "none"
	if o.InProcess != nil {
		where = "in process"
	}
	switch {
	case o.CredsFile != "":
		how = "creds " + o.CredsFile
	case o.NKeyFile != "":
		how = "nkey " + o.NKeyFile
	case o.User != "":
		how = "user " + o.User
	case o.Token != "":
		how = "token"
	}
	return fmt.Sprintf("url=%s name=%s auth=%s tls=%t api=%s",
		where, o.Name, how, o.usesTLS(), o.APIPrefix)
}

func (o Options) usesTLS() bool { return o.CAFile != "" || o.CertFile != "" }

// redact removes passwords and tokens from a list of addresses. A password may hold a comma, and be
// in two parts of it.
func redact(list string) string {
	parts := strings.Split(list, ",")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		u, err := url.Parse(p)
		goesOn := i+1 < len(parts) && strings.Contains(parts[i+1], "@") &&
			!strings.Contains(parts[i+1], "://")
		switch {
		case goesOn && !strings.Contains(p, "@"):
			p = "(unreadable address)"
		case err != nil && strings.Contains(p, "@"):
			p = "(unreadable address)"
		case err == nil && u.User != nil:
			u.User = url.User("xxxxx")
			p = u.String()
		case err == nil && u.User == nil && strings.Contains(p, "@"):
			p = "xxxxx" + p[strings.LastIndexByte(p, '@'):]
		}
		parts[i] = p
	}
	return strings.Join(parts, ",")
}

// natsOptions turns o into the client library's options, without the handlers.
func (o Options) natsOptions(d *dialing) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(o.Name), nats.Timeout(o.Timeout), nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1),
		nats.CustomInboxPrefix(o.InboxPrefix),
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(gatheredPipes{o.InProcess, d}),
			nats.PingInterval(pipePingInterval))
	} else {
		// A cut without a reset is noticed in 10 to 15 seconds; a pipe inside the process cannot be
		// cut so.
		opts = append(opts, nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings),
			nats.SetCustomDialer(&gatheredDialer{net.Dialer{Timeout: o.Timeout}, d}))
	}
	// The client library reads these two when it connects, and each time anew, as files that are
	// renewed want it. One that is not there at first is a mistake, and no server that is away.
	for _, given := range []struct{ field, name string }{{"CredsFile", o.CredsFile}, {"CAFile", o.CAFile}} {
		if given.name == "" {
			continue
		}
		file, err := os.Open(given.name) // and not read, for it may be a pipe
		if err != nil {
			return nil, fmt.Errorf("%w: Options.%s: %w", ErrInvalid, given.field, err)
		}
		file.Close()
	}
	switch {
	case o.CredsFile != "":
		opts = append(opts, nats.UserCredentials(o.CredsFile))
	case o.NKeyFile != "":
		nkey, err := nkeyOption(o.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: Options.NKeyFile %s: %w", ErrInvalid, o.NKeyFile, err)
		}
		opts = append(opts, nkey)
	case o.User != "" || o.Password != "":
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	case o.Token != "":
		opts = append(opts, nats.Token(o.Token))
	}
	if o.CAFile != "" {
		opts = append(opts, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, fmt.Errorf("%w: Options.CertFile %s, KeyFile %s: %w",
				ErrInvalid, o.CertFile, o.KeyFile, err)
		}
		opts = append(opts, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return opts, nil
}
