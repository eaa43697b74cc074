package permissions

import (
	"cmp"
	"slices"
	"strings"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// builders are the roles.
var builders = map[Role]struct {
	about    string
	grants   func(*rights) []Grant
	responds bool
}{
	Server: {
		about:  "A server with all roles. It owns the streams of the namespaces that it serves.",
		grants: (*rights).server,
	},
	Broker: {
		about:  "A server with the role broker alone: drover server --roles broker.",
		grants: (*rights).broker,
	},
	Timer: {
		about: "A server with the role timers alone, for a namespace that exists: drover " +
			"server --roles timers. It rings alarms.",
		grants: (*rights).timer, responds: true,
	},
	Ops: {
		about:  "A server with the role ops alone: drover server --roles ops. It makes and deletes namespaces, too.",
		grants: (*rights).ops,
	},
	Decider: {
		about: "A worker that decides. It answers the requests that it gets, and publishes " +
			"nothing else of its own accord.",
		grants:   (*rights).decider,
		responds: true,
	},
	Activity: {
		about:    "A worker that runs activities of its lists. It reads no other list and no history.",
		grants:   (*rights).activity,
		responds: true,
	},
	Signaler: {
		about:  "A program that sends signals by a plain publish.",
		grants: (*rights).signaler,
	},
	Client: {
		about:  "A program that starts workflows, signals them and waits for them.",
		grants: (*rights).client,
	},
	Operator: {
		about:  "People who operate: every command but verify and audit, which read the streams.",
		grants: (*rights).operator,
	},
	Auditor: {
		about: "People who check: verify, audit, doctor. They read every stream of the " +
			"account, and are trusted as servers are.",
		grants: (*rights).auditor,
	},
	Viewer: {about: "Those who may look, and change nothing.", grants: (*rights).viewer},
}

// rights builds grants for one template.
type rights struct {
	o  Options
	ns subject.Namespace
}

// verbs of the API by what they do. Tests compare them with the API itself.
var (
	lookingVerbs = []string{
		"describe", "result", "history", "why", "retention", "list", "count", "lists", "locks",
		"spans", "dead", "typeList", "typeDescribe",
		"scheduleList", "scheduleShow", "alwaysList", "alwaysShow", "recycleShow", "operations",
		"query", "groups",
	}
	clientVerbs = []string{"start", "signal", "result", "replay", "once"}
	// Those that the role ops answers, but for what is about retention.
	keeperVerbs = []string{
		"scheduleCreate", "scheduleUpdate", "schedulePause", "scheduleResume", "scheduleTrigger",
		"scheduleBackfill", "scheduleDelete", "scheduleShow", "scheduleList",
		"alwaysAdd", "alwaysStop", "alwaysStart", "alwaysRemove", "alwaysShow", "alwaysList",
		"once", "recycleSet", "recycleNow", "recycleShow", "operations", "query", "groups",
	}
	// The rest. An audit only looks, but at every run.
	changingVerbs = []string{
		"start", "signal", "replay", "replayForce", "cancel", "terminate", "pause", "resume",
		"hold", "release", "delete", "bulk", "breakLock", "audit", "soft", "repair", "upload", "download",
		"tasklist",
		"typeRegister", "typeDeprecate", "typeUndeprecate", "typeDelete", "scheduleCreate",
		"scheduleUpdate", "schedulePause", "scheduleResume", "scheduleTrigger", "scheduleBackfill",
		"scheduleDelete", "alwaysAdd", "alwaysStop", "alwaysStart", "alwaysRemove", "once",
		"recycleSet", "recycleNow",
	}
)

// js is a subject of the JetStream API.
func (r *rights) js(op string) string {
	if r.o.Domain != "" {
		return "$JS." + r.o.Domain + ".API." + op
	}
	return "$JS.API." + op
}

// answers are where servers answer: inboxes, and what NATS puts in their place for those who ask
// from another account.
func answers() []string { return []string{defaultInboxes + ".>", "_R_.>"} }

// ofStream fills in a stream, or any where the namespace is any: a wildcard is a whole token.
func (r *rights) ofStream(op, stream string) string {
	if r.o.Namespace == AllNamespaces && stream != kvStream(subject.BucketNodes) {
		stream = "*"
	}
	before, after, _ := strings.Cut(op, "%")
	return r.js(before + stream + after)
}

func kvStream(bucket string) string { return "KV_" + bucket }

// kv is every key of a bucket of the namespace, or of that of the nodes. From a server that is not
// of the domain it is written after the domain's prefix.
func (r *rights) kv(bucket string) []string {
	if r.o.Namespace == AllNamespaces && bucket != subject.BucketNodes {
		bucket = "*"
	}
	keys := "$KV." + bucket + ".>"
	if r.o.Domain != "" {
		return []string{keys, r.js(keys)}
	}
	return []string{keys}
}

// acks are both forms of the subject on which a delivery is acknowledged; see the package comment
// for the first token of the second one.
func (r *rights) acks(stream string) []string {
	domain := cmp.Or(r.o.Domain, "_")
	return []string{"$JS.ACK." + stream + ".>", "$JS.ACK." + domain + ".*." + stream + ".>"}
}

// anyOf puts a star in place of tokens of a subject that a builder has made.
func anyOf(s string, at ...int) string {
	tokens := strings.Split(s, ".")
	for _, i := range at {
		tokens[i] = "*"
	}
	return strings.Join(tokens, ".")
}

// The tokens of an inbox subject that say the partition and the workflow:
// drover.<ns>.in.<p>.<wid>.….
const partitionToken, workflowToken = 3, 4

func (r *rights) api(verbs ...string) []string {
	all := make([]string, len(verbs))
	for i, v := range verbs {
		all[i] = r.ns.API(v)
	}
	return all
}

// uploads are requests about payloads above 256 KiB.
func (r *rights) uploads() []string {
	return append(r.api("upload"), r.ns.API("upload")+".>", r.ns.API("download"))
}

const (
	whyUploads  = "inputs and results above 256 KiB; leave it out where there are none"
	whyControl  = "what it is told at once: cancel this, drain"
	whyAnswers  = "answers to whoever asks"
	whyClaims   = "claims and nodes: who owns what, and who is there"
	whyAccount  = "what the account and its streams are"
	changedWhy  = "namespaces that come and go"
	allServices = "$SRV.>"
	flowControl = "$JS.FC.>"
)

func (r *rights) decider() []Grant {
	types := r.o.Types
	g := Grant{Why: "decisions to make, and that somebody is there to make them"}
	for _, t := range types {
		g.Publish = append(g.Publish, r.ns.Announce(t))
		g.Subscribe = append(g.Subscribe, r.ns.Decide(t), r.ns.Decide(t)+".*")
	}
	if len(types) == 0 {
		g.Publish = []string{r.ns.AllAnnounce()}
		any := anyOf(r.ns.Decide("t"), 3)
		g.Subscribe = []string{any, any + ".*"}
	}
	stream := kvStream(r.ns.BucketFlows())
	return []Grant{
		g,
		{Why: "histories longer than the window of a task", Publish: r.api("history")},
		{
			Why:     "what brokers can do; leave it out where no workflow is written as code",
			Publish: []string{schemas.BrokersSubject},
		},
		{
			Why: "deployed flows; leave it out where programs decide",
			Publish: []string{
				r.ofStream("STREAM.MSG.GET.%", stream), r.ofStream("DIRECT.GET.%", stream),
			},
		},
		{Why: whyUploads, Publish: r.uploads()},
	}
}

func (r *rights) activity() []Grant {
	var pull, report, bury, offers []string
	for _, list := range r.o.Lists {
		offers = append(offers, r.ns.Offer(list))
		stream := r.ns.StreamTasks(list)
		for _, consumer := range subject.Consumers() {
			pull = append(pull, r.js("CONSUMER.MSG.NEXT."+stream+"."+consumer))
		}
		pull = append(pull, r.acks(stream)...)
		report = append(report,
			r.ns.AllActOutcomes(list), r.ns.AllOutcomesOf(list), r.ns.AllBeatsOf(list))
		bury = append(bury, r.ns.Dead(dead.ReasonUndecodableTask, "tasks", list)+".>")
	}
	told := r.ns.AllControl()
	if r.o.Identity != "" {
		told = r.ns.Control(r.o.Identity)
	}
	return []Grant{
		{Why: "take tasks and offers of them, and settle them", Publish: pull, Subscribe: offers},
		{Why: "outcomes, questions and heartbeats", Publish: report},
		{Why: "tasks that nobody can read", Publish: bury},
		{Why: "have the list opened", Publish: r.api("tasklist")},
		{Why: whyUploads, Publish: r.uploads()},
		{Why: whyControl, Subscribe: []string{told}},
		r.owned(),
	}
}

func (r *rights) signaler() []Grant {
	tokens := strings.Split(r.ns.AllSignals(), ".") // drover.<ns>.signal.*.*
	why := "signals of any name to any workflow"
	if r.o.Workflow != "" || r.o.Signal != "" {
		why = "signals"
	}
	if r.o.Signal != "" {
		tokens[len(tokens)-1] = subject.Token(r.o.Signal)
		why += " named " + r.o.Signal
	}
	if r.o.Workflow != "" {
		tokens[len(tokens)-2] = subject.Token(r.o.Workflow)
		why += " to the workflow " + r.o.Workflow
	}
	return []Grant{{Why: why, Publish: []string{strings.Join(tokens, ".")}}}
}

func (r *rights) client() []Grant {
	return []Grant{
		{
			Why:     "start, signal, wait, and replay what has ended; to force that is for operators",
			Publish: r.api(clientVerbs...),
		},
		r.owned(),
		r.announced(),
		{Why: whyUploads, Publish: r.uploads()},
	}
}

// registry is reading claims and nodes, without a consumer.
func (r *rights) registry() Grant {
	g := Grant{Why: whyClaims}
	for _, bucket := range []string{subject.BucketNodes, r.ns.BucketClaims()} {
		stream := kvStream(bucket)
		g.Publish = append(g.Publish, r.js("STREAM.INFO."+stream), r.js("STREAM.MSG.GET."+stream),
			r.js("DIRECT.GET."+stream))
	}
	return g
}

// announced is hearing of recycles before they begin.
func (r *rights) announced() Grant {
	return Grant{
		Why: "hear of recycles before they begin", Subscribe: []string{r.ns.NoticeRecycle()},
	}
}

// owned is hearing that a partition has a new owner. Without it a call waits for its own time, and
// some of what the owner before had offered is done twice.
func (r *rights) owned() Grant {
	return Grant{
		Why:       "ask again at once when a broker that died is replaced",
		Subscribe: []string{r.ns.AllOwned()},
	}
}

// flows is reading what is deployed, without a consumer.
func (r *rights) flows() Grant {
	stream := kvStream(r.ns.BucketFlows())
	return Grant{
		Why: "deployed flows",
		Publish: []string{
			r.js("STREAM.INFO." + stream), r.js("STREAM.MSG.GET." + stream),
			r.js("DIRECT.GET." + stream),
		},
	}
}

// states is reading the state keys, without a consumer.
func (r *rights) states() Grant {
	stream := kvStream(r.ns.BucketState())
	return Grant{
		Why: "state keys: nats kv get",
		Publish: []string{
			r.js("STREAM.INFO." + stream), r.js("STREAM.MSG.GET." + stream),
			r.js("DIRECT.GET." + stream), r.js("DIRECT.GET." + stream + ".>"),
		},
	}
}

func (r *rights) viewer() []Grant {
	return []Grant{
		{
			Why:     "workflows, their histories, lists, types, dead letters",
			Publish: r.api(lookingVerbs...),
		},
		{Why: "inputs and results above 256 KiB", Publish: r.api("download")},
		r.owned(),
		r.announced(),
		r.registry(),
		r.flows(),
		r.states(),
	}
}

func (r *rights) operator() []Grant {
	return []Grant{
		{Why: "every verb of the API", Publish: []string{r.ns.AllAPI(), r.ns.API("upload") + ".>"}},
		r.owned(),
		r.announced(),
		{
			Why:     "namespaces: create, list, describe, delete",
			Publish: []string{schemas.NamespaceSubject("*")},
		},
		{
			Why:     "drain a node or a worker, acknowledge its unexpected end",
			Publish: []string{r.ns.AllControl()},
		},
		r.registry(),
		{
			Why:     "remove the record of a node that will not come back",
			Publish: r.kv(subject.BucketNodes),
		},
		r.flows(),
		r.states(),
		{Why: "deploy flows", Publish: r.kv(r.ns.BucketFlows())},
		{
			Why:     "how the streams stand: drover doctor and audit",
			Publish: []string{r.js("INFO"), r.js("STREAM.INFO.*"), r.js("STREAM.NAMES")},
		},
	}
}

// auditor may make consumers, which is why nobody else is given it who is not trusted with
// everything.
func (r *rights) auditor() []Grant {
	var reads []string
	for _, op := range []string{
		"STREAM.LIST", "STREAM.MSG.GET.*", "DIRECT.GET.*", "DIRECT.GET.*.>", "CONSUMER.CREATE.*.>",
		"CONSUMER.LIST.*", "CONSUMER.INFO.*.*", "CONSUMER.DELETE.*.*",
	} {
		reads = append(reads, r.js(op))
	}
	return []Grant{
		{
			Why:     "workflows, their histories, lists, types, dead letters",
			Publish: r.api(lookingVerbs...),
		},
		{Why: "inputs and results above 256 KiB", Publish: r.api("download")},
		{Why: "what runs wait for, and doing it again", Publish: r.api("audit", "repair")},
		r.owned(),
		{
			Why:     whyAccount,
			Publish: []string{r.js("INFO"), r.js("STREAM.INFO.*"), r.js("STREAM.NAMES")},
		},
		{Why: "read every stream", Publish: append(reads, flowControl)},
		{
			Why:     "tasks and alarms of runs that have closed",
			Publish: []string{r.js("STREAM.MSG.DELETE.*")},
		},
	}
}

// common is what every server needs.
func (r *rights) common() []Grant {
	claims := Grant{Why: whyClaims}
	for _, bucket := range []string{subject.BucketNodes, r.ns.BucketClaims()} {
		stream := kvStream(bucket)
		claims.Publish = append(append(claims.Publish, r.kv(bucket)...),
			r.ofStream("STREAM.MSG.GET.%", stream), r.ofStream("DIRECT.GET.%", stream),
			r.ofStream("CONSUMER.CREATE.%.>", stream), r.ofStream("CONSUMER.DELETE.%.*", stream))
	}
	stream := kvStream(r.ns.BucketSchedules())
	recycles := Grant{
		Why: "recycles: its turn, and saying where it stands",
		Publish: append(r.kv(r.ns.BucketSchedules()), r.ofStream("STREAM.MSG.GET.%", stream),
			r.ns.NoticeRecycle(), r.ns.AllOperations()),
		Subscribe: []string{r.ns.NoticeRecycle()},
	}
	return []Grant{
		{
			Why:     whyAccount,
			Publish: []string{r.js("INFO"), r.js("STREAM.INFO.*"), r.js("STREAM.NAMES")},
		},
		claims,
		{Why: "flow control of what it reads", Publish: []string{flowControl}},
		{Why: whyControl, Subscribe: []string{r.ns.AllControl()}},
		{Why: changedWhy, Subscribe: []string{schemas.NamespacesChanged}},
		recycles,
	}
}

func (r *rights) timer() []Grant {
	var alarms []string
	for p := range r.o.Partitions {
		stream := r.ns.StreamAlarms(p)
		alarms = append(alarms, r.ofStream("CONSUMER.CREATE.%.>", stream),
			r.ofStream("CONSUMER.DELETE.%.*", stream), r.ofStream("STREAM.MSG.GET.%", stream),
			r.ofStream("STREAM.MSG.DELETE.%", stream), r.ofStream("STREAM.PURGE.%", stream))
	}
	return append(r.common(),
		Grant{Why: "read alarms, and delete those that have rung", Publish: alarms}, Grant{
			Why: "ring: at the owner, or in the inbox",
			Publish: []string{
				anyOf(r.ns.Fire(0), partitionToken),
				anyOf(r.ns.In(0, "w", "alarm"), partitionToken, workflowToken),
			},
		}, Grant{
			Why:     "alarms that nobody can read",
			Publish: []string{r.ns.Dead(dead.ReasonUndecodableAlarm) + ".>"},
		})
}

func (r *rights) broker() []Grant {
	streams := []string{
		"STREAM.LIST", "STREAM.CREATE.*", "STREAM.UPDATE.*", "STREAM.PURGE.*", "STREAM.MSG.GET.*",
		"STREAM.MSG.DELETE.*",
		"DIRECT.GET.*", "DIRECT.GET.*.>", "CONSUMER.CREATE.*.>", "CONSUMER.LIST.*",
		"CONSUMER.INFO.*.*", "CONSUMER.DELETE.*.*",
	}
	for i, op := range streams {
		streams[i] = r.js(op)
	}
	buckets := []string{"$O." + r.ns.StorePayloads() + ".>"}
	if r.o.Namespace == AllNamespaces {
		buckets = []string{"$O.*.>"}
	}
	for _, b := range []string{
		r.ns.BucketCheckpoints(), r.ns.BucketTypes(), r.ns.BucketLocks(), r.ns.BucketState(),
		r.ns.BucketSchedules(),
	} {
		buckets = append(buckets, r.kv(b)...)
	}
	return append(r.common(), Grant{
		Why:     "everything of the namespace: it writes the histories, tasks and alarms",
		Publish: []string{r.ns.All()},
	}, Grant{
		Why: "requests, outcomes, questions, heartbeats, and deciders that are there",
		Subscribe: []string{
			r.ns.AllAPI(), r.ns.API("upload") + ".>", anyOf(r.ns.Owner(0), partitionToken),
			anyOf(r.ns.Fire(0), partitionToken), anyOf(r.ns.AllBeats(0), partitionToken),
			anyOf(r.ns.AllOutcomes(0), partitionToken), r.ns.AllAnnounce(),
		},
	}, Grant{Why: whyAnswers, Publish: answers()}, Grant{
		Why: "the streams of the namespace, and the work queues of new lists", Publish: streams,
	}, Grant{Why: "positions, types, locks, state keys, large payloads", Publish: buckets},
		Grant{Why: "to be found by nats micro", Subscribe: []string{allServices}})
}

func (r *rights) ops() []Grant {
	return append(r.common(), Grant{
		Why:     "make, change and delete the streams of namespaces, look for lost tasks",
		Publish: []string{r.js(">"), "$JS.ACK.>"},
	}, Grant{
		Why: "the service that keeps the namespaces", Publish: []string{schemas.NamespacesChanged},
		Subscribe: []string{schemas.NamespaceSubject("*"), allServices},
	}, Grant{Why: whyAnswers, Publish: answers()}, Grant{
		Why:       "how long closed runs are kept, those that are kept in memory, and deleting them",
		Subscribe: r.api("retention", "soft", "delete"),
	}, Grant{
		Why: "bulk jobs: begin them, decide them, and act",
		Publish: []string{
			r.ns.Announce(ops.TypeBulk), r.ns.AllOutcomesOf(ops.BulkList),
			r.ns.AllBeatsOf(ops.BulkList), r.ns.API("upload") + ".>",
		},
		Subscribe: append(r.api("bulk"), r.ns.Decide(ops.TypeBulk), r.ns.Decide(ops.TypeBulk)+".*",
			r.ns.Offer(ops.BulkList)),
	}, Grant{
		Why:       "schedules, always-on workflows and recycles",
		Publish:   append(r.kv(r.ns.BucketSchedules()), r.ns.AllOperations()),
		Subscribe: r.api(keeperVerbs...),
	}, Grant{
		Why:     "tell the indexes of runs what is purged",
		Publish: []string{r.ns.AllPurged()}, Subscribe: []string{r.ns.AllPurged()},
	}, Grant{
		Why:       "work on the list of the service: drover.once",
		Publish:   []string{r.ns.AllOutcomesOf(ops.ServiceList), r.ns.AllBeatsOf(ops.ServiceList)},
		Subscribe: []string{r.ns.Offer(ops.ServiceList)},
	}, r.owned(), Grant{
		Why:     "fence a partition whose owner is gone",
		Publish: []string{anyOf(r.ns.Fence(0), partitionToken)},
	}, Grant{
		Why: "ask the owners about lost tasks and stuck runs",
		Publish: []string{
			r.ns.AllActOutcomes("*"), r.ns.AllAPI(), anyOf(r.ns.Owner(0), partitionToken),
		},
	}, Grant{
		Why:     "tell nodes and workers, bury what cannot be read",
		Publish: []string{r.ns.AllControl(), r.ns.AllDead(), r.ns.AllEvents()},
	})
}

func (r *rights) server() []Grant {
	return slices.Concat(r.broker(), r.timer(), r.ops(), r.decider())
}

// Verbs of the API that a role may ask, in the order of the documentation; those of [Operator] are
// all.
func Verbs(r Role) []string {
	switch r {
	case Viewer:
		return append(slices.Clone(lookingVerbs), "download")
	case Client:
		return append(slices.Clone(clientVerbs), "upload", "download")
	case Operator:
		return slices.Concat(lookingVerbs, changingVerbs)
	default:
		return nil
	}
}

// OfOps are the verbs of the API that the role ops answers. The others are the brokers'.
func OfOps() []string { return append([]string{"retention", "soft", "delete", "bulk"}, keeperVerbs...) }
