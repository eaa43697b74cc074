package namespaces

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func NamespaceCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespace",
		Aliases: []string{"namespaces"},
		Short:   "Create, list, show and delete namespaces",
		Long: `Make, list, show and delete namespaces. A namespace has its own streams, buckets
and subjects: nothing crosses from one to another. One server serves all of them. "default" makes
itself.

A running server does the work, so no rights to JetStream are needed; it must have the role ops.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("create, list, describe or delete is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(namespaceCreate(a), namespaceList(a), namespaceDescribe(a), namespaceDelete(a))
	return cmd
}

func namespaceCreate(a *cli.App) *cobra.Command {
	var o drover.NamespaceOptions
	maxBytes := cli.SizeFlag{Unlimited: true}
	var requireTypes bool
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a namespace, or change one that exists",
		Example: `  drover namespace create shop --partitions 8 --max-bytes 1GiB
  drover start order --namespace shop`,
		Args: cli.ArgNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.MaxBytes = maxBytes.Value
			if cmd.Flags().Changed("require-types") {
				o.RequireTypes = &requireTypes
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				i, err := c.CreateNamespace(ctx, args[0], &o)
				if err != nil {
					return cli.RefusalInFlags(err)
				}
				if a.JSON {
					return a.Document(i)
				}
				return a.Say("namespace %s has %s", i.Name, NamespaceWords(i))
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&o.Partitions, "partitions", 0,
		"shares of all workflow ids, 1 to 256, fixed when the namespace is made (default 4)")
	fs.Var(&maxBytes, "max-bytes",
		"limit of each stream, such as 1GiB, at least 16MiB; NONE takes it away (default none)")
	fs.StringVar(&o.Compression, "compression", "",
		`what becomes of histories in full blocks: "none", or "s2", a quarter of the disk for more CPU (default none)`)
	fs.IntVar(&o.Replicas, "replicas", 0,
		"servers of the NATS cluster that hold each stream: 1, 3 or 5 (default that of the server)")
	fs.BoolVar(&requireTypes, "require-types", false,
		"refuse workflows and activities whose types are not registered")
	fs.StringVar(&o.FlowRetention, "retention-flows", "",
		`how closed runs of flows are kept that say nothing themselves, such as "max(5, 24h)" (default "3 soft 3")`)
	fs.StringVar(&o.Retention, "retention", "",
		`how those of other types are kept, such as 30d or forever (default 7d)`)
	fs.StringVar(&o.Description, "description", "", "what the namespace is for")
	return cmd
}

func namespaceList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the namespaces",
		Args:  cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return cli.Lines(a, cli.Table{Columns: namespaceColumns, None: "no namespaces"},
					c.ListNamespaces(ctx), namespaceRow)
			})
		},
	}
}

var namespaceColumns = []cli.Column{
	{Head: "NAME", Keep: 20},
	{Head: "STATUS"},
	{Head: "PARTITIONS", Drop: 5},
	{Head: "REPLICAS", Drop: 2},
	{Head: "STORAGE", Drop: 1},
	{Head: "MAX-BYTES", Drop: 4},
	{Head: "TYPES", Drop: 3},
	{Head: "CREATED"},
	{Head: "DESCRIPTION", Keep: 16},
}

func namespaceRow(i schemas.NamespaceInfo) []string {
	types, description := "any", "-"
	if i.RequireTypes {
		types = "registered"
	}
	if i.Description != "" {
		description = cli.Sentence(i.Description)
	}
	return []string{
		i.Name, string(i.Status), fmt.Sprint(i.Partitions), fmt.Sprint(i.Replicas), i.Storage,
		limit(i.MaxBytes), types, cli.When(i.CreatedAt), description,
	}
}

func namespaceDescribe(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show a namespace: settings, streams, task lists",
		Args:  cli.ArgNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				i, err := c.DescribeNamespace(ctx, args[0])
				if err != nil {
					return err
				}
				if a.JSON {
					return a.Document(i)
				}
				_, err = a.Stdout.Write(namespaceText(i))
				return err
			})
		},
	}
}

// namespaceText lays a namespace out for people.
func namespaceText(i *schemas.NamespaceInfo) []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	field("namespace", "%s", i.Name)
	if i.Description != "" {
		field("description", "%s", cli.Sentence(i.Description))
	}
	if i.Status == schemas.NamespaceIncomplete {
		field("status",
			"%s: some of its streams are missing; drover doctor -n %s tells which, and drover "+
				"namespace create %s makes them", i.Status, i.Name, i.Name)
	} else {
		field("status", "%s", i.Status)
	}
	field("created", "%s", cli.When(i.CreatedAt))
	field("partitions", "%d", i.Partitions)
	field("storage", "%s, %d replicas", i.Storage, i.Replicas)
	field("max bytes", "%s for each stream", limit(i.MaxBytes))
	field("compression", "%s", i.Compression)
	field("types", "%s", map[bool]string{
		true: "must be registered", false: "need not be registered",
	}[i.RequireTypes])
	field("retention", "%s of flows, %s of other types, unless runs say otherwise",
		i.FlowRetention, i.Retention)
	lists := "none"
	if len(i.Lists) > 0 {
		lists = strings.Join(i.Lists, ", ")
	}
	field("task lists", "%s", lists)
	t.Flush()
	if len(i.Usage) > 0 {
		fmt.Fprint(&b, "\nstreams\n")
		fmt.Fprintln(t, "  KIND\tSTREAMS\tMESSAGES\tSIZE")
		for _, u := range i.Usage {
			fmt.Fprintf(t, "  %s\t%d\t%d\t%s\n", u.Kind, u.Streams, u.Messages,
				cli.Size(int(u.Bytes)))
		}
		t.Flush()
	}
	return b.Bytes()
}

func namespaceDelete(a *cli.App) *cobra.Command {
	var o drover.DeleteNamespaceOptions
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a namespace with all its histories",
		Long: `Delete a namespace with all that it holds: histories, task lists, dead letters,
