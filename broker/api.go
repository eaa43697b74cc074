package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/micro"
	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/broker/types"
	"github.com/droverhq/drover/broker/validate"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

// verbs is the API, as "nats micro info" shows it.
var verbs = []struct {
	name, about string
	serve       func(*Broker, micro.Request)
}{
	{"start", "start a workflow: StartRequest → StartResponse", (*Broker).serveStart},
	{"signal", "signal an open workflow: SignalRequest → SignalResponse", passOn("signal")},
	{
		"describe",
		"everything about an execution but its history: ExecutionRequest → DescribeResponse",
		passOn("describe"),
	},
	{
		"result",
		"how an execution ended, waiting for it: ExecutionRequest → ResultResponse",
		passOn(inspect.VerbResult),
	},
	{
		"why",
		"what an execution waits for, in a sentence: ExecutionRequest → WhyResponse",
		passOn("why"),
	},
	{
		"history",
		"a page of events, waiting for it: HistoryRequest → HistoryResponse",
		passOn("history"),
	},
	{"pause", "stop asking the decider: ExecutionRequest → AckResponse", passOn("pause")},
	{"resume", "undo a pause: ExecutionRequest → AckResponse", passOn("resume")},
	{
		"cancel",
		"ask the decider to end a run: ExecutionRequest → AckResponse",
		passOn(actor.KindCancel),
	},
	{"terminate", "end a run at once: ExecutionRequest → AckResponse", passOn(actor.KindEnd)},
	{
		actor.VerbHold,
		"keep a run from being asked to continue as new: ExecutionRequest → AckResponse",
		passOn(actor.VerbHold),
	},
	{actor.VerbRelease, "undo a hold: ExecutionRequest → AckResponse", passOn(actor.VerbRelease)},
	{
		actor.KindReplay,
		"run again what has ended, from a replay point: ReplayRequest → ReplayResponse",
		serveReplay(actor.KindReplay),
	},
	{
		actor.KindReplayForce,
		"the same, and mind neither idempotence nor replay points nor replayable: disabled: " +
			"ReplayRequest → ReplayResponse",
		serveReplay(actor.KindReplayForce),
	},
	{
		"locks",
		"who holds which lock, and who waits: LocksRequest → LocksResponse",
		(*Broker).serveLocks,
	},
	{
		actor.KindBreakLock,
		"take a lock from a run: ExecutionRequest → AckResponse",
		passOn(actor.KindBreakLock),
	},
	{"list", "executions by simple filters: ListRequest → ListResponse", (*Broker).serveList},
	{"count", "how many a list has: CountRequest → CountResponse", (*Broker).serveCount},
	{
		"spans",
		"what an execution does and waits for, as spans of time: SpansRequest → SpansResponse",
		(*Broker).serveSpans,
	},
	{
		"lists",
		"how the task lists stand: TaskListsRequest → TaskListsResponse",
		(*Broker).serveLists,
	},
	{"dead", "dead letters: DeadRequest → DeadResponse", (*Broker).serveDead},
	{
		"audit",
		"what runs of a partition wait for, for audits: AuditRequest → AuditResponse",
		(*Broker).serveAudit,
	},
	{
		"repair",
		"do again what a run has open, which is harmless: ExecutionRequest → AckResponse",
		passOn(partition.VerbRepair),
	},
	{
		"upload",
		"begin to hand over a payload too large for a message: UploadRequest → UploadResponse",
		(*Broker).serveUpload,
	},
	{
		"download",
		"a piece of such a payload: DownloadRequest → DownloadResponse",
		(*Broker).serveDownload,
	},
	{"tasklist", "open a task list: TaskListRequest → TaskListResponse", (*Broker).serveTaskList},
	{
		"typeRegister",
		"register a workflow or activity type: TypeRegisterRequest → TypeResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, (*types.Table).Register) },
	},
	{
		"typeDeprecate",
		"allow a type no longer: TypeRequest → TypeResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, types.SetStatus(schemas.TypeDeprecated)) },
	},
	{
		"typeUndeprecate",
		"undo a deprecation: TypeRequest → TypeResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, types.SetStatus(schemas.TypeRegistered)) },
	},
	{
		"typeDelete",
		"delete a deprecated type: TypeRequest → TypeResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, (*types.Table).Remove) },
	},
	{
		"typeDescribe",
		"one type and its defaults: TypeRequest → TypeResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, (*types.Table).Describe) },
	},
	{
		"typeList",
		"registered types: TypeListRequest → TypeListResponse",
		func(b *Broker, r micro.Request) { serveType(b, r, (*types.Table).List) },
	},
}

