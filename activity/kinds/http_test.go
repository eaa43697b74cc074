package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/schemas"
)

// site answers what a path asks for.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Header.Get("Content-Type"), r.Header.Get("X-A"), body)
	})
	mux.HandleFunc("/query", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Query().Get("q")) })
	mux.HandleFunc("/json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, `{"a":1}`)
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte{0xff, 0}) // it fails only if the client has gone
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		if _, err := fmt.Sscan(r.PathValue("code"), &code); err != nil {
			t.Error(err)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "no")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 2000)) })
	mux.HandleFunc("/again", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/once", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json", http.StatusSeeOther) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	mux.HandleFunc("/key", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get(kinds.HeaderKey)) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestHTTP(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // not heeded
	s := site(t)
	call := kinds.HTTP(&kinds.HTTPOptions{MaxBody: 1000, MaxRedirects: 3, Allow: kinds.AllowHosts("127.0.0.1", ".example.com")})
	for _, tc := range []struct {
		name   string
		in     kinds.HTTPInput
		path   string
		status int
		body   string
		reason string
	}{
		{name: "get is the default", path: "/echo", status: 200, body: `"GET   "`},
		{name: "JSON goes as JSON", path: "/echo", in: kinds.HTTPInput{Method: "POST", Body: schemas.Payload(`{"a": 1}`)}, status: 200, body: `"POST application/json  {\"a\": 1}"`},
		{name: "a string goes as its text", path: "/echo", in: kinds.HTTPInput{Method: "PUT", Body: schemas.Payload(`"hello"`), Headers: map[string]string{"x-a": "b"}}, status: 200, body: `"PUT  b hello"`},
		{name: "its own content type", path: "/echo", in: kinds.HTTPInput{Method: "POST", Body: schemas.Payload(`[1]`), Headers: map[string]string{"content-type": "x/y"}}, status: 200, body: `"POST x/y  [1]"`},
		{name: "R8: a method in small letters", path: "/echo", in: kinds.HTTPInput{Method: "post", Body: schemas.Payload(`"x"`)}, status: 200, body: `"POST   x"`},
		{name: "R11: a space in the address", path: "/query?q=a b", status: 200, body: `"a b"`},
		{name: "JSON comes as JSON", path: "/json", status: 200, body: `{"a":1}`},
		{name: "bytes come as bytes", path: "/bytes", status: 200, body: "\xff\x00"},
		{name: "a redirect", path: "/once", status: 200, body: `{"a":1}`},
		{name: "head", path: "/json", in: kinds.HTTPInput{Method: "HEAD"}, status: 200},
		{name: "an expected status", path: "/status/404", in: kinds.HTTPInput{Expect: []int{200, 404}}, status: 404, body: `"no"`},
		{name: "not found", path: "/status/404", status: 404, body: `"no"`, reason: "http_status_404"},
		{name: "unavailable", path: "/status/503", status: 503, body: `"no"`, reason: "http_status_503"},
		{name: "a success that was not expected", path: "/json", in: kinds.HTTPInput{Expect: []int{201}}, status: 200, body: `{"a":1}`, reason: "http_status_200"},
		{name: "too large", path: "/large", reason: kinds.ReasonTooLarge},
		{name: "too many redirects", path: "/again", reason: kinds.ReasonRedirects},
		{name: "a redirect to a host that is not allowed", path: "/away", reason: kinds.ReasonDenied},
		{name: "half an answer", path: "/broken", reason: kinds.ReasonBroken},
		{name: "its own timeout", path: "/slow", in: kinds.HTTPInput{Timeout: schemas.Seconds(0.05)}, reason: kinds.ReasonTimeout},
		{name: "a host that is not allowed", in: kinds.HTTPInput{URL: "http://example.org/"}, reason: kinds.ReasonDenied},
		{name: "nobody listens", in: kinds.HTTPInput{URL: "http://127.0.0.1:1/"}, reason: kinds.ReasonUnreachable},
		{name: "bad input: no URL", in: kinds.HTTPInput{URL: "/x"}, reason: activity.ReasonBadInput},
		{name: "bad input: a file", in: kinds.HTTPInput{URL: "file:///etc/passwd"}, reason: activity.ReasonBadInput},
		{name: "bad input: URL", in: kinds.HTTPInput{URL: "http://a b/"}, reason: activity.ReasonBadInput},
		{name: "bad input: method", path: "/json", in: kinds.HTTPInput{Method: "GET X"}, reason: activity.ReasonBadInput},
		{name: "bad input: header name", path: "/json", in: kinds.HTTPInput{Headers: map[string]string{"a b": "c"}}, reason: activity.ReasonBadInput},
		{name: "bad input: header value", path: "/json", in: kinds.HTTPInput{Headers: map[string]string{"a": "b\r\nc: d"}}, reason: activity.ReasonBadInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.path != "" {
				tc.in.URL = s.URL + tc.path
			}
			out, err := call(t.Context(), tc.in)
			if tc.reason == "" {
				if err != nil || out.Status != tc.status || string(out.Body) != tc.body {
					t.Fatalf("got %d %s, %v, want %d %s", out.Status, out.Body, err, tc.status, tc.body)
				}
				return
			}
			f, ok := errors.AsType[*activity.Failure](err)
			if !ok || f.Reason != tc.reason {
				t.Fatalf("got %v, want a failure with reason %s", err, tc.reason)
			}
			if tc.status == 0 {
				return
			}
			var details kinds.HTTPOutput
			if err := f.Details.Decode(&details); err != nil || details.Status != tc.status || string(details.Body) != tc.body {
				t.Fatalf("got details %s, %v, want the answer", f.Details, err)
			}
		})
	}
}

