package permissions

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/subject"
)

// Role is who connects.
type Role string

// The roles.
const (
	// Server is a process with all roles of a server.
	Server Role = "server"
	// Broker, Timer and Ops are processes with one role of a server each.
	Broker Role = "broker"
	Timer  Role = "timer"
	Ops    Role = "ops"
	// Decider is a worker that decides, Activity one that runs activities.
	Decider  Role = "decider"
	Activity Role = "activity"
	// Signaler is a program that sends signals by a plain publish.
	Signaler Role = "signaler"
	// Client is a program that starts workflows and waits for them.
	Client Role = "client"
	// Operator is a person who operates, Viewer one who looks.
	Operator Role = "operator"
	Viewer   Role = "viewer"
	// Auditor is a person who checks streams against histories, and repairs.
	Auditor Role = "auditor"
)

// Roles are all roles, those of servers first.
func Roles() []Role {
	return []Role{
		Server, Broker, Timer, Ops, Decider, Activity, Signaler, Client, Operator, Viewer, Auditor,
	}
}

// ErrInvalid is wrapped by every refusal of options.
var ErrInvalid = errors.New("invalid options")

// AllNamespaces in Options.Namespace means every namespace of the account.
const AllNamespaces = "*"

const (
	defaultPartitions = 4
	defaultInboxes    = "_INBOX"
)

// Options of [For]. Role is required.
type Options struct {
	Role Role
	// Namespace is the tenant. [AllNamespaces] is for servers. Defaults to "default".
	Namespace string
	// Partitions is how many the namespace has; a timer worker reads the alarms of each. Defaults
	// to 4.
	Partitions int
	// User names the NATS user. Defaults to the role.
	User string
	// Inbox is the prefix of the user's reply subjects. Defaults to "_INBOX." and the user.
	Inbox string
	// Domain is the JetStream domain of the server that the user connects to. Defaults to none.
	Domain string
	// Lists are the task lists of an activity worker; at least one.
	Lists []string
	// Types are the workflow types of a decider. Defaults to all.
	Types []string
	// Workflow and Signal bind a signaler to one workflow id and one name. Default to all.
	Workflow, Signal string
	// Identity is that of an activity worker, which then hears only what it is told itself.
	// Defaults to all.
	Identity string
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.Partitions = cmp.Or(o.Partitions, defaultPartitions)
	o.User = cmp.Or(o.User, string(o.Role))
	o.Inbox = cmp.Or(o.Inbox, defaultInboxes+"."+o.User)
	return o
}

// OfServers tells whether a role is one of the servers'.
func OfServers(r Role) bool { return slices.Contains(Roles()[:4], r) }

// validate judges options that have their defaults.
func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	if !slices.Contains(Roles(), o.Role) {
		return bad("there is no role %q: use one of %s", o.Role, names())
	}
	if o.Namespace == AllNamespaces {
		if !OfServers(o.Role) {
			return bad("the role %s belongs to one namespace: name it", o.Role)
		}
	} else if err := subject.ValidateNamespace(o.Namespace); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for _, f := range []struct {
		name  string
		given bool
		role  Role
	}{
		{"Lists", len(o.Lists) > 0, Activity},
		{"Identity", o.Identity != "", Activity},
		{"Types", len(o.Types) > 0, Decider},
		{"Workflow", o.Workflow != "", Signaler},
		{"Signal", o.Signal != "", Signaler},
	} {
		if f.given && o.Role != f.role {
			return bad("%s belongs to the role %s, not to %s: leave it out", f.name, f.role, o.Role)
		}
	}
	if o.Partitions < 1 || o.Partitions > subject.MaxPartitions {
		return bad("Partitions is %d: use 1 to %d, or 0 for %d",
			o.Partitions, subject.MaxPartitions, defaultPartitions)
	}
	if o.Role == Activity && len(o.Lists) == 0 {
		return bad("an activity worker needs the lists that it serves: name at least one")
	}
	return errors.Join(o.validateNames(bad), o.validateIDs())
}

