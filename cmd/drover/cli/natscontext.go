package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/droverhq/drover/broker/natsconn"
)

// natsContext is a context of the nats command line: a file that says where and as whom to connect.
// Its own package links the NATS server and a metrics library, so the file is read here.
type natsContext struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	InboxPrefix string `json:"inbox_prefix"`
	Domain      string `json:"jetstream_domain"`
	APIPrefix   string `json:"jetstream_api_prefix"`

	// What follows is not supported, and would be missed.
	NSC       string `json:"nsc"`
	UserJWT   string `json:"user_jwt"`
	Socks     string `json:"socks_proxy"`
	TLSFirst  bool   `json:"tls_first"`
	CertStore string `json:"windows_cert_store"`
}

const ContextEnv = "NATS_CONTEXT"

// DefaultNATS is where commands look for NATS if nothing is said.
const DefaultNATS = "nats://127.0.0.1:4222"

// DialOptions says where and as whom to connect, for clients and for servers beside a NATS
// elsewhere. Flags win over a context that was named, by --context or NATS_CONTEXT, and that wins
// over NATS_URL. The context that the nats command line has selected comes last: it counts only
// where nothing else says where to go.
func (a *App) DialOptions() (natsconn.Options, error) {
	o := natsconn.Options{
		URL: a.NATS, CredsFile: a.creds, NKeyFile: a.nkey, User: a.User, Password: a.Password,
		CAFile: a.tlsCA, CertFile: a.tlsCert, KeyFile: a.tlsKey,
		RetryOnFailedConnect: a.retryConnect,
	}
	name, named := a.contextName()
	if name == "" {
		return o, nil
	}
	c, err := ReadContext(name)
	if err != nil {
		if !named {
			err = fmt.Errorf(
				"%w; it is the one that \"nats context select\" chose: name another, or give --nats",
				err)
		}
		return o, Usage(nil, err)
	}
	return c.Fill(o), nil
}

// External tells whether a server is to work beside a NATS elsewhere: where to go must be said on
// its command line, so that a variable of the environment does not turn a server of its own into
// something else.
func (a *App) External(fs *pflag.FlagSet) bool { return fs.Changed("nats") || a.context.name != "" }

// contextName is the context that counts, "" for none.
func (a *App) contextName() (name string, named bool) {
	switch env := os.Getenv(ContextEnv); {
	case a.context.given:
		return a.context.name, true
	case env != "":
		return env, true
	case a.NATS != "" || os.Getenv("NATS_URL") != "":
		return "", false
	}
	dir, err := contextFolder()
	if err != nil {
		return "", false
	}
	selected, err := os.ReadFile(filepath.Join(dir, "context.txt"))
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(string(selected)), false
}

// contextFlag is --context. Given and empty it means no context, not even the selected one.
type contextFlag struct {
	name  string
	given bool
}

// Set implements [pflag.Value].
func (f *contextFlag) Set(s string) error { f.name, f.given = s, true; return nil }

// String implements [pflag.Value].
func (f *contextFlag) String() string { return f.name }

// Type implements [pflag.Value].
func (f *contextFlag) Type() string { return "string" }

// contextFolder is where the nats command line keeps its contexts, on every system.
func contextFolder() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "nats"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("where are the contexts? %w: set XDG_CONFIG_HOME", err)
	}
	return filepath.Join(home, ".config", "nats"), nil
}

// knownContexts are the names of all contexts, in order.
func knownContexts() []string {
	dir, err := contextFolder()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "context"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadContext reads the context of a name from its file.
func ReadContext(name string) (*natsContext, error) {
	dir, err := contextFolder()
	if err != nil {
		return nil, err
	}
	if strings.Contains(name, "..") || strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("the NATS context %q has no name of a context", name)
	}
	file := filepath.Join(dir, "context", name+".json")
	body, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		ways := "there are none: make one with \"nats context add\""
		if known := knownContexts(); len(known) > 0 {
			ways = "use one of " + strings.Join(known, ", ")
		}
		return nil, fmt.Errorf("the NATS context %q is not known (no file %s); %s",
			name, file, ways)
	}
	if err != nil {
		return nil, fmt.Errorf("the NATS context %q: %w", name, err)
	}
	c := new(natsContext)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf(
			"the NATS context %q is broken: %s: %w; mend it with \"nats context edit %s\"",
			name, file, faultOf(body, err), name)
	}
	if missed := c.unsupported(); missed != "" {
		return nil, fmt.Errorf(
			"the NATS context %q has %s, which drover does not support: connect with --nats and the other flags",
			name, missed)
	}
	return c, nil
}

// unsupported names the first setting without which a connection would go elsewhere, or nowhere.
func (c *natsContext) unsupported() string {
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"nsc", c.NSC != ""},
		{"user_jwt", c.UserJWT != ""},
		{"socks_proxy", c.Socks != ""},
		{"tls_first", c.TLSFirst},
		{"windows_cert_store", c.CertStore != ""},
		{"creds of 1Password", strings.HasPrefix(c.Creds, "op://")},
	} {
		if s.set {
			return s.name
		}
	}
	return ""
}

// Fill completes what the flags say. Who connects is taken from one of the two as a whole.
func (c *natsContext) Fill(o natsconn.Options) natsconn.Options {
	if o.URL == "" {
		o.URL = c.URL
	}
	if o.URL == "" {
		o.URL = DefaultNATS // not NATS_URL, which is another place
	}
	if o.CredsFile == "" && o.NKeyFile == "" && o.User == "" && o.Password == "" {
		switch { // the order of the nats command line, which takes the first
		case c.User != "":
			o.User, o.Password = c.User, c.Password
		case c.Creds != "":
			o.CredsFile = atHome(c.Creds)
		case c.NKey != "":
			o.NKeyFile = atHome(c.NKey)
		default:
			o.Token = c.Token
		}
	}
	if o.CAFile == "" {
		o.CAFile = atHome(c.CA)
	}
	if o.CertFile == "" && o.KeyFile == "" && c.Cert != "" && c.Key != "" {
		o.CertFile, o.KeyFile = atHome(c.Cert), atHome(c.Key)
	}
	o.InboxPrefix, o.APIPrefix = c.InboxPrefix, c.APIPrefix
	if o.APIPrefix == "" && c.Domain != "" {
		o.APIPrefix = "$JS." + c.Domain + ".API"
	}
	return o
}

// atHome expands the ~ with which a path may begin.
func atHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}