// What is secret goes to whom it is for: not to another server of the same host, and not over a wire that everybody reads.
func TestHTTPRedirectsWithoutSecrets(t *testing.T) {
	said := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"), " ", r.Header.Get("Cookie"), " ", r.Header.Get("X-A"))
	})
	other := httptest.NewServer(said)
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.Handle("/said", said)
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/said", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	call := kinds.HTTP(&kinds.HTTPOptions{Transport: secure.Client().Transport})
	for _, tc := range []struct{ url, want string }{
		{plain.URL + "/said", `"Basic bWU6c2VjcmV0 c=1 b"`},
		{plain.URL + "/here", `"Basic bWU6c2VjcmV0 c=1 b"`},
		{plain.URL + "/there", `"  b"`},
		{secure.URL + "/here", `"Basic bWU6c2VjcmV0 c=1 b"`},
		{secure.URL + "/there", `"  b"`},
	} {
		out, err := call(t.Context(), kinds.HTTPInput{URL: tc.url, Username: "me", Password: "secret", Headers: map[string]string{"cookie": "c=1", "X-A": "b"}})
		if err != nil || string(out.Body) != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.url, out.Body, err, tc.want)
		}
	}
}

// An address that cannot be read may have a password in it; what is wrong with it is told without.
func TestHTTPAddressWithSecret(t *testing.T) {
	call, load := kinds.HTTP(nil), kinds.Load(nil)
	for _, url := range []string{"http://me:se cret@127.0.0.1/", "http://me:cret%zz@127.0.0.1/", "http://me:cret#@127.0.0.1/", "gopher://me:secret@127.0.0.1/"} {
		_, err := call(t.Context(), kinds.HTTPInput{URL: url})
		_, err2 := load(t.Context(), kinds.LoadInput{URL: url})
		for _, err := range []error{err, err2} {
			if err == nil || strings.Contains(err.Error(), "cret") {
				t.Errorf("got %v, want an error without the password", err)
			}
		}
	}
}

// The end of the activity reaches the call, and says why.
func TestHTTPEndsWithItsActivity(t *testing.T) {
	s := site(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(activity.ErrCanceled) })
	if _, err := kinds.HTTP(nil)(ctx, kinds.HTTPInput{URL: s.URL + "/slow"}); !errors.Is(err, activity.ErrCanceled) {
		t.Fatalf("got %v, want ErrCanceled", err)
	}
}

func TestAllowHosts(t *testing.T) {
	allow := kinds.AllowHosts("a.test", ".b.test")
	for raw, want := range map[string]bool{
		"http://a.test/": true, "https://A.TEST.:8443/x": true, "http://x.a.test/": false, "http://x.b.test/": true, "http://b.test/": false,
		"http://a.test.evil/": false, "http://a.test@evil/": false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err := allow(u); (err == nil) != want {
			t.Errorf("%s: got %v, want allowed %v", raw, err, want)
		}
	}
}

func TestNonRetryable(t *testing.T) {
	got := map[string]bool{}
	for _, r := range kinds.NonRetryable() {
		got[r] = true
	}
	want := map[string]bool{"http_status_400": true, "http_status_404": true, "http_status_451": true, "bad-input": true, "answer_too_large": true}
	for _, r := range []string{"http_status_408", "http_status_429", "http_status_500", "http_status_503", "timeout", "no_responders"} {
		want[r] = false
	}
	for r, w := range want {
		if got[r] != w {
			t.Errorf("%s: got %v, want %v", r, got[r], w)
		}
	}
	if len(got) > 64 {
		t.Fatalf("got %d reasons, want at most 64: a type takes no more", len(got))
	}
}

func TestHTTPPanics(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "MaxBody is -1") {
			t.Fatalf("got panic %q, want one about MaxBody", got)
		}
	}()
	kinds.HTTP(&kinds.HTTPOptions{MaxBody: -1})
}
