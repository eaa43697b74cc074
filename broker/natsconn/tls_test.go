package natsconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/internal/poll"
)

// certificate writes a self-signed pair for loopback, good for both sides, and returns the file names.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	return certificateWith(t, func(*x509.Certificate) {})
}

func certificateWith(t *testing.T, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// secured is a server that shows a certificate, and takes from clients what the same one has signed. In TLS 1.3 a client may be through its handshake, and
// meet a closed connection, before it is told that its certificate is not taken.
func secured(t *testing.T, cert, key string) *server.Options {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	o := listening(t)
	o.TLS, o.TLSVerify = true, true
	o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
	return o
}

func TestDialWithTLS(t *testing.T) {
	cert, key := certificate(t)
	srv, stop := start(t, secured(t, cert, key))
	t.Cleanup(stop)
	c := dial(t, Options{URL: srv.ClientURL(), CAFile: cert, CertFile: cert, KeyFile: key})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What is wrong between two that speak TLS is said, with what to do about that. No server need be started.
func TestDialSaysWhatIsWrongWithTLS(t *testing.T) {
	cert, key := certificate(t)
	otherCert, otherKey := certificate(t)
	old, oldKey := certificateWith(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	named, namedKey := certificateWith(t, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"nats.example.com"} })
	for _, tt := range []struct {
		name, cert, key string // of the server
		o               Options
		want            string
	}{
		{"no CA", cert, key, Options{CertFile: cert, KeyFile: key}, "--tlsca"},
		{"another CA", cert, key, Options{CAFile: otherCert, CertFile: cert, KeyFile: key}, "--tlsca"},
		{"a certificate of another CA", cert, key, Options{CAFile: cert, CertFile: otherCert, KeyFile: otherKey}, "--tlscert"},
		{"a certificate that has expired", old, oldKey, Options{CAFile: old, CertFile: old, KeyFile: oldKey}, "renew it"},
		{"a certificate of other names", named, namedKey, Options{CAFile: named, CertFile: named, KeyFile: namedKey}, "connect to one of them"},
	} {
		srv, stop := start(t, secured(t, tt.cert, tt.key))
		tt.o.URL = srv.ClientURL()
		_, err := Dial(t.Context(), tt.o)
		stop()
		wantErr(t, err, ErrNoConnection)
		if got := err.Error(); !strings.Contains(got, tt.want) || strings.Contains(got, "drover server") {
			t.Errorf("%s: got %s, want %q, and no advice to start a server", tt.name, got, tt.want)
		}
	}
	// What a server says in TLS 1.3 where no certificate is shown.
	none := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	if got := wayOut(none); !strings.Contains(got, "--tlscert") {
		t.Errorf("got %q for %v", got, none)
	}
}

// Who is cut off by a new certificate, or by files of its own that do not fit at the moment, reads why.
func TestReconnectSaysWhatIsWrongWithTLS(t *testing.T) {
	cert, key := certificate(t)
	srv, stop := start(t, secured(t, cert, key))
	log, kept := logtest.NewNullLogger()
	own, ownKey := certificate(t)
	become := func(name, as string) {
		text, err := os.ReadFile(as)
		if err == nil {
			err = os.WriteFile(name, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	become(own, cert)
	become(ownKey, key)
	c := dial(t, Options{URL: srv.ClientURL(), CAFile: cert, CertFile: own, KeyFile: ownKey, Logger: log})
	spokenOf := func(what string) {
		t.Helper()
		poll.Until(t, 30*time.Second, what+" is spoken of", func() bool {
			return slices.ContainsFunc(kept.AllEntries(), func(e *logrus.Entry) bool {
				return strings.Contains(e.Message, "cannot connect to NATS again") && strings.Contains(e.Message, what)
			})
		})
	}
	other, otherKey := certificate(t)
	become(ownKey, otherKey) // half of a renewal
	if err := c.NATS().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	spokenOf("read anew for each connection")
	become(ownKey, key)
	poll.Until(t, 30*time.Second, "connected again", c.Connected)
	at := port(srv)
	stop()
	renewed := secured(t, other, otherKey)
	renewed.Port = at
	_, stop = start(t, renewed)
	t.Cleanup(stop)
	spokenOf("--tlsca")
}
