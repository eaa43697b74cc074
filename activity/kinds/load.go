package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
)

// LoadInput is the input of the kind load. Its result is a text.
type LoadInput struct {
	// URL is one with scheme http or https, or file with a path that the worker allows, or such a
	// path.
	URL string `json:"url"`
	// Charset as in [HTTPInput].
	Charset string           `json:"charset,omitempty"`
	Timeout schemas.Duration `json:"timeout,omitempty"`
}

// LoadOptions of [Load]. The zero value of every field is its default.
type LoadOptions struct {
	// HTTP is how URLs are called; see [HTTPOptions]. MaxBody bounds files too.
	HTTP HTTPOptions
	// Dirs are folders of which files may be read, with all below them; links that lead out of them
	// are not followed. Defaults to none.
	Dirs []string
}

// Load returns the function of the kind load: a text, such as YAML or JSON, from a URL or from a
// file. Nil options mean all defaults. It panics if MaxBody is negative.
func Load(o *LoadOptions) func(ctx context.Context, in LoadInput) (string, error) {
	if o == nil {
		o = &LoadOptions{}
	}
	l := loader{dirs: o.Dirs, most: cmp.Or(o.HTTP.MaxBody, defaultMaxBody), call: HTTP(&o.HTTP)}
	return l.load
}

type loader struct {
	dirs []string
	most int64
	call func(context.Context, HTTPInput) (HTTPOutput, error)
}

func (l *loader) load(ctx context.Context, in LoadInput) (string, error) {
	if scheme, rest, ok := strings.Cut(in.URL, "://"); ok && scheme != "file" {
		return l.fetch(ctx, in)
	} else if ok {
		u, err := url.Parse(in.URL)
		if err != nil || u.Host != "" {
			return "", badInput("url is %q: want file:///path", in.URL)
		}
		in.URL = cmp.Or(u.Path, rest)
	}
	return l.read(in)
}

func (l *loader) fetch(ctx context.Context, in LoadInput) (string, error) {
	out, err := l.call(ctx, HTTPInput{
		URL: in.URL, Charset: in.Charset, Timeout: in.Timeout,
		Headers: map[string]string{"Accept": "*/*"},
	})
	if err != nil || len(out.Body) == 0 {
		return "", err
	}
	text, isJSON := content(out.Body)
	if !isJSON && !utf8.Valid(text) {
		return "", activity.Fail(ReasonNoText,
			fmt.Sprintf("%s gave %s, which is no text in this charset",
				in.URL, cmp.Or(out.Headers["Content-Type"], http.DetectContentType(text))))
	}
	return string(text), nil
}

// read reads a file below one of the folders.
func (l *loader) read(in LoadInput) (string, error) {
	charset, ok := decoderOf(cmp.Or(in.Charset, "utf-8"))
	if !ok {
		return "", badInput("charset %q is not known: use one of %s",
			in.Charset, strings.Join(charsets(), ", "))
	}
	path := filepath.Clean(in.URL)
	if in.URL == "" || !filepath.IsAbs(path) {
		return "", badInput(
			"url is %q: want one with scheme http, https or file, or an absolute path", in.URL)
	}
	for _, dir := range l.dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("load: %w", err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		body, err := l.file(dir, name)
		if err != nil {
			return "", err
		}
		text, ok := charset(body)
		if !ok {
			return "", activity.Fail(ReasonNoText,
				fmt.Sprintf("%s is no text in this charset", path))
		}
		return string(text), nil
	}
	return "", activity.Fail(ReasonDenied,
		fmt.Sprintf("%s is in none of the folders that this worker may read", path))
}

// file reads one plain file, which may be no longer than allowed. A link out of dir fails as every
// path out of it does.
func (l *loader) file(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, activity.Fail(ReasonNoFile, err)
	case err != nil:
		return nil, activity.Fail(ReasonDenied, err)
	case !info.Mode().IsRegular():
		return nil, activity.Fail(ReasonNoFile, name+" is no file") // a pipe would block for ever
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, activity.Fail(ReasonDenied, err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, l.most+1))
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if int64(len(body)) > l.most {
		return nil, activity.Fail(ReasonTooLarge,
			fmt.Sprintf("%s has more than %d bytes", name, l.most))
	}
	return body, nil
}
