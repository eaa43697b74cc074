package kinds

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultMaxBody      = 1 << 20
	defaultMaxRedirects = 5
	maxHeaderBytes      = 64 << 10
	// maxFailureBody is how much of an answer stands in the details of a failure.
	maxFailureBody = 16 << 10
)

// HTTPInput is the input of the kind http.
type HTTPInput struct {
	// Method is sent in capital letters. Defaults to GET.
	Method string `json:"method,omitempty"`
	// URL is absolute, with scheme http or https.
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as JSON, with that content type unless Headers has one; a JSON string is sent as
	// its text, and text or bytes as they are.
	Body schemas.Payload `json:"body,omitempty"`
	// Timeout bounds the call with all redirects. Defaults to what is left to the activity.
	Timeout schemas.Duration `json:"timeout,omitempty"`
	// Expect are the statuses that are a success. Defaults to 200 to 299.
	Expect []int `json:"expect,omitempty"`
	// Username and Password are sent as HTTP Basic, and after a redirect to the same server only,
	// as Cookie is; other headers go wherever a redirect leads. They stand in the history, as all
	// input does.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Charset is how text in the answer is encoded: utf-8, us-ascii, iso-8859-1, utf-16, utf-16le
	// or utf-16be. Defaults to what the answer says, else utf-8.
	Charset string     `json:"charset,omitempty"`
	Config  HTTPConfig `json:"config,omitzero"`
}

// HTTPConfig is the field config of [HTTPInput].
type HTTPConfig struct {
	// Timeout is the same as HTTPInput.Timeout, which goes before it.
	Timeout schemas.Duration `json:"timeout,omitempty"`
	// Redirects is how many are followed at most; 0 is none. Defaults to what the worker follows,
	// and is never more.
	Redirects *int `json:"redirects,omitempty"`
}

// UnmarshalJSON refuses keys that nobody knows: whoever wrote one relies on it.
func (c *HTTPConfig) UnmarshalJSON(b []byte) error {
	type plain HTTPConfig
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(c)); err != nil {
		return fmt.Errorf("config: %w: it knows timeout and redirects", err)
	}
	return nil
}

// HTTPOutput is the result of the kind http, and the details of a failure with an unexpected
// status.
type HTTPOutput struct {
	Status int `json:"status"`
	// Headers have canonical names, such as Content-Type. Values of one name are joined by a comma
	// and a space.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the value if the answer is JSON by its content type, else a string, else bytes.
	Body schemas.Payload `json:"body,omitempty"`
	// Duration is how long the call took.
	Duration schemas.Duration `json:"duration,omitempty"`
}

// HTTPOptions of [HTTP]. The zero value of every field is its default.
type HTTPOptions struct {
	// Allow judges each address before it is called, redirects included; an error is the reason why
	// not. Defaults to all.
	Allow func(*url.URL) error
	// MaxBody is how many bytes an answer may have. Defaults to 1 MiB.
	MaxBody int64
	// MaxRedirects is how many redirects are followed; -1 means none. Defaults to 5.
	MaxRedirects int
	// Transport makes the calls. Defaults to one of its own, which heeds no proxy of the
	// environment.
	Transport http.RoundTripper
}

// AllowHosts is an HTTPOptions.Allow for the named hosts alone, without port. A name that begins
// with a dot stands for every host below it.
func AllowHosts(hosts ...string) func(*url.URL) error {
	return func(u *url.URL) error {
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		for _, h := range hosts {
			h = strings.ToLower(h)
			if host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h) {
				return nil
			}
		}
		return fmt.Errorf("host %q is not among those that this worker may call", u.Hostname())
	}
}

// HTTP returns the function of the kind http; nil options mean all defaults. It panics if MaxBody
// is negative.
//
// An answer with another status than the expected ones fails with "http_status_" and the number,
// and the answer as details.
func HTTP(o *HTTPOptions) func(ctx context.Context, in HTTPInput) (HTTPOutput, error) {
	if o == nil {
		o = &HTTPOptions{}
	}
	c := caller{HTTPOptions: *o}
	if c.MaxBody < 0 {
		panic(fmt.Sprintf("kinds: HTTPOptions.MaxBody is %d: use more than 0, or 0 for %d",
			c.MaxBody, defaultMaxBody))
	}
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxRedirects = cmp.Or(c.MaxRedirects, defaultMaxRedirects)
	if c.Transport == nil {
		c.Transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
			MaxIdleConns: 100, MaxIdleConnsPerHost: 20, MaxResponseHeaderBytes: maxHeaderBytes,
			ForceAttemptHTTP2: true,
		}
	}
	return c.call
}

type caller struct{ HTTPOptions }

// denied is an address that Allow refuses.
type denied struct{ error }

var errRedirects = errors.New("too many redirects")