func (o Options) validateNames(bad func(string, ...any) error) error {
	for _, list := range o.Lists {
		if err := subject.ValidateName("list", list); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if strings.ContainsAny(o.User, " \t\r\n\"'\\{}.*>") {
		return bad("User %q: use a word without blanks, quotes, backslashes, dots and wildcards",
			o.User)
	}
	for token := range strings.SplitSeq(o.Inbox, ".") {
		if token == "" || strings.ContainsAny(token, " \t\r\n\"',\\*>") {
			return bad(
				"Inbox %q: use subject tokens without wildcards, quotes and commas, such as %s.%s",
				o.Inbox, defaultInboxes, o.Role)
		}
	}
	if o.Inbox != defaultInboxes && !strings.HasPrefix(o.Inbox, defaultInboxes+".") {
		return bad("Inbox %q: begin with %q, or no server may answer", o.Inbox, defaultInboxes+".")
	}
	if strings.ContainsAny(o.Domain, " \t\r\n\"',\\.*>") {
		return bad("Domain %q: use the name of the JetStream domain, one subject token", o.Domain)
	}
	return nil
}

func (o Options) validateIDs() error {
	ids := []struct{ field, id string }{
		{"workflow id", o.Workflow}, {"signal name", o.Signal}, {"identity", o.Identity},
	}
	for _, t := range o.Types {
		if err := subject.ValidateID("type", t); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	for _, f := range ids {
		if f.id == "" {
			continue
		}
		if err := subject.ValidateID(f.field, f.id); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

func names() string {
	var all []string
	for _, r := range Roles() {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// Grant is what one reason allows.
type Grant struct {
	Why                string
	Publish, Subscribe []string
}

// Responses allow a user to answer what it receives.
type Responses struct {
	Max     int    `json:"max"`     // answers to one message
	Expires string `json:"expires"` // how long after it, as a duration such as "1m"
}

// Subjects are allowed; nothing is denied beside them.
type Subjects struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny,omitempty"`
}

// Permissions are those of a NATS user, as NATS spells them.
type Permissions struct {
	Publish        Subjects   `json:"publish"`
	Subscribe      Subjects   `json:"subscribe"`
	AllowResponses *Responses `json:"allow_responses,omitempty"`
}

// Template is what a role needs.
type Template struct {
	Role   Role
	About  string // in a sentence
	User   string
	Inbox  string // prefix
	Grants []Grant
	// Responses is nil for a role that publishes its answers by right, or answers nobody.
	Responses *Responses
}

// For returns the template of a role. Errors wrap [ErrInvalid].
func For(o Options) (*Template, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("permissions: %w", err)
	}
	r := rights{o: o, ns: subject.Namespace(o.Namespace)}
	t := &Template{Role: o.Role, User: o.User, Inbox: o.Inbox}
	build := builders[o.Role]
	t.About = build.about
	t.Grants = append(build.grants(&r),
		Grant{Why: "the answers to its own requests", Subscribe: []string{o.Inbox + ".>"}})
	t.Grants = reduce(t.Grants)
	if build.responds {
		t.Responses = &Responses{Max: 1, Expires: "1m"} // six times the default limit of a decision
	}
	return t, nil
}

// Permissions puts the grants together.
func (t *Template) Permissions() Permissions {
	p := Permissions{AllowResponses: t.Responses}
	for _, g := range t.Grants {
		p.Publish.Allow = append(p.Publish.Allow, g.Publish...)
		p.Subscribe.Allow = append(p.Subscribe.Allow, g.Subscribe...)
	}
	return p
}

// reduce drops subjects that another one covers, and grants of which nothing is left.
func reduce(grants []Grant) []Grant {
	var pub, sub []string
	for _, g := range grants {
		pub, sub = append(pub, g.Publish...), append(sub, g.Subscribe...)
	}
	seenPub, seenSub := map[string]bool{}, map[string]bool{}
	var left []Grant
	for _, g := range grants {
		g.Publish = needed(g.Publish, pub, seenPub)
		g.Subscribe = needed(g.Subscribe, sub, seenSub)
		if len(g.Publish)+len(g.Subscribe) > 0 {
			left = append(left, g)
		}
	}
	return left
}

func needed(subjects, all []string, seen map[string]bool) []string {
	var left []string
	for _, s := range subjects {
		covered := slices.ContainsFunc(all,
			func(other string) bool { return other != s && Covers(other, s) })
		if !covered && !seen[s] {
			seen[s] = true
			left = append(left, s)
		}
	}
	return left
}

// Covers tells whether every subject that s matches is matched by pattern. Both may hold wildcards.
func Covers(pattern, s string) bool {
	p, q := strings.Split(pattern, "."), strings.Split(s, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(q) > i
		case i >= len(q), q[i] == ">", token != "*" && token != q[i]:
			return false
		}
	}
	return len(p) == len(q)
}
