package model

// outsideTypes are run by activity workers, as child runs, or speak to others.
func outsideTypes() []Type {
	command := []Input{
		{Name: "endpoint", Kind: Text},
		{Name: "command", Kind: Text, Required: true},
		{Name: "env", Kind: Map},
		{Name: "exit_code", Kind: Status},
		{
			Name: "output_max_size", Kind: Integer,
			Doc: "bytes of the tail that are kept; 100000 if not given",
		},
	}
	return []Type{
		{
			Name: "activity", Aliases: []string{"invoke-effector"}, Idempotent: Nested, raw: true,
			Shorthand: `${activity} [ " on " ${list} ] [ " with " ${args...} ]`,
			Inputs: []Input{
				{Name: "activity", Aliases: []string{"effector"}, Kind: Text, Required: true},
				{Name: "list", Aliases: []string{"entity"}, Kind: Text, Doc: "the task list"},
				{Name: "args", Kind: Map},
			},
			Doc:     "Runs an activity.",
			Example: "activity charge with amount = ${amount}, currency = EUR",
		},
		{
			Name: "child", Aliases: []string{"child-workflow"}, Idempotent: Nested, raw: true,
			Shorthand: `${workflow} [ " with " ${args...} ]`,
			Inputs: []Input{
				{Name: "workflow", Kind: Text, Required: true, Doc: "its name"},
				{Name: "args", Kind: Map},
				{Name: "run_id", Kind: Text},
			},
			Doc:     "Runs a workflow by its name as a child.",
			Example: "child ship-order with order = ${order}",
		},
		{
			Name: "http", Shorthand: "${endpoint}", Idempotent: NotIdempotent,
			Inputs: []Input{
				{
					Name: "endpoint", Kind: Text, Required: true,
					Doc: "https is the default protocol",
				},
				{Name: "query", Kind: Map},
				{Name: "body", Kind: Any},
				{
					Name: "charset", Kind: Text,
					Doc: "of the answer's text, if that does not say it itself",
				},
				{Name: "status_code", Kind: Status, Doc: "200 to 399 if not given"},
				{Name: "headers", Kind: Map},
				{Name: "method", Kind: Text},
				{Name: "username", Kind: Text},
				{Name: "password", Kind: Text},
				{
					Name: "config", Kind: Map,
					Doc: "timeout of the call, and redirects, how many are followed",
				},
			},
			Doc: "Sends a request and returns status_code, headers, content, which is text, or " +
				"content_bytes, content_json and duration; a path into content reads content_json.",
			Example: "http example.com/prices?item=${item}",
		},
		{
			Name: "ssh", Shorthand: `[ "to " ${endpoint} ] ${command...}`,
			Idempotent: NotIdempotent, Inputs: command,
			Doc:     "Runs a command on another machine and returns stdout, stderr and exit_code.",
			Example: "ssh to ${host} systemctl restart web",
		},
		{
			Name: "shell", Shorthand: "${command...}", Idempotent: NotIdempotent,
			Inputs: command[1:], Doc: "Runs a command where the worker is, if that allows it.",
			Example: "shell ls /var/log",
		},
		{
			Name: "container", Shorthand: "${image} [ ${command...} ]", Idempotent: NotIdempotent,
			Inputs: []Input{
				{Name: "image", Kind: Text, Required: true},
				{Name: "command", Kind: Text},
				{Name: "commands", Kind: List},
				{Name: "raw_command", Kind: List},
				{Name: "args", Kind: List},
				{Name: "env", Kind: Map},
				{Name: "exit_code", Kind: Status},
				{Name: "pull_policy", Kind: Text},
			},
			Doc:     "Runs a container and returns stdout and exit_code.",
			Example: "container alpine:3 echo hello",
		},
		{
			Name: "publish", Shorthand: `${subject} [ " with " ${value...} ]`,
			Idempotent: NotIdempotent,
			Inputs: []Input{
				{Name: "subject", Kind: Text, Required: true},
				{Name: "value", Kind: Any},
				{Name: "headers", Kind: Map},
			},
			Doc:     "Publishes a message on a NATS subject.",
			Example: "publish orders.shipped with ${order}",
		},
		{
			Name: "request", Shorthand: `${subject} [ " with " ${value...} ]`,
			Idempotent: NotIdempotent,
			Inputs: []Input{
				{Name: "subject", Kind: Text, Required: true},
				{Name: "value", Kind: Any},
				{Name: "headers", Kind: Map},
			},
			Doc:     "Sends a request on a NATS subject and returns the answer.",
			Example: "request prices.get with ${item}",
		},
		{
			Name: "once", Shorthand: `${what} [ " per " ${period} ] [ " in " ${time_zone} ]`,
			Idempotent: Idempotent,
			Inputs: []Input{
				{
					Name: "what", Kind: Text, Required: true,
					Doc: "the name of what is done once a period, the same for all who mean the same",
				},
				{
					Name: "period", Kind: Text,
					Doc: "hour, day, week, month, or a cron expression at whose times periods begin; day if not given",
				},
				{
					Name: "time_zone", Kind: Text,
					Doc: "where days begin, such as Europe/Berlin; UTC if not given",
				},
			},
			Doc: "Tells whether this is the first in the present period: returns first, which " +
				"is true for exactly one step in all runs, period, begins and ends.",
			Example: "once daily-report per day in Europe/Berlin",
		},
	}
}
