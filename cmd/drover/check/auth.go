package check

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/permissions"
)

func AuthCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Show which NATS permissions each role needs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("a command is missing: template")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(authTemplateCommand(a))
	return cmd
}

// changeMe stands where the password belongs.
const changeMe = "CHANGE-ME"

type templateFlags struct {
	options permissions.Options
	servers string // the account of the servers
	nsc     bool
}

func authTemplateCommand(a *cli.App) *cobra.Command {
	var f templateFlags
	roles := make([]string, 0, len(permissions.Roles()))
	for _, r := range permissions.Roles() {
		roles = append(roles, string(r))
	}
	cmd := &cobra.Command{
		Use:   "template ROLE",
		Short: "Print the NATS permissions that a role needs",
		Long: `Print the NATS permissions that a role needs, and no more. No server is asked.

ROLE is one of ` + strings.Join(roles, ", ") + `.
A server is broker, timer and ops in one, and decides for flows; a worker with --flows needs what a
decider needs.

It prints a user for the configuration of a NATS server, with the reason for each subject. --user
and --password are those of that user. With --json or -o yaml it prints the permissions alone, as
NATS spells them in JSON; with --nsc a command line of nsc, for accounts with JWTs.

The roles of servers are for all namespaces of an account, unless --namespace names one; the others
are for that one namespace. Every user has reply subjects of its own, so that nobody hears the
answers of others: connect with the same prefix, by inbox_prefix in a context of the nats command
line or by Options.InboxPrefix in a program.

Permissions say where a user may publish. NATS does not judge the reply subject that the user
names there, and who answers does so by its own right: so somebody who is not trusted, signaler,
client, operator or viewer, belongs into another account than the servers. --account NAME prints
that account and what NAME, the account of the servers, exports to it.`,
		Example: `  drover auth template server
  drover auth template activity --list PCI --user pci
  drover auth template signaler --signal approve --account DROVER`,
		Args:      cli.ArgNames("ROLE"),
		ValidArgs: roles,
		RunE:      func(cmd *cobra.Command, args []string) error { return f.print(a, cmd, permissions.Role(args[0])) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.options.Lists, "list", nil,
		"task list of an activity worker; repeat it for more")
	fs.StringVar(&f.options.Identity, "identity", "",
		"identity of an activity worker, which then hears only what it is told itself")
	fs.StringSliceVar(&f.options.Types, "type", nil,
		"workflow type of a decider; repeat it for more (default all)")
	fs.StringVar(&f.options.Workflow, "workflow", "",
		"workflow id that a signaler may signal (default any)")
	fs.StringVar(&f.options.Signal, "signal", "", "name that a signaler may use (default any)")
	fs.StringVar(&f.options.Inbox, "inbox", "",
		"prefix of the user's reply subjects (default _INBOX.<user>)")
	fs.IntVar(&f.options.Partitions, "partitions", 0,
		"partitions of the namespace, for timer (default 4)")
	fs.StringVar(&f.options.Domain, "domain", "", "JetStream domain, where the server has one")
	fs.StringVar(&f.servers, "account", "",
		"put the user into an account of its own, beside this one of the servers")
	fs.BoolVar(&f.nsc, "nsc", false, "print a command line of nsc instead")
	return cmd
}

// print prints the template of a role.
func (f *templateFlags) print(a *cli.App, cmd *cobra.Command, role permissions.Role) error {
	o := f.options
	o.Role, o.User, o.Namespace = role, a.User, a.Namespace
	if server := permissions.OfServers(o.Role); server && !cmd.Flags().Changed("namespace") {
		o.Namespace = permissions.AllNamespaces
	}
	if f.nsc || a.JSON {
		if err := cli.RefuseFlags(cmd, []string{"password"},
			"which goes with a configuration, not with --nsc or --json"); err != nil {
			return err
		}
	}
	if o.Role != permissions.Timer {
		if err := cli.RefuseFlags(cmd, []string{"partitions"},
			"which is for the role timer: leave it out"); err != nil {
			return err
		}
	}
	if f.nsc && a.JSON || f.servers != "" && (f.nsc || a.JSON) {
		return cli.Usage(cmd,
			fmt.Errorf("--nsc, --account and --json exclude each other: use one of them"))
	}
	t, err := permissions.For(o)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	switch {
	case a.JSON:
		return a.Document(t.Permissions())
	case f.nsc:
		_, err = fmt.Fprint(a.Stdout, t.NSC())
	case f.servers != "":
		text, err := t.Account(cmp.Or(a.Password, changeMe), f.servers)
		if err != nil {
			return cli.Usage(cmd, err)
		}
		_, err = fmt.Fprint(a.Stdout, text)
		return err
	default:
		_, err = fmt.Fprint(a.Stdout, t.Conf(cmp.Or(a.Password, changeMe)))
	}
	return err
}