// serveAPI registers the micro service; every broker of the namespace answers, in one queue group.
// It ends with its connection: stopping the service would drain it first, and nothing is left to
// answer by then.
func (b *Broker) serveAPI() error {
	service, err := micro.AddService(b.api.NATS(), micro.Config{
		Name: "drover", Version: b.Options.Version,
		Description: "Drover workflow service, namespace " + b.Options.Namespace,
		Metadata: map[string]string{
			"namespace": b.Options.Namespace, "node": b.Options.Node,
			schemas.FeaturesKey: schemas.FeatureNames(schemas.Features()),
		},
	})
	if err != nil {
		return fmt.Errorf("register the API: %w", err)
	}
	for _, v := range verbs {
		handler := micro.HandlerFunc(func(r micro.Request) {
			if err := schemas.CheckUTF8(r.Data()); err != nil {
				b.refuse(r, env.Invalid(err))
				return
			}
			b.Options.Stats.Asked(r.Reply(), v.name)
			b.serveQuorate(r, v.serve)
		})
		err := service.AddEndpoint(v.name, handler, micro.WithEndpointSubject(b.NS.API(v.name)),
			micro.WithEndpointMetadata(map[string]string{"about": v.about}))
		if err != nil {
			return fmt.Errorf("register the API verb %s: %w", v.name, err)
		}
	}
	return nil
}

func content(r micro.Request) string { return r.Headers().Get(schemas.ContentTypeHeader) }

func (b *Broker) refuse(r micro.Request, e *schemas.Error) { b.RefuseTo(r.Reply(), content(r), e) }

// passOn sends a request on to the owner of its workflow's partition; the owner answers the
// requester itself. While there is none the request waits for a moment.
func passOn(verb string) func(*Broker, micro.Request) {
	return func(b *Broker, r micro.Request) {
		var q struct {
			WorkflowID  string              `json:"workflowId"`
			RequestID   string              `json:"requestId"`
			Name        string              `json:"name"`
			ChildPolicy schemas.ChildPolicy `json:"childPolicy"`
			Lock        string              `json:"lock"`
			Scope       string              `json:"scope"`
			Input       schemas.Payload     `json:"input"`
			Details     schemas.Payload     `json:"details"`
		}
		err := schemas.Unmarshal(r.Data(), &q)
		if err == nil && !natsconn.Lenient(natsconn.Header(r.Headers())) {
			err = schemas.CheckFields(r.Data(), fullRequest(verb))
		}
		if err != nil {
			b.refuse(r, env.Invalid(err))
			return
		}
		if err := schemas.ValidateID("workflowId", q.WorkflowID); err != nil {
			b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("workflowId"))
			return
		}
		if refused := b.tooLargeToPass(len(r.Data()), fieldOf(verb)); refused != nil {
			b.refuse(r, refused)
			return
		}
		if err := q.ChildPolicy.Validate("childPolicy"); err != nil {
			b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("childPolicy"))
			return
		}
		validate := schemas.ValidateLength
		if verb == "signal" {
			validate = schemas.ValidateSignalRequestID
		}
		if err := validate("requestId", q.RequestID); err != nil {
			b.refuse(r, err)
			return
		}
		if verb == "signal" {
			if err := schemas.ValidateID("name", q.Name); err != nil {
				b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("name"))
				return
			}
		}
		if verb == actor.KindBreakLock {
			if err := schemas.ValidateLock(q.Lock, q.Scope); err != nil {
				b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("lock"))
				return
			}
		}
		if named := references(named{"input", q.Input}, named{"details", q.Details}); named != nil {
			id := q.WorkflowID // or all of q would be captured, also where nothing is named
			b.referring(r, named,
				func() { b.toOwner(id, r.Reply(), requestHeader(verb, content(r)), r.Data()) })
			return
		}
		b.toOwner(q.WorkflowID, r.Reply(), requestHeader(verb, content(r)), r.Data())
	}
}