payloads. There is no way back.

It asks for the name to be typed again, unless --yes is given, and refuses while runs are open,
unless --force is given. The servers let go of the namespace first. A deletion that was cut short
is completed by the next one.`,
		Args: cli.ArgNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if !yes {
					if err := confirm(a, cmd, args[0]); err != nil {
						return err
					}
				}
				if err := c.DeleteNamespace(ctx, args[0], &o); err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						Name    string `json:"name"`
						Deleted bool   `json:"deleted"`
					}{args[0], true})
				}
				return a.Say("deleted namespace %s", args[0])
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&yes, "yes", false, "do not ask")
	fs.BoolVar(&o.Force, "force", false, "delete it although runs are open")
	fs.StringVar(&o.Reason, "reason", "", "why, for the log of the server")
	return cmd
}

// confirm has the name typed again.
func confirm(a *cli.App, cmd *cobra.Command, name string) error {
	fmt.Fprintf(a.Stderr,
		"This deletes namespace %s with all its histories, for good. Type its name to go on: ",
		name)
	typed, err := bufio.NewReader(io.LimitReader(a.Stdin, 1024)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.Stderr)
	}
	if strings.TrimSpace(typed) != name {
		return cli.Usage(cmd,
			fmt.Errorf("nothing was deleted: %q is not the name %s; type it, or give --yes",
				strings.TrimSpace(typed), name))
	}
	return nil
}

// NamespaceWords describes how a namespace is kept.
func NamespaceWords(i *schemas.NamespaceInfo) string {
	s := fmt.Sprintf("%s, %s, storage %s, limit %s",
		cli.Counted(i.Partitions, "partition", "partitions"),
		cli.Counted(i.Replicas, "replica", "replicas"), i.Storage, limit(i.MaxBytes))
	if i.Compression == "s2" {
		s += ", histories compressed by s2"
	}
	if i.RequireTypes {
		s += ", types must be registered"
	}
	return s
}

func limit(bytes int64) string {
	if bytes <= 0 {
		return "none"
	}
	return cli.Size(int(bytes))
}
