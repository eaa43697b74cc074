package kinds_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/schemas"
)

func TestLoad(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", map[string]string{"/json": "application/json", "/latin": "text/plain; charset=ISO-8859-1", "/bytes": "application/octet-stream"}[r.URL.Path])
		switch r.URL.Path {
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/large":
			fmt.Fprint(w, strings.Repeat("x", 2000))
		default:
			_, _ = w.Write([]byte(map[string]string{"/json": `{"a": 1}`, "/yaml": "a: 1\n", "/latin": "\xe9", "/bytes": "\xff\xfe\xfd", "/wide": "\xff\xfea\x00"}[r.URL.Path])) // it fails only if the client has gone
		}
	}))
	t.Cleanup(s.Close)
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(dir, "a.yaml"): "a: 1\n", filepath.Join(dir, "latin.txt"): "\xe9", filepath.Join(dir, "large"): strings.Repeat("x", 2000),
		filepath.Join(dir, "sub", "b.json"): "{}", filepath.Join(outside, "secret"): "no",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	load := kinds.Load(&kinds.LoadOptions{HTTP: kinds.HTTPOptions{MaxBody: 1000, Allow: kinds.AllowHosts("127.0.0.1")}, Dirs: []string{dir}})
	for _, tc := range []struct{ url, charset, want, reason string }{
		{url: s.URL + "/json", want: `{"a": 1}`},
		{url: s.URL + "/yaml", want: "a: 1\n"},
		{url: s.URL + "/latin", want: "é"},
		{url: s.URL + "/wide", charset: "UTF-16", want: "a"},
		{url: s.URL + "/yaml", charset: "latin1", want: "a: 1\n"},
		{url: s.URL + "/bytes", reason: kinds.ReasonNoText},
		{url: s.URL + "/missing", reason: "http_status_404"},
		{url: s.URL + "/large", reason: kinds.ReasonTooLarge},
		{url: "http://example.org/", reason: kinds.ReasonDenied},
		{url: filepath.Join(dir, "a.yaml"), want: "a: 1\n"},
		{url: "file://" + filepath.Join(dir, "sub", "b.json"), want: "{}"},
		{url: dir + "/sub/../a.yaml", want: "a: 1\n"},
		{url: filepath.Join(dir, "latin.txt"), charset: "ISO-8859-1", want: "é"},
		{url: filepath.Join(dir, "latin.txt"), reason: kinds.ReasonNoText},
		{url: filepath.Join(dir, "large"), reason: kinds.ReasonTooLarge},
		{url: filepath.Join(dir, "nobody"), reason: kinds.ReasonNoFile},
		{url: dir, reason: kinds.ReasonNoFile},
		{url: filepath.Join(dir, "link"), reason: kinds.ReasonDenied},
		{url: dir + "/../" + filepath.Base(outside) + "/secret", reason: kinds.ReasonDenied},
		{url: filepath.Join(outside, "secret"), reason: kinds.ReasonDenied},
		{url: "a.yaml", reason: activity.ReasonBadInput},
		{url: "", reason: activity.ReasonBadInput},
		{url: "file://host/a", reason: activity.ReasonBadInput},
		{url: "ftp://127.0.0.1/a", reason: activity.ReasonBadInput},
		{url: s.URL + "/yaml", charset: "klingon", reason: activity.ReasonBadInput},
		{url: filepath.Join(dir, "a.yaml"), charset: "klingon", reason: activity.ReasonBadInput},
	} {
		got, err := load(t.Context(), kinds.LoadInput{URL: tc.url, Charset: tc.charset})
		if f, ok := errors.AsType[*activity.Failure](err); tc.reason != "" && (!ok || f.Reason != tc.reason) || tc.reason == "" && (err != nil || got != tc.want) {
			t.Errorf("%s %s: got %q and %v, want %q or a failure %s", tc.url, tc.charset, got, err, tc.want, tc.reason)
		}
	}
	if _, err := kinds.Load(nil)(t.Context(), kinds.LoadInput{URL: filepath.Join(dir, "a.yaml")}); err == nil {
		t.Error("without folders a file can be read")
	}
}

// The keys that go beyond a plain call.
func TestHTTPMoreKeys(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		fmt.Fprint(w, user, " ", password, " ", ok)
	})
	mux.HandleFunc("/latin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte{0xe9}) // it fails only if the client has gone
	})
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/who", http.StatusFound) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	call := kinds.HTTP(&kinds.HTTPOptions{MaxRedirects: 2})
	for _, tc := range []struct {
		path, in string
		status   int
		body     string
		reason   string
	}{
		{path: "/who", in: `{"username": "ada", "password": "p:w"}`, status: 200, body: `"ada p:w true"`},
		{path: "/who", in: `{}`, status: 200, body: `"  false"`},
		{path: "/latin", in: `{"charset": "latin1"}`, status: 200, body: `"é"`},
		{path: "/latin", in: `{}`, status: 200, body: "\xe9"},
		{path: "/there", in: `{"config": {"redirects": 0}, "expect": [302]}`, status: 302, body: `"<a href=\"/who\">Found</a>.\n\n"`},
		{path: "/there", in: `{"config": {"redirects": 9}}`, status: 200, body: `"  false"`},
		{path: "/slow", in: `{"config": {"timeout": "20ms"}}`, reason: kinds.ReasonTimeout},
		{path: "/who", in: `{"charset": "klingon"}`, reason: activity.ReasonBadInput},
	} {
		var in kinds.HTTPInput
		if err := schemas.Payload(tc.in).Decode(&in); err != nil {
			t.Fatal(err)
		}
		in.URL = s.URL + tc.path
		out, err := call(t.Context(), in)
		if f, ok := errors.AsType[*activity.Failure](err); tc.reason != "" && (!ok || f.Reason != tc.reason) || tc.reason == "" && err != nil {
			t.Errorf("%s %s: got %v, want %q", tc.path, tc.in, err, tc.reason)
			continue
		}
		if tc.reason == "" && (out.Status != tc.status || string(out.Body) != jsonOf(tc.body) || out.Duration <= 0) {
			t.Errorf("%s %s: got %d %s in %v, want %d %s", tc.path, tc.in, out.Status, out.Body, out.Duration, tc.status, tc.body)
		}
	}
	var in kinds.HTTPInput
	if err := schemas.Payload(`{"url": "x", "config": {"proxy": "y"}}`).Decode(&in); err == nil || !strings.Contains(err.Error(), "it knows timeout and redirects") {
		t.Errorf("got %v, want the unknown key refused", err)
	}
}

// jsonOf writes < and > as encoding/json does.
func jsonOf(s string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(s)
}