// fullRequest is what the owner decodes of a request that is passed on to it.
func fullRequest(verb string) any {
	switch verb {
	case "history":
		return &schemas.HistoryRequest{}
	case "signal":
		return &schemas.SignalRequest{}
	}
	return &schemas.ExecutionRequest{}
}

// requestHeader is that of a request to an owner, whose answer has the given content.
func requestHeader(verb, content string) natsconn.Header {
	h := natsconn.Header{actor.VerbHeader: {verb}}
	if content != "" {
		h.Set(schemas.ContentTypeHeader, content)
	}
	return h
}

// toOwner hands a request to the owner of its workflow's partition, which may be in this process.
func (b *Broker) toOwner(wid, reply string, h natsconn.Header, body []byte) {
	n := b.PartitionOf(wid)
	if p := b.part(n); p == nil || !p.Serve(natsconn.Msg{Reply: reply, Header: h, Data: body}) {
		b.Relay.Send(n, reply, h, body)
	}
}

// serveStart hands a start to the owner of its workflow id, which answers once it is in the
// history, or refused.
func (b *Broker) serveStart(r micro.Request) {
	q := &schemas.StartRequest{}
	if err := env.DecodeRequest(r, q); err != nil {
		// much of it stays for as long as the run, and some for longer
		b.refuse(r, env.Invalid(err))
		return
	}
	switch {
	case q.WorkflowID != "":
	case q.RequestID != "": // a repeat means the same workflow
		q.WorkflowID = runid.OfRequest("", q.RequestID)
	default:
		q.WorkflowID = ulid.Make().String()
	}
	switch {
	case q.Run != "":
	case q.RequestID != "": // a repeat asks for the same run
		q.Run = runid.OfRequest(q.WorkflowID, q.RequestID)
	default:
		q.Run = ulid.Make().String()
	}
	if err := validate.Start(q); err != nil {
		b.refuse(r, err)
		return
	}
	q.Origin, q.Replays = nil, nil
	q.V = schemas.Version
	var signal schemas.Payload
	if q.Signal != nil {
		signal = q.Signal.Input
	}
	if named := references(named{"input", q.Input}, named{"signal.input", signal}); named != nil {
		b.referring(r, named, func() { b.accept(r, q) })
		return
	}
	b.accept(r, q)
}

func (b *Broker) accept(r micro.Request, q *schemas.StartRequest) {
	body, err := schemas.Marshal(q)
	if err != nil {
		b.refuse(r, schemas.Errorf(schemas.CodeInternal, "%v", err))
		return
	}
	if refused := b.tooLargeToPass(len(body), "input"); refused != nil {
		b.refuse(r, refused)
		return
	}
	b.toOwner(q.WorkflowID, r.Reply(), requestHeader(actor.KindStart, content(r)), body)
}

// tooLargeToPass is the refusal of a request of some bytes that cannot be sent to its owner, or
// nil. What is large of others goes into the object store.
func (b *Broker) tooLargeToPass(bytes int, field string) *schemas.Error {
	most := b.Largest() - env.RelayBudget
	if bytes <= most {
		return nil
	}
	return schemas.Errorf(schemas.CodeTooLarge, "the request takes %d bytes; at most %d fit",
		bytes, most).InField(field).
		WithHint(
			"upload it and pass the reference instead of the data, or raise the server's max_payload")
}

// fieldOf is the field of a request that may be large.
func fieldOf(verb string) string {
	if verb == "signal" {
		return "input"
	}
	return "details"
}

// background answers a request from a goroutine of its own.
func (b *Broker) background(r micro.Request, serve func(context.Context) (any, error)) {
	b.Answering.Run(func() {
		ctx, cancel := context.WithTimeout(b.Background, env.ReadTimeout)
		defer cancel()
		v, err := serve(ctx)
		if err != nil {
			e, ok := errors.AsType[*schemas.Error](err)
			if !ok {
				e = env.Unavailable(err)
			}
			b.refuse(r, e)
			return
		}
		b.Respond(r.Reply(), content(r), v)
	})
}
