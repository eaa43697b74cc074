package natsconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/sleep"
)

const (
	defaultRequestTimeout = 10 * time.Second
	// tellAgain is for how long an error that stays is not logged again.
	tellAgain = 10 * time.Second
)

// Conn is one connection to NATS. It reconnects for ever. All methods may be called by several
// goroutines.
type Conn struct {
	nc        *nats.Conn
	js        jetstream.JetStream
	met       atomic.Pointer[nats.Conn] // nc, for callbacks, which may come before it is set
	log       logrus.FieldLogger
	api       string // prefix of the JetStream API
	timeout   time.Duration
	inProcess bool
	borrowedConn
	denied denials
	inbox  *inbox
	done   chan struct{} // closed by Close
	born   time.Time
	dials  atomic.Uint64
	// of JetStream, at the server that this leads to, or led to last
	domain atomic.Pointer[string]

	mu       sync.Mutex
	closed   bool
	draining bool               // what has been drained is closed by the library
	up       chan struct{}      // closed at the next reconnect, then replaced
	hooks    hooks[func()]      // called after each reconnect
	children map[child]struct{} // closed with the connection
	logged   lastError
	locals   map[any]any // see Local
	lostSubjects
	bulk bulk
}

// Dial connects. A first connection that fails is an error that wraps [ErrNoConnection], unless
// [Options.RetryOnFailedConnect] says to try again; after that, the connection heals itself. A
// deadline of ctx bounds the first connection, and Options.Timeout each try, also of those that
// follow.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoConnection, err)
	}
	o = o.withDefaults()
	c := newConn(o)
	d := &dialing{dialed: func() { c.dials.Add(1) }}
	first, bounded := ctx.Deadline()
	if bounded {
		d.until.Store(&first)
	}
	opts, err := o.natsOptions(d)
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.ErrorHandler(c.onError), nats.DisconnectErrHandler(c.onDisconnect),
		nats.CustomReconnectDelay(c.beforeRetry), nats.ReconnectHandler(c.onReconnect),
		nats.ClosedHandler(c.onClosed))
	where := o.URL
	if o.InProcess != nil {
		where = ""
	}
	for {
		d.reached.Store(false)
		if c.nc, err = nats.Connect(where, opts...); err != nil && d.reached.Load() {
			c.nc, err = oneByOne(where, err, opts)
		}
		if err == nil {
			break
		}
		again := o.RetryOnFailedConnect && isAbsent(err)
		if err = dialError(o, err); !again {
			return nil, err
		}
		c.log.WithField("err", err).Log(c.logged.level("absent"), "no connection to NATS yet, trying again")
		if sleep.For(ctx, reconnectWait+rand.N(reconnectJitter)) != nil {
			return nil, err
		}
	}
	d.until.Store(nil)
	c.arrive(c.nc)
	if c.js, err = jetstream.NewWithAPIPrefix(c.nc, o.APIPrefix); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("%w: Options.APIPrefix %q: %w", ErrInvalid, o.APIPrefix, err)
	}
	if c.inbox, err = newInbox(c); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("%w: reply inbox: %w", ErrNoConnection, fromNATS(err))
	}
	if bounded {
		o.Timeout = max(min(o.Timeout, time.Until(first)), time.Millisecond)
	}
	c.settleInbox(o.Timeout)
	c.register()
	c.log.WithField("server", c.nc.ConnectedServerName()).Debugf("connected to NATS: %s", o)
	return c, nil
}

// newConn is a Conn without a connection.
func newConn(o Options) *Conn {
	return &Conn{
		log: o.Logger, api: o.APIPrefix, timeout: o.RequestTimeout, inProcess: o.InProcess != nil,
		born: time.Now(), done: make(chan struct{}), up: make(chan struct{}),
		hooks: hooks[func()]{}, children: map[child]struct{}{},
	}
}

