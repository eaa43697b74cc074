package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func TestTypeRegister(t *testing.T) {
	s := newService(t)
	var got schemas.TypeRegisterRequest
	status := schemas.TypeRegistered
	on(s, "typeRegister", func(req schemas.TypeRegisterRequest) any {
		got = req
		info := req.Info(at(0))
		info.Status = status
		return schemas.TypeResponse{Type: info, Changed: true}
	})
	s.drover("", "type", "register", "workflow", "order", "--version", "2", "--description", "an order", "--timeout-workflow", "24h",
		"--timeout-decider", "5", "--timeout-decider-wait", "NONE", "--priority", "3", "--child-policy", "abandon",
		"--list", "billing", "--heartbeat", "9s").want(t, cli.ExitDone, "registered workflow type order version 2\n")
	want := schemas.TypeRegisterRequest{
		V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "2", Description: "an order",
		Workflow: &schemas.WorkflowTypeDefaults{
			ExecutionStartToCloseTimeout: schemas.Seconds(86400), TaskStartToCloseTimeout: schemas.Seconds(5),
			TaskScheduleToStartTimeout: schemas.Unlimited, TaskPriority: 3, ChildPolicy: schemas.ChildAbandon,
			ActivityDefaults: &schemas.ActivityDefaults{List: "billing", HeartbeatTimeout: schemas.Seconds(9)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", "type", "register", "workflow", "order", "--type-version", "3").want(t, cli.ExitDone, "registered workflow type order version 3\n")
	if got.Version != "3" {
		t.Errorf("got version %q, want that of --type-version, as start has it", got.Version)
	}
	s.drover("", "type", "register", "activity", "charge card", "--list", "billing", "--schedule-to-start", "1", "--start-to-close", "2",
		"--schedule-to-close", "3", "--heartbeat", "4", "--priority", "-1", "--retry-attempts", "5", "--retry-interval", "6",
		"--retry-backoff", "1.5", "--retry-longest", "NONE", "--retry-except", "declined", "--retry-except", "a,b", "--not-idempotent").
		want(t, cli.ExitDone, "registered activity type \"charge card\"\n")
	want = schemas.TypeRegisterRequest{
		V: 1, Kind: schemas.ActivityKind, Name: "charge card",
		Activity: &schemas.ActivityTypeDefaults{
			List: "billing", TaskPriority: -1, ScheduleToStartTimeout: schemas.Seconds(1), StartToCloseTimeout: schemas.Seconds(2),
			ScheduleToCloseTimeout: schemas.Seconds(3), HeartbeatTimeout: schemas.Seconds(4), NotIdempotent: true,
			Retry: &schemas.RetryPolicy{
				MaximumAttempts: 5, InitialInterval: schemas.Seconds(6), BackoffCoefficient: 1.5, MaximumInterval: schemas.Unlimited,
				NonRetryable: []string{"declined", "a,b"},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", "type", "register", "activity", "charge", "--json").want(t, cli.ExitDone,
		`{"kind":"activity","name":"charge","status":"REGISTERED","createdAt":"2026-01-02T03:04:05Z","activity":{}}`+"\n")
	if got.Activity.Retry != nil {
		t.Fatalf("got %+v, want no retries", got.Activity.Retry)
	}
	status = schemas.TypeDeprecated
	s.drover("", "type", "register", "activity", "charge").want(t, cli.ExitDone, "registered activity type charge, which is deprecated\n")
}

func TestTypeStanding(t *testing.T) {
	s := newService(t)
	info := &schemas.TypeInfo{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "1", Status: schemas.TypeDeprecated, CreatedAt: at(0), DeprecatedAt: at(1)}
	var got schemas.TypeRequest
	for _, verb := range []string{"typeDeprecate", "typeUndeprecate", "typeDelete"} {
		on(s, verb, func(req schemas.TypeRequest) any {
			got = req
			return schemas.TypeResponse{Type: info, Changed: true}
		})
	}
	for command, done := range map[string]string{"deprecate": "deprecated", "undeprecate": "undeprecated", "delete": "deleted"} {
		s.drover("", "type", command, "workflow", "order", "--version", "1").want(t, cli.ExitDone, done+" workflow type order version 1\n")
		if got != (schemas.TypeRequest{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "1"}) {
			t.Fatalf("%s: asked %+v", command, got)
		}
	}
	s.drover("", "type", "delete", "workflow", "order", "--version", "1", "--json").want(t, cli.ExitDone, `{"kind":"workflow","name":"order","version":"1","deleted":true}`+"\n")
	s.drover("", "type", "deprecate", "workflow", "order", "--version", "1", "--json").want(t, cli.ExitDone,
		`{"kind":"workflow","name":"order","version":"1","status":"DEPRECATED","createdAt":"2026-01-02T03:04:05Z","deprecatedAt":"2026-01-02T03:04:06Z"}`+"\n")
}

func TestTypeDescribeAndList(t *testing.T) {
	s := newService(t)
	infos := []schemas.TypeInfo{
		{
			V: 1, Kind: schemas.ActivityKind, Name: "charge card", Status: schemas.TypeRegistered, CreatedAt: at(0), Description: "takes \x1b[2J money",
			Activity: &schemas.ActivityTypeDefaults{List: "billing", StartToCloseTimeout: schemas.Unlimited, Retry: &schemas.RetryPolicy{MaximumAttempts: 5, NonRetryable: []string{"a\x1bb"}}},
		},
		{V: 1, Kind: schemas.WorkflowKind, Name: "order", Version: "1", Status: schemas.TypeDeprecated, CreatedAt: at(0), DeprecatedAt: at(60)},
	}
	var asked schemas.TypeListRequest
	on(s, "typeList", func(req schemas.TypeListRequest) any {
		asked = req
		return schemas.TypeListResponse{Types: infos}
	})
	on(s, "typeDescribe", func(req schemas.TypeRequest) any {
		i := infos[0]
		if req.Name == "order" {
			i = infos[1]
		}
		return schemas.TypeResponse{Type: &i}
	})
	s.drover("", "type", "list").want(t, cli.ExitDone, strings.Join([]string{
		`KIND      NAME           VERSION  STATUS      REGISTERED                DESCRIPTION`,
		`activity  "charge card"  -        registered  2026-01-02 03:04:05.000Z  "takes \x1b[2J money"`,
		`workflow  order          1        deprecated  2026-01-02 03:04:05.000Z  `, ``,
	}, "\n"))
	s.drover("", "type", "list", "--json", "--kind", "workflow", "--prefix", "o", "--deprecated", "--limit", "7").want(t, cli.ExitDone,
		`{"kind":"activity","name":"charge card","description":"takes \u001b[2J money","status":"REGISTERED","createdAt":"2026-01-02T03:04:05Z",`+
			`"activity":{"list":"billing","startToCloseTimeout":"NONE","retry":{"maximumAttempts":5,"nonRetryable":["a\u001bb"]}}}`+"\n"+
			`{"kind":"workflow","name":"order","version":"1","status":"DEPRECATED","createdAt":"2026-01-02T03:04:05Z","deprecatedAt":"2026-01-02T03:05:05Z"}`+"\n")
	if want := (schemas.TypeListRequest{V: 1, Kind: schemas.WorkflowKind, Prefix: "o", Status: schemas.TypeDeprecated, Limit: 7}); asked != want {
		t.Fatalf("asked %+v, want %+v", asked, want)
	}
	s.drover("", "type", "describe", "activity", "charge card").want(t, cli.ExitDone, strings.Join([]string{
		`activity               "charge card"`,
		`status                 registered`,
		`registered             2026-01-02 03:04:05.000Z`,
		`description            "takes \x1b[2J money"`,
		`list                   "billing"`,
		`retry.maximumAttempts  5`,
		`retry.nonRetryable     ["a\u001bb"]`,
		`startToCloseTimeout    "NONE"`, ``,
	}, "\n"))
	s.drover("", "type", "describe", "workflow", "order", "--version", "1").want(t, cli.ExitDone, strings.Join([]string{
		`workflow    order version 1`,
		`status      deprecated`,
		`registered  2026-01-02 03:04:05.000Z`,
		`deprecated  2026-01-02 03:05:05.000Z`, ``,
	}, "\n"))
}

// Bad input: the command line of types.
func TestTypeUsage(t *testing.T) {
	s := newService(t)
	for args, want := range map[string][]string{
		"type":                                                          {"a command is missing"},
		"type frobnicate":                                               {`no command "type frobnicate"`},
		"type register":                                                 {"KIND and NAME is missing"},
		"type register order":                                           {"NAME is missing"},
		"type register lambda order":                                    {`KIND is "lambda"`, "workflow or activity"},
		"type register workflow a b":                                    {`argument "b" is too much`},
		"type describe order 1":                                         {`KIND is "order"`},
		"type list --kind x":                                            {`--kind is "x"`},
		"type list --limit -1":                                          {"Limit is -1"},
		"type deprecate workflow a\tb\n":                                {"control character"},
		"type register workflow o --retry-attempts 3":                   {"--retry-attempts is not for workflow types"},
		"type register workflow o --not-idempotent":                     {"--not-idempotent is not for workflow types"},
		"type register activity o --timeout-workflow 3":                 {"--timeout-workflow is not for activity types"},
		"type register workflow o --child-policy kill":                  {"--child-policy", "abandon"},
		"type register activity o --heartbeat soon":                     {"--heartbeat", "1m30s"},
		"type register activity o --retry-interval NONE":                {"--retry-interval"},
		"type register activity o --retry-backoff nan":                  {"backoffCoefficient", "1 to 1000"},
		"type register activity o --list a.b":                           {"activity.list"},
		"type register activity o --version " + strings.Repeat("1", 65): {"version: 65 bytes", "64"},
	} {
		t.Run(args, func(t *testing.T) {
			s.drover("", strings.Split(args, " ")...).want(t, cli.ExitUsage, "", append(want, "drover: ")...)
		})
	}
}

func TestTypeRefusal(t *testing.T) {
	s := newService(t)
	on(s, "typeRegister", func(schemas.TypeRegisterRequest) any {
		return schemas.TypeResponse{Error: schemas.Errorf(schemas.CodeAlreadyExists, "another description").InField("description").WithHint("take a new version")}
	})
	s.drover("", "type", "register", "workflow", "order").want(t, cli.ExitFailed, "", "another description", "\n  take a new version\n")
	e := wantErrorDocument(t, s.drover("", "type", "register", "workflow", "order", "--json"), schemas.CodeAlreadyExists, "")
	if e.Field != "description" || e.Hint != "take a new version" {
		t.Fatalf("got %+v", e)
	}
}