func (c *caller) call(ctx context.Context, in HTTPInput) (HTTPOutput, error) {
	var out HTTPOutput
	whole, began := ctx, time.Now()
	if limit := cmp.Or(in.Timeout, in.Config.Timeout); limit.Limited() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit.Std())
		defer cancel()
	}
	charset, ok := decoderOf(in.Charset)
	if !ok {
		return out, badInput("charset %q is not known: use one of %s",
			in.Charset, strings.Join(charsets(), ", "))
	}
	req, err := request(ctx, in)
	if err != nil {
		return out, err
	}
	if err := c.allow(req.URL); err != nil {
		return out, activity.Fail(ReasonDenied, err)
	}
	client := http.Client{Transport: c.Transport, CheckRedirect: c.redirects(in.Config.Redirects)}
	resp, err := client.Do(req)
	if err != nil {
		return out, failure(whole, ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxBody+1))
	if err != nil {
		return out, failure(whole, ctx, err)
	}
	if int64(len(body)) > c.MaxBody {
		return out, activity.Fail(ReasonTooLarge,
			fmt.Sprintf("status %d with more than %d bytes", resp.StatusCode, c.MaxBody))
	}
	if charset == nil {
		charset = saidCharset(resp.Header)
	}
	if text, ok := decodeText(charset, body); ok {
		body = text
	}
	out = HTTPOutput{
		Status: resp.StatusCode, Headers: make(map[string]string, len(resp.Header)),
		Body:     answered(body, isJSON(resp.Header)),
		Duration: schemas.Duration(time.Since(began)),
	}
	for name, values := range resp.Header {
		out.Headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	if in.expects(resp.StatusCode) {
		return out, nil
	}
	if len(body) > maxFailureBody {
		out.Body = answered(bytes.ToValidUTF8(body[:maxFailureBody], nil), false)
	}
	return out, activity.Fail(statusOf(resp.StatusCode), out)
}

// request builds what is sent, or says what is wrong with the input.
func request(ctx context.Context, in HTTPInput) (*http.Request, error) {
	// what an expression puts into an address is text
	in.URL = strings.ReplaceAll(in.URL, " ", "%20")
	u, err := url.Parse(in.URL)
	switch {
	case err != nil && strings.Contains(in.URL, "@"):
		// the text of the error holds what should be a password
		return nil, badInput(
			"url cannot be read: signs in user and password that mean something in an address are written as %%XX")
	case err != nil:
		return nil, badInput("url: %v", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, badInput("url is %q: want an absolute one with scheme http or https",
			u.Redacted())
	}
	body, asJSON := content(in.Body)
	method := cmp.Or(strings.ToUpper(in.Method), http.MethodGet)
	req, err := http.NewRequestWithContext(ctx, method, in.URL, bytes.NewReader(body))
	if err != nil {
		return nil, badInput("method %q: %v", in.Method, err)
	}
	for name, value := range in.Headers {
		if !validHeader(name, value) {
			return nil, badInput(
				"header %q cannot be sent: want a name of letters, digits and signs, and a "+
					"value without control characters", name)
		}
		req.Header.Set(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	if in.Username != "" || in.Password != "" {
		req.SetBasicAuth(in.Username, in.Password)
	}
	if asJSON && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key := activity.Info(ctx).IdempotencyKey; key != "" && req.Header.Get(HeaderKey) == "" {
		req.Header.Set(HeaderKey, key)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "drover")
	}
	return req, nil
}

func (c *caller) allow(u *url.URL) error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow(u)
}

// redirects judges each redirect; most may lower the limit. With a limit of 0 the redirect itself
// is the answer.
func (c *caller) redirects(most *int) func(*http.Request, []*http.Request) error {
	limit := c.MaxRedirects
	if most != nil {
		limit = min(max(*most, 0), limit)
	}
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case most != nil && limit == 0:
			return http.ErrUseLastResponse
		case len(via) > limit:
			return errRedirects
		}
		if err := c.allow(req.URL); err != nil {
			return denied{err}
		}
		if !sameServer(via[0].URL, req.URL) {
			for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
				req.Header.Del(name)
			}
		}
		return nil
	}
}

// sameServer tells whether what may be said to one address may be said to another of the same host,
// which net/http looks at alone: a port is a server of its own, and what was encrypted stays so.
func sameServer(from, to *url.URL) bool {
	port := func(u *url.URL) string {
		if u.Scheme == "https" {
			return cmp.Or(u.Port(), "443")
		}
		return cmp.Or(u.Port(), "80")
	}
	upgrade := from.Scheme == "http" && to.Scheme == "https" && port(from) == "80" &&
		port(to) == "443"
	return upgrade || port(from) == port(to) && (from.Scheme == to.Scheme || to.Scheme == "https")
}

// failure tells why no answer came. The end of the activity itself goes before all.
func failure(whole, ctx context.Context, err error) error {
	if whole.Err() != nil {
		return context.Cause(whole)
	}
	if ctx.Err() != nil {
		return activity.Fail(ReasonTimeout, err)
	}
	if no, ok := errors.AsType[denied](err); ok {
		return activity.Fail(ReasonDenied, no.error)
	}
	if errors.Is(err, errRedirects) {
		return activity.Fail(ReasonRedirects, err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return activity.Fail(ReasonUnreachable, err)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return activity.Fail(ReasonUnreachable, err)
	}
	return activity.Fail(ReasonBroken, err)
}

func (in *HTTPInput) expects(status int) bool {
	if len(in.Expect) > 0 {
		return slices.Contains(in.Expect, status)
	}
	return status >= 200 && status < 300
}

// isJSON tells whether the content type is JSON, such as application/json or
// application/problem+json.
func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