// oneByOne tries each of several addresses alone, to learn what the one that could be reached said:
// of all that failed the library gives the error of the last one, or none.
func oneByOne(list string, err error, opts []nats.Option) (*nats.Conn, error) {
	addresses := strings.Split(list, ",")
	if len(addresses) == 1 {
		return nil, err
	}
	for _, one := range addresses {
		nc, e := nats.Connect(strings.TrimSpace(one), opts...)
		if e == nil {
			return nc, nil
		}
		if said, ok := errors.AsType[*net.OpError](e); !errors.Is(e, nats.ErrNoServers) &&
			(!ok || said.Op != "dial") {
			return nil, e
		}
	}
	return nil, err
}

var errAddress = errors.New("the address cannot be read")

// dialError says which address failed and what to do about it.
func dialError(o Options, err error) error {
	where, hint := redact(o.URL),
		"start one with \"drover server\", or name another with --nats or NATS_URL"
	e, bad := errors.AsType[*url.Error](err)
	_, wrong := errors.AsType[*net.AddrError](err)
	if bad && e.Op == "parse" || wrong {
		// its text holds the address, or some of it, with what should be a password in it
		err, hint = errAddress, "write nats://host:port, and signs in user and password that "+
			"mean something in an address as %XX, or give them beside it"
	}
	if o.InProcess != nil {
		where, hint = "the embedded server", "see its log"
	}
	var files string
	if way := wayOut(err); way != "" {
		hint = way
	} else if way := wayToServer(err); way != "" && o.InProcess == nil {
		hint = way
	} else if o.usesTLS() || o.CredsFile != "" {
		files = ", and check the CA, certificate, key and creds files"
	}
	return fmt.Errorf("%w at %s: %w: %s%s", ErrNoConnection, where, err, hint, files)
}

// wayOut says what to do about what the server says, "" if that is not known.
func wayOut(err error) string {
	switch {
	case errors.Is(err, nats.ErrAuthorization),
		errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked):
		return "the server refuses these credentials, check user, token, creds or nkey"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		return "one side wants TLS and the other does not, check the address and the CA file"
	case strings.HasSuffix(err.Error(), "connections exceeded"):
		// the library has values for these, and no use for them at the first connection
		return "close connections, or raise the limit of the account or the server"
	case errors.Is(err, nats.ErrMaxSubscriptionsExceeded):
		return "raise the limit of the account or the user: what this process listens for " +
			"beyond it does not come until then"
	}
	return wayOutOfTLS(err)
}

// wayBack is wayOut for a connection that was there, and for which the library reads the files
// anew.
func wayBack(err error) string {
	if errors.Is(err, errOtherNKey) {
		return "start this process again to connect as the user whose seed the file holds now"
	}
	_, file := errors.AsType[*fs.PathError](err)
	if said := err.Error(); file || strings.Contains(said, "loading client certificate") ||
		strings.Contains(said, "root certificate") {
		return "check the CA, certificate, key and creds files, which are read anew for each connection"
	}
	return wayOut(err)
}

// wayToServer is wayOut for the first connection, to what is no NATS server, or not as the address
// says. The library has no values for most of it.
func wayToServer(err error) string {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	_, name := errors.AsType[*net.DNSError](err)
	said, silent := err.Error(), func(err *net.OpError, ok bool) bool { return ok && err.Op == "read" && err.Timeout() }
	switch {
	case name:
		return "the name of the host cannot be looked up, check it, or name another with --nats or NATS_URL"
	case plain:
		return "one side wants TLS and the other does not, check the address and the CA file"
	case errors.Is(err, nats.ErrMixingWebsocketSchemes):
		return "name the websocket of each server, or of none"
	case strings.Contains(said, "malformed HTTP"),
		strings.Contains(said, "invalid websocket connection"):
		return "what answers there is no websocket of a NATS server, name the port of its " +
			"websocket block, or write nats:// in place of ws://"
	case errors.Is(err, io.EOF), silent(errors.AsType[*net.OpError](err)):
		return "what is there does not greet in time as a NATS server does, check host and " +
			"port; a server that wants TLS first (handshake_first) must take other clients too, " +
			"by handshake_first: auto"
	case strings.Contains(said, "failed to parse root certificate"):
		return "the CA file holds no certificate, name one in PEM with --tlsca, or as ca in the context"
	case strings.Contains(said, "error signing nonce"):
		return "the creds file holds no seed, make it anew with nsc"
	}
	return ""
}

