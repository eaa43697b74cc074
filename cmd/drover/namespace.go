package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func namespaceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespace",
		Aliases: []string{"namespaces"},
		Short:   "Create, list, show and delete namespaces",
		Long: `Make, list, show and delete namespaces. A namespace has its own streams, buckets and subjects: nothing crosses from one to
another. One server serves all of them. "default" makes itself.

A running server does the work, so no rights to JetStream are needed; it must have the role ops.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("create, list, describe or delete is missing")
			}
			return noCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(namespaceCreate(a), namespaceList(a), namespaceDescribe(a), namespaceDelete(a))
	return cmd
}

func namespaceCreate(a *app) *cobra.Command {
	var o drover.NamespaceOptions
	maxBytes := sizeFlag{unlimited: true}
	var requireTypes bool
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a namespace, or change one that exists",
		Example: `  drover namespace create shop --partitions 8 --max-bytes 1GiB
  drover start order --namespace shop`,
		Args: argNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.MaxBytes = maxBytes.value
			if cmd.Flags().Changed("require-types") {
				o.RequireTypes = &requireTypes
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				i, err := c.CreateNamespace(ctx, args[0], &o)
				if err != nil {
					return refusalInFlags(err)
				}
				if a.json {
					return a.document(i)
				}
				return a.say("namespace %s has %s", i.Name, namespaceWords(i))
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVar(&o.Partitions, "partitions", 0, "shares of all workflow ids, 1 to 256, fixed when the namespace is made (default 4)")
	fs.Var(&maxBytes, "max-bytes", "limit of each stream, such as 1GiB, at least 16MiB; NONE takes it away (default none)")
	fs.StringVar(&o.Compression, "compression", "", `what becomes of histories in full blocks: "none", or "s2", a quarter of the disk for more CPU (default none)`)
	fs.IntVar(&o.Replicas, "replicas", 0, "servers of the NATS cluster that hold each stream: 1, 3 or 5 (default that of the server)")
	fs.BoolVar(&requireTypes, "require-types", false, "refuse workflows and activities whose types are not registered")
	fs.StringVar(&o.FlowRetention, "retention-flows", "", `how closed runs of flows are kept that say nothing themselves, such as "max(5, 24h)" (default "3 soft 3")`)
	fs.StringVar(&o.Retention, "retention", "", `how those of other types are kept, such as 30d or forever (default 7d)`)
	fs.StringVar(&o.Description, "description", "", "what the namespace is for")
	return cmd
}

func namespaceList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the namespaces",
		Args:  argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				return lines(a, table{namespaceColumns, "no namespaces"}, c.ListNamespaces(ctx), namespaceRow)
			})
		},
	}
}

var namespaceColumns = []column{
	{head: "NAME", keep: 20},
	{head: "STATUS"},
	{head: "PARTITIONS", drop: 5},
	{head: "REPLICAS", drop: 2},
	{head: "STORAGE", drop: 1},
	{head: "MAX-BYTES", drop: 4},
	{head: "TYPES", drop: 3},
	{head: "CREATED"},
	{head: "DESCRIPTION", keep: 16},
}

func namespaceRow(i schemas.NamespaceInfo) []string {
	types, description := "any", "-"
	if i.RequireTypes {
		types = "registered"
	}
	if i.Description != "" {
		description = sentence(i.Description)
	}
	return []string{
		i.Name, string(i.Status), fmt.Sprint(i.Partitions), fmt.Sprint(i.Replicas), i.Storage, limit(i.MaxBytes), types, when(i.CreatedAt), description,
	}
}

func namespaceDescribe(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show a namespace: settings, streams, task lists",
		Args:  argNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				i, err := c.DescribeNamespace(ctx, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.document(i)
				}
				_, err = a.stdout.Write(namespaceText(i))
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
		field("description", "%s", sentence(i.Description))
	}
	if i.Status == schemas.NamespaceIncomplete {
		field("status", "%s: some of its streams are missing; drover doctor -n %s tells which, and drover namespace create %s makes them", i.Status, i.Name, i.Name)
	} else {
		field("status", "%s", i.Status)
	}
	field("created", "%s", when(i.CreatedAt))
	field("partitions", "%d", i.Partitions)
	field("storage", "%s, %d replicas", i.Storage, i.Replicas)
	field("max bytes", "%s for each stream", limit(i.MaxBytes))
	field("compression", "%s", i.Compression)
	field("types", "%s", map[bool]string{true: "must be registered", false: "need not be registered"}[i.RequireTypes])
	field("retention", "%s of flows, %s of other types, unless runs say otherwise", i.FlowRetention, i.Retention)
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
			fmt.Fprintf(t, "  %s\t%d\t%d\t%s\n", u.Kind, u.Streams, u.Messages, size(int(u.Bytes)))
		}
		t.Flush()
	}
	return b.Bytes()
}

func namespaceDelete(a *app) *cobra.Command {
	var o drover.DeleteNamespaceOptions
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a namespace with all its histories",
		Long: `Delete a namespace with all that it holds: histories, task lists, dead letters, payloads. There is no way back.

It asks for the name to be typed again, unless --yes is given, and refuses while runs are open, unless --force is given.
The servers let go of the namespace first. A deletion that was cut short is completed by the next one.`,
		Args: argNames("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				if !yes {
					if err := a.confirm(cmd, args[0]); err != nil {
						return err
					}
				}
				if err := c.DeleteNamespace(ctx, args[0], &o); err != nil {
					return err
				}
				if a.json {
					return a.document(struct {
						Name    string `json:"name"`
						Deleted bool   `json:"deleted"`
					}{args[0], true})
				}
				return a.say("deleted namespace %s", args[0])
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
func (a *app) confirm(cmd *cobra.Command, name string) error {
	fmt.Fprintf(a.stderr, "This deletes namespace %s with all its histories, for good. Type its name to go on: ", name)
	typed, err := bufio.NewReader(io.LimitReader(a.stdin, 1024)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.stderr)
	}
	if strings.TrimSpace(typed) != name {
		return usage(cmd, fmt.Errorf("nothing was deleted: %q is not the name %s; type it, or give --yes", strings.TrimSpace(typed), name))
	}
	return nil
}

func namespaceWords(i *schemas.NamespaceInfo) string {
	s := fmt.Sprintf("%s, %s, storage %s, limit %s", counted(i.Partitions, "partition", "partitions"), counted(i.Replicas, "replica", "replicas"), i.Storage, limit(i.MaxBytes))
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
	return size(int(bytes))
}

// sizeFlag is a number of bytes on the command line: 1048576, 64MiB, 1GiB, or NONE for no limit where a command allows it.
type sizeFlag struct {
	value     int64 // -1 stands for NONE
	unlimited bool
}

var _ pflag.Value = (*sizeFlag)(nil)

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// Set implements [pflag.Value].
func (f *sizeFlag) Set(s string) error {
	if s == "NONE" && f.unlimited {
		f.value = -1
		return nil
	}
	number, unit := s, int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > 1<<62/unit {
		want := "want a number of bytes, or one with KiB, MiB, GiB or TiB, such as 64MiB"
		if f.unlimited {
			want += ", or NONE"
		}
		return errors.New(want)
	}
	f.value = n * unit
	return nil
}

// String implements [pflag.Value].
func (f *sizeFlag) String() string {
	switch {
	case f.value < 0:
		return "NONE"
	case f.value == 0:
		return ""
	default:
		return strconv.FormatInt(f.value, 10)
	}
}

// Type implements [pflag.Value].
func (f *sizeFlag) Type() string { return "size" }
