package permissions

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Conf is the user as a block of a NATS server's configuration, for the list of users of an
// account.
func (t *Template) Conf(password string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n{ user: %s, password: %q, permissions: {\n",
		t.About, plain(t.User), password)
	t.list(&b, "publish", func(g Grant) []string { return g.Publish })
	t.list(&b, "subscribe", func(g Grant) []string { return g.Subscribe })
	if r := t.Responses; r != nil {
		fmt.Fprintf(&b,
			"  # one answer to whatever it is asked\n  allow_responses: { max: %d, expires: %q }\n",
			r.Max, r.Expires)
	}
	b.WriteString("} }\n")
	return b.String()
}

// bare is a text that a configuration of NATS, and a shell, take for one as it is. Others could be
// a number, a truth value, a variable or more than one.
var bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// plain writes a word of a configuration, in quotes where it needs them.
func plain(s string) string {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "false", "no", "off", "include":
	default:
		if bare.MatchString(s) {
			return s
		}
	}
	return strconv.Quote(s)
}

func (t *Template) list(b *strings.Builder, what string, of func(Grant) []string) {
	fmt.Fprintf(b, "  %s: [\n", what)
	for _, g := range t.Grants {
		subjects := of(g)
		if len(subjects) == 0 {
			continue
		}
		fmt.Fprintf(b, "    # %s\n", g.Why)
		for _, s := range subjects {
			fmt.Fprintf(b, "    %q\n", s)
		}
	}
	b.WriteString("  ]\n")
}

// NSC is the command line of nsc that makes the user, for accounts with JWTs.
func (t *Template) NSC() string {
	p := t.Permissions()
	name := t.User
	if !bare.MatchString(name) {
		name = "'" + name + "'" // quotes are in no name
	}
	s := fmt.Sprintf("nsc add user --name %s \\\n  --allow-pub '%s' \\\n  --allow-sub '%s'",
		name, strings.Join(p.Publish.Allow, ","), strings.Join(p.Subscribe.Allow, ","))
	if r := t.Responses; r != nil {
		s += fmt.Sprintf(" \\\n  --allow-pub-response=%d --response-ttl %s", r.Max, r.Expires)
	}
	return s + "\n"
}

// separable are the roles that only ask, and hear when to ask again. A decider is asked, and an
// activity worker is told by subjects that travel inside messages, which NATS does not translate
// between accounts.
var separable = []Role{Signaler, Client, Operator, Viewer}

// Account is the user in an account of its own, and what the account of the servers exports to it.
// servers names the latter.
//
// NATS judges where a user publishes, and not the reply subject that it names there: the server, or
// whoever answers, publishes to that by its own right. Within one account a user can thus have an
// acknowledgement put where it may not publish, into an inbox or a history. A reply does not leave
// the account of who asked, so that in another account it reaches nothing.
//
// The error wraps [ErrInvalid] for a role that must be reached from the other side: workers and
// servers.
func (t *Template) Account(password, servers string) (string, error) {
	if !slices.Contains(separable, t.Role) {
		return "", fmt.Errorf(
			"permissions: %w: the role %s cannot have an account of its own, because the "+
				"servers must reach it: use one of %v", ErrInvalid, t.Role, separable)
	}
	account := strings.ToUpper(t.User)
	switch {
	case servers == "" || strings.ContainsAny(servers, " \t\r\n\"'\\{}"):
		return "", fmt.Errorf(
			"permissions: %w: the account %q: use a word without blanks and quotes",
			ErrInvalid, servers)
	case account == servers:
		return "", fmt.Errorf(
			"permissions: %w: the account %s of this user would be that of the servers: give the user another name",
			ErrInvalid, account)
	}
	account, servers = plain(account), plain(servers)
	p := t.Permissions()
	var b strings.Builder
	fmt.Fprintf(&b, "# For the account %s, which the servers of Drover are in.\nexports: [\n",
		servers)
	for _, s := range p.Publish.Allow {
		response := ""
		if strings.Contains(s, ".DIRECT.GET.") { // a batch has many answers
			response = ", response_type: stream"
		}
		fmt.Fprintf(&b, "  { service: %q, accounts: [%s]%s }\n", s, account, response)
	}
	heard := slices.DeleteFunc(slices.Clone(p.Subscribe.Allow),
		func(s string) bool { return strings.HasPrefix(s, defaultInboxes+".") })
	for _, s := range heard {
		fmt.Fprintf(&b, "  { stream: %q, accounts: [%s] }\n", s, account)
	}
	fmt.Fprintf(&b, "]\n# An account of its own.\n%s {\n  imports: [\n", account)
	for _, s := range p.Publish.Allow {
		fmt.Fprintf(&b, "    { service: { account: %s, subject: %q } }\n", servers, s)
	}
	for _, s := range heard {
		fmt.Fprintf(&b, "    { stream: { account: %s, subject: %q } }\n", servers, s)
	}
	b.WriteString("  ]\n  users: [\n")
	for line := range strings.Lines(t.Conf(password)) {
		b.WriteString("    " + line)
	}
	b.WriteString("  ]\n}\n")
	return b.String(), nil
}