// wayOutOfTLS is wayOut for what the two sides say of each other's certificates.
func wayOutOfTLS(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok &&
		invalid.Reason == x509.Expired {
		return "the server's certificate does not hold at this time, renew it, or check this machine's clock"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is for other names, connect to one of them"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted, name the CA that has signed it with " +
			"--tlsca, or as ca in the context"
	}
	if said, ok := errors.AsType[*net.OpError](err); ok && said.Op == "remote error" &&
		strings.Contains(said.Error(), "certificate") {
		return "the server does not take the client certificate, or the lack of one: name one " +
			"that is valid and that its CA has signed with --tlscert and --tlskey"
	}
	return ""
}

// NATS gives the connection of the client library, for tests and for the command line.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// URL is the address of the server that the connection is to, without users, passwords and tokens;
// "" while there is none. The client library leaves a token in it, which stands in the place of a
// user.
func (c *Conn) URL() string { return redact(c.nc.ConnectedUrl()) }

// JetStream gives the client library's JetStream, for code that makes streams, consumers and
// buckets.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// MaxPayload is the largest message that the server takes, in bytes, headers included.
func (c *Conn) MaxPayload() int64 { return c.nc.MaxPayload() }

// Connected says whether the connection is up at this moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// OnReconnect registers a function that is called after each reconnect, when subscriptions are in
// place again. It must not block. The returned function removes it.
func (c *Conn) OnReconnect(fn func()) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hooks.add(&c.mu, fn)
}

// OnClose registers a function that is called once when the connection is closed, or at once if it
// is. It must not block. The returned function removes it.
func (c *Conn) OnClose(fn func()) (remove func()) {
	h := &closeHook{fn}
	if c.adopt(h) != nil {
		fn()
	}
	return func() { c.disown(h) }
}

// closeHook is a [child] that only wants to know.
type closeHook struct{ fn func() }

func (f *closeHook) Close() { f.fn() }

// child is what must be closed with the connection: an outbox, a reader, a puller.
type child interface{ Close() }

func (c *Conn) adopt(ch child) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("connection: %w", ErrClosed)
	}
	c.children[ch] = struct{}{}
	return nil
}

func (c *Conn) disown(ch child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.children, ch)
}

// Flush returns when the server has processed everything that was published before. Without a
// deadline in ctx, Options.RequestTimeout holds.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flush: %w", fromNATS(err))
	}
	return nil
}

// onClosed is called when the library has closed the connection, and will not connect again: over
// what the server did not take, if we have not closed it ourselves. Whoever relies on it is told as
// if we had.
func (c *Conn) onClosed(nc *nats.Conn) {
	c.mu.Lock()
	ours := c.closed || c.draining
	c.mu.Unlock()
	if ours {
		return
	}
	if c.borrowed {
		c.log.Info("the connection to NATS was closed by its owner")
	} else {
		c.log.WithField("err", nc.LastError()).Error("the connection to NATS is closed for " +
			"good: start this process again")
	}
	go c.Close() // the library's goroutine may have to tell those more who are waited for
}

// Close closes outboxes, readers and pulls, then the connection if it is not borrowed. It waits
// until the server has what was published, for a second at most.
func (c *Conn) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	children := slices.Collect(maps.Keys(c.children))
	clear(c.hooks)
	c.mu.Unlock()
	c.dials.Add(1)
	close(c.done)
	for _, ch := range children {
		ch.Close()
	}
	c.unregister()
	if c.borrowed {
		_ = unsubscribe(c.inbox.sub)
		c.giveBack()
		c.settle()
		return
	}
	c.settle()
	c.nc.Close()
}

// settle waits until the server has read what was published. A server that is writing to a socket
// when it is closed takes the connection for lost and reads no further: the last answers of a
// process that stops in good order were lost so, on a busy machine.
func (c *Conn) settle() {
	if !c.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = c.nc.FlushWithContext(ctx) // a server that does not answer is not waited for
}

// bound gives ctx the default deadline if it has none.
func (c *Conn) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeout)
}

// reconnected gives a channel that is closed at the next reconnect. Take it before you try to send.
func (c *Conn) reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

// whenUp calls send until the connection was up at that moment, and returns send's error. It waits
// only while nothing can be sent, so send's message goes out at most once.
func (c *Conn) whenUp(ctx context.Context, send func() error) error {
	for {
		up := c.reconnected()
		err := send()
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			return err
		}
		select {
		case <-up:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrDisconnected, ctx.Err())
		case <-c.done:
			return fmt.Errorf("connection: %w", ErrClosed)
		}
	}
}

// arrive notes what there is to know of the server, which may be another one each time.
func (c *Conn) arrive(nc *nats.Conn) {
	c.met.Store(nc)
	c.domain.Store(new(nc.ConnectedDomain()))
}

func (c *Conn) onReconnect(nc *nats.Conn) {
	c.arrive(nc)
	c.log.WithField("server", nc.ConnectedServerName()).Info("connected to NATS again")
	c.mu.Lock()
	close(c.up)
	c.up = make(chan struct{})
	hooks := c.hooks.all()
	c.mu.Unlock()
	for _, fn := range hooks {
		fn()
	}
}

func (c *Conn) onDisconnect(_ *nats.Conn, err error) {
	c.denied.forget()
	if err != nil {
		c.log.WithField("err", err).Warn("lost the connection to NATS, trying again")
	}
}

// beforeRetry is how long to wait once every server was tried in vain. It tells what is wrong,
// which the library tells nobody: it swallows why it could not connect again, but for refused
// credentials, and from its callback for failed tries all that comes after the dialing. That a
// server is away was told when the connection was lost.
func (c *Conn) beforeRetry(int) time.Duration {
	if nc := c.met.Load(); nc != nil {
		if err := nc.LastError(); err != nil {
			text, way := "cannot connect to NATS again", wayBack(err)
			if way != "" {
				text += ": " + way
			}
			if way != "" || !isAway(err) {
				c.log.WithField("err", err).Log(c.logged.level(cmp.Or(way, err.Error())), text)
			}
		}
	}
	return reconnectWait + rand.N(reconnectJitter)
}

// isAbsent says whether a first connection failed since nobody was there. What a server says, and
// what is wrong with files, stays as it is.
func isAbsent(err error) bool {
	return wayBack(err) == "" && (isAway(err) || errors.Is(err, nats.ErrNoServers))
}

// isAway says whether an error is that of a server that goes, or of a network without one.
func isAway(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF)
}

func (c *Conn) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	log := c.log.WithField("err", err)
	if sub != nil {
		log = log.WithField("subject", sub.Subject)
	}
	if errors.Is(err, nats.ErrPermissionViolation) {
		c.tellRefused(err)
		c.denied.record(err.Error())
		return
	}
	if errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		c.refusedTooMany()
	}
	text, way := "NATS client error", wayBack(err)
	if way != "" {
		text += ": " + way
	}
	// the text of a certificate's has the time in it
	log.Log(c.logged.level(cmp.Or(way, err.Error())), text)
}

// lastError is the error of the server that was logged last, and when.
type lastError struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

// level is that of an error: each try to connect repeats the same one, ten times a second.
func (l *lastError) level(text string) logrus.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.text && time.Since(l.at) < tellAgain {
		return logrus.DebugLevel
	}
	l.text, l.at = text, time.Now()
	return logrus.WarnLevel
}
