package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops/permissions"
	"github.com/droverhq/drover/schemas"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// want checks that one of the findings has the status, the check and the words; and that whatever is not well says what to
// change, in its own words or behind them.
func want(t *testing.T, got []Finding, status Status, check string, words ...string) {
	t.Helper()
	for _, f := range got {
		text := f.Found + ": " + f.Change
		hit := f.Status == status && f.Check == check
		for _, w := range words {
			hit = hit && strings.Contains(text, w)
		}
		if hit {
			return
		}
	}
	t.Errorf("got %+v, want %s %s with %q", got, status, check, words)
}

func TestServerAndPayload(t *testing.T) {
	for _, tt := range []struct {
		version string
		err     error
		status  Status
		words   string
	}{
		{"2.15.2", nil, OK, "n is NATS 2.15.2"},
		{"2.11.4", nil, Warn, "2.12.2 or newer is recommended"},
		{"2.10.0", fmt.Errorf("x: %w: it is 2.10.0", topology.ErrServerTooOld), Bad, "upgrade"},
		{"2.15.2", fmt.Errorf("x: %w", topology.ErrNoJetStream), Bad, "jetstream block"},
		{"2.15.2", errors.New("no leader"), Bad, "no leader"},
		{"2.15.2", fmt.Errorf("x: %w", &natsconn.RefusedError{Subject: "$JS.API.INFO"}), Warn, "cannot be seen with this user"},
	} {
		want(t, []Finding{judgeServer(tt.version, "n", tt.err)}, tt.status, checkServer, tt.words)
	}
	want(t, []Finding{judgePayload(64 << 10)}, Bad, checkPayload, "64 KiB", "raise max_payload")
	want(t, []Finding{judgePayload(512 << 10)}, Warn, checkPayload, "1 MiB")
	want(t, []Finding{judgePayload(8 << 20)}, OK, checkPayload, "8 MiB")
}

func TestAccount(t *testing.T) {
	want(t, []Finding{judgeAccount(limits{Store: 10, Streams: 3, MaxStore: -1, MaxMemory: -1, MaxStreams: -1})}, OK, checkAccount, "no limits")
	want(t, []Finding{judgeAccount(limits{Store: 10, MaxStore: 100})}, OK, checkAccount, "10% of its file storage")
	want(t, []Finding{judgeAccount(limits{Store: 85, MaxStore: 100, Streams: 1, MaxStreams: 100})}, Warn, checkAccount, "85%", "raise the limits")
	want(t, []Finding{judgeAccount(limits{Streams: 99, MaxStreams: 100})}, Bad, checkAccount, "99% of its streams")
	want(t, []Finding{judgeAccount(limits{Memory: 99, MaxMemory: 100})}, Bad, checkAccount, "memory")
}

func TestConsumers(t *testing.T) {
	for most, status := range map[int]Status{3: Bad, 4: Warn, 7: Warn} {
		want(t, judgeConsumers(most, 4), status, checkAccount, "too few", "4 partitions", "max_consumers")
	}
	want(t, judgeConsumers(2, 1), Bad, checkAccount, "too few")
	for _, most := range []int{-1, 0, 8} {
		if got := judgeConsumers(most, 4); got != nil {
			t.Errorf("got %v for %d consumers, want nothing", got, most)
		}
	}
}

// An account with tiers has its limits there, and none at the top.
func TestTieredAccount(t *testing.T) {
	whole := limits{Store: 106, Streams: 4}
	got := []Finding{judgeAccount(whole, limits{Tier: "R1", Store: 10, MaxStore: 100, MaxMemory: -1}, limits{Tier: "R3", Store: 288, Streams: 2, MaxStore: 100, MaxStreams: 10})}
	want(t, got, Bad, checkAccount, "10% of its file storage (10 B) in R1; 96% of its file storage (288 B), 20% of its streams (2) in R3")
	want(t, []Finding{judgeAccount(whole, limits{Tier: "R3", Store: 96, MaxStore: 100})}, OK, checkAccount, "32% of its file storage (96 B) in R3")
	want(t, []Finding{judgeAccount(whole, limits{Tier: "R1", Store: 10, Reserved: 98, MaxStore: 100})}, OK, checkAccount,
		"10% of its file storage (10 B), 98% of its file storage is reserved by the limits of streams in R1")
	want(t, []Finding{judgeAccount(whole, limits{Tier: "R1"})}, OK, checkAccount, "uses 106 B in 4 streams and has no limits")
}

func TestSkew(t *testing.T) {
	for _, tt := range []struct {
		ahead  time.Duration
		status Status
		words  string
	}{
		{0, OK, "n agrees"}, {900 * time.Millisecond, OK, "900ms ahead"}, {-2 * time.Second, Warn, "2s behind"}, {2 * time.Second, Warn, "NTP"}, {-time.Minute, Bad, "1m0s behind"},
	} {
		want(t, []Finding{judgeSkew("n", tt.ahead, 0)}, tt.status, checkClock, tt.words)
	}
	want(t, []Finding{judgeSkew("n", 1200*time.Millisecond, 500*time.Millisecond)}, OK, checkClock) // a slow round trip proves nothing
}

// node is a record that was stored now.
func node(name string, change func(*nodes.Info)) nodes.Info {
	i := nodes.Info{Key: name, Stored: noon, NodeRecord: schemas.NodeRecord{
		Node: name, Status: schemas.NodeReady, Roles: []string{"broker", "timers", "ops"}, Namespace: "default", Version: "1", Profile: "single", Sync: "always",
		LastActive: schemas.At(noon), DiskFree: 50 << 30, DiskTotal: 100 << 30,
	}}
	if change != nil {
		change(&i)
	}
	return i
}

func TestNodes(t *testing.T) {
	alive := func(i *nodes.Info) bool { return i.Status != schemas.NodeNotResponding }
	for _, tt := range []struct {
		name   string
		change func(*nodes.Info)
		status Status
		words  string
	}{
		{"well", nil, OK, "2: a, b"},
		{"silent", func(i *nodes.Info) { i.Status = schemas.NodeNotResponding }, Warn, "b does not respond since 2026-01-02T12:00:00Z"},
		{"halted", func(i *nodes.Info) { i.Status = schemas.NodeUnexpectedShutdown }, Bad, `drover node ack b`},
		{"malformed", func(i *nodes.Info) { i.Malformed = true }, Warn, "drover node remove b"},
		{"version", func(i *nodes.Info) { i.Version = "2" }, Warn, "1, 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want(t, judgeNodes([]nodes.Info{node("a", nil), node("b", tt.change)}, "default", alive), tt.status, checkNodes, tt.words)
		})
	}
	want(t, judgeNodes(nil, "default", alive), Bad, checkNodes, "no server is running")
	want(t, judgeNodes([]nodes.Info{node("a", func(i *nodes.Info) { i.Roles = []string{"broker"} })}, "default", alive), Bad, checkNodes, "--roles timers,ops")
	want(t, judgeNodes([]nodes.Info{node("a", nil)}, "other", alive), Bad, checkNodes, "for the namespace other")
	got := judgeNodes([]nodes.Info{node("a", func(i *nodes.Info) { i.Status = schemas.NodeUnexpectedShutdown })}, "default", alive)
	if len(got) != 1 {
		t.Errorf("got %+v, want that it waits, and no more", got)
	}
}

func TestNode(t *testing.T) {
	for _, tt := range []struct {
		change func(*nodes.Info)
		status Status
		check  string
		words  string
	}{
		{nil, OK, checkClock, "n agrees"},
		{nil, OK, checkProfile, "n: single"},
		{nil, OK, checkSync, "n: always"},
		{nil, OK, checkDisk, "50 GiB of 100 GiB are free"},
		{func(i *nodes.Info) { i.Profile, i.Sync = "dev", "1s" }, Warn, checkProfile, "power cut"},
		{func(i *nodes.Info) { i.Profile, i.Sync = "cluster", "2m0s" }, Warn, checkSync, "every 2m0s"},
		{func(i *nodes.Info) { i.LastActive = schemas.At(noon.Add(10 * time.Second)) }, Bad, checkClock, "10s ahead"},
		{func(i *nodes.Info) { i.LastActive = schemas.At(noon.Add(-2 * time.Second)) }, Warn, checkClock, "2s behind"},
		{func(i *nodes.Info) { i.DiskFree = 5 << 30 }, Warn, checkDisk, "make room"},
		{func(i *nodes.Info) { i.DiskFree = 1 << 20 }, Bad, checkDisk, "1 MiB of 100 GiB"},
		{func(i *nodes.Info) { i.InodesTotal = 1 << 20 }, Bad, checkDisk, "50 GiB of 100 GiB are free, and 0 of 1048576 inodes: remove files there"},
		{func(i *nodes.Info) { i.InodesFree, i.InodesTotal = 50, 60 }, Bad, checkDisk, "50 of 60 inodes"},
		{func(i *nodes.Info) { i.InodesFree, i.InodesTotal = 90_000, 1_000_000 }, Warn, checkDisk, "90000 of 1000000 inodes"},
		{func(i *nodes.Info) { i.InodesFree, i.InodesTotal = 500_000, 1_000_000 }, OK, checkDisk, "50 GiB of 100 GiB are free"},
		{func(i *nodes.Info) { i.DiskFree, i.InodesFree, i.InodesTotal = 1<<20, 900, 1000 }, Bad, checkDisk, "make room, or move the store; on a full disk nothing is accepted any more; remove files"},
	} {
		n := node("n", tt.change)
		want(t, judgeNode(&n), tt.status, tt.check, tt.words)
	}
	n := node("n", func(i *nodes.Info) { i.Profile, i.Sync, i.DiskTotal = external, "", 0 })
	if got := judgeNode(&n); len(got) != 2 {
		t.Errorf("got %+v, want clock and profile", got)
	}
}

func TestServersElsewhere(t *testing.T) {
	var always, lazy, none varz
	always.Server.Name, lazy.Server.Name = "a", "b"
	type config = struct {
		SyncAlways   bool          `json:"sync_always"`
		SyncInterval time.Duration `json:"sync_interval"`
	}
	always.Data.JetStream.Config = &config{SyncAlways: true}
	lazy.Data.JetStream.Config = &config{SyncInterval: 2 * time.Minute}
	got := judgeServers([]varz{always, lazy, none})
	want(t, got, OK, checkSync, "a: always")
	want(t, got, Warn, checkSync, "b syncs its files every 2m0s", "sync_interval: always")
	if len(got) != 2 {
		t.Errorf("got %+v, want nothing of a server without JetStream", got)
	}
}

// Of a cluster, the servers that one is not connected to are seen by the streams that they lead.
func TestLeaders(t *testing.T) {
	i := &topology.Inspection{Streams: []topology.StreamState{
		{Name: "a", Leader: "n1", Version: "2.12.2"}, {Name: "b", Leader: "n2", Version: "2.12.1"}, {Name: "c", Leader: "n2", Version: "2.12.1"}, {Name: "d"},
	}}
	got := judgeLeaders(i)
	want(t, got, Bad, checkServer, "n2, which leads b", "it is 2.12.1", "upgrade every server")
	if len(got) != 1 {
		t.Errorf("got %+v, want one finding for each server that is too old", got)
	}
}

func TestStreamsAndReplicas(t *testing.T) {
	well := func() *topology.Inspection {
		i := &topology.Inspection{Streams: []topology.StreamState{{Name: "drover-default-in-0", Replicas: 1}, {Name: "drover-default-dead", Replicas: 1}}}
		i.Name, i.Replicas, i.Partitions = "default", 1, 1
		return i
	}
	for _, tt := range []struct {
		change func(*topology.Inspection)
		status Status
		words  string
	}{
		{func(*topology.Inspection) {}, OK, "2 are as they should be"},
		{func(i *topology.Inspection) { i.Differences = []topology.Difference{{Stream: "x"}} }, Bad, "missing: x"},
		{func(i *topology.Inspection) { i.Differences = []topology.Difference{{Stream: i.Name.StreamPayloads()}} }, Bad, "every large payload that there was"},
		{func(i *topology.Inspection) { i.Differences = []topology.Difference{{Stream: "x", Field: "max_msgs"}} }, Warn, "x (max_msgs)"},
		{func(i *topology.Inspection) {
			i.Differences = []topology.Difference{{Stream: i.Name.StreamTasks("billing"), Field: "max_msgs"}}
		}, Warn, "the next start of a worker of their lists"},
		{func(i *topology.Inspection) {
			i.Differences = []topology.Difference{{Stream: "x", Conflict: true, Err: errors.New("retention is wrong")}}
		}, Bad, "retention is wrong"},
		{func(i *topology.Inspection) {
			for _, name := range []string{"x", "y"} {
				e := &topology.ConflictError{Stream: name, Field: "metadata p", Have: "2", Want: "4", Hint: "restore it"}
				i.Differences = append(i.Differences, topology.Difference{Stream: name, Conflict: true, Err: e})
			}
		}, Bad, "2 streams: metadata p is 2, want 4: restore it; these are x, y"},
		{func(i *topology.Inspection) { i.Deleting = true }, Bad, "being deleted"},
		{func(i *topology.Inspection) { i.Streams[0].Async = true }, Bad, "persist_mode async"},
		{func(i *topology.Inspection) {
			i.ForeignStreams = []topology.ForeignStream{{Stream: "taps", Subjects: []string{"drover.default.api.*"}}}
		}, Bad, "the stream taps, which is not Drover's, takes requests of Drover by drover.default.api.*, and answers them: take the subjects out of it"},
		{func(i *topology.Inspection) {
			i.ForeignStreams = []topology.ForeignStream{{Stream: "taps", Silent: true}}
		}, Warn, "hides that nobody listens"},
	} {
		i := well()
		tt.change(i)
		want(t, judgeStreams(i), tt.status, checkStreams, tt.words)
	}
	for _, tt := range []struct {
		change    func(*topology.Inspection)
		servers   int
		clustered bool
		status    Status
		words     string
	}{
		{func(*topology.Inspection) {}, 1, false, OK, "1 of each stream"},
		{func(*topology.Inspection) {}, 3, true, Warn, "--replicas 3"},
		{func(i *topology.Inspection) { i.Streams[0].Away = []string{"n3"} }, 3, true, Warn, "away: n3"},
		{func(i *topology.Inspection) { i.Streams[0].Lagging = []string{"n2"} }, 3, true, Warn, "behind: n2"},
		{func(i *topology.Inspection) { i.Streams[0].Replicas = 3 }, 3, true, Bad, "no leader: drover-default-in-0"},
	} {
		i := well()
		tt.change(i)
		want(t, []Finding{judgeReplicas(i, tt.servers, tt.clustered)}, tt.status, checkReplicas, tt.words)
	}
	i := well()
	want(t, []Finding{judgeBacklog(i, "default"), judgeDead(i, "default")}, OK, checkBacklog)
	want(t, []Finding{judgeDead(i, "default")}, OK, checkDead)
	i.Streams[0].Messages, i.Streams[1].Messages, i.Streams[1].Oldest = 20_000, 2, noon
	want(t, []Finding{judgeBacklog(i, "default")}, Warn, checkBacklog, "20000 messages in drover-default-in-0")
	want(t, []Finding{judgeDead(i, subject.Namespace("default"))}, Warn, checkDead, "2, the oldest of 2026-01-02T12:00:00Z", "drover dead")
}

func TestOwnersAndLists(t *testing.T) {
	held := []claims.Info{{Key: claims.Partition(0)}, {Key: claims.Alarms(0)}, {Key: claims.Master}}
	want(t, []Finding{judgeOwners(held, 1)}, OK, checkOwners, "each of 1 partitions")
	want(t, []Finding{judgeOwners(held, 2)}, Bad, checkOwners, "partition 1, the alarms of partition 1")
	want(t, []Finding{judgeOwners(held, partitionsUnknown)}, Warn, checkOwners, "how many partitions there are cannot be seen", "1 have one")
	held[2].Expired = true
	want(t, []Finding{judgeOwners(held, partitionsUnknown)}, Bad, checkOwners, "the mastership")
	want(t, []Finding{judgeOwners(held, 1)}, Bad, checkOwners, "the mastership")

	silent := fmt.Errorf("lists: %w", natsconn.ErrTimeout)
	want(t, []Finding{judgeSilence(silent, 4, 5*time.Second)}, Bad, checkLists, "no answer of the API within 5s, though servers listen and hold 4 partitions", "busy, or stand still")
	want(t, []Finding{judgeSilence(silent, 0, 5*time.Second)}, Bad, checkLists, "nobody answers the API")
	want(t, []Finding{judgeSilence(natsconn.ErrNoResponders, 4, 5*time.Second)}, Bad, checkLists, "nobody answers the API", "start")
	want(t, []Finding{judgeSilence(schemas.Errorf(schemas.CodeUnavailable, "no time"), 4, 5*time.Second)}, Bad, checkLists, "a server answers", "no time")

	now := schemas.At(noon)
	list := schemas.TaskListInfo{List: "PCI", Pending: 3, OldestAt: schemas.At(noon.Add(-time.Hour))}
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, Warn, checkLists, "PCI has 3 tasks since 2026-01-02T11:00:00Z")
	list.Workers = 1
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, OK, checkLists)
	// All of its workers are busy, and the oldest task is one that they do.
	list.Workers, list.Working = 0, 1
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, OK, checkLists)
	list.Working, list.OldestAt = 0, now
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, OK, checkLists)
	list.PausedUntil = schemas.At(noon)
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, Warn, checkLists, "paused consumers of PCI until 2026-01-02T12:00:00Z")
	list.GivingUp = []string{"workers"}
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, Bad, checkLists, "workers of PCI", "nats consumer rm")
	list.Untaken = []string{"drover.default.task.PCI.0"}
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, Bad, checkLists, "no consumer takes the tasks drover.default.task.PCI.0", "start a worker of the list again")
	list.Missing = []string{"workers-high"} // E2
	want(t, []Finding{judgeLists([]schemas.TaskListInfo{list}, now)}, Bad, checkLists, "consumers are not there", "workers-high of PCI", "the servers make that anew")
}

func TestPermissions(t *testing.T) {
	all := permissions.Verbs(permissions.Operator)
	without := func(role permissions.Role) []string {
		var rest []string
		for _, v := range all {
			if !contains(permissions.Verbs(role), v) {
				rest = append(rest, v)
			}
		}
		return rest
	}
	want(t, []Finding{judgePermissions(nil)}, OK, checkPermissions, "everything that an operator does")
	want(t, []Finding{judgePermissions(without(permissions.Viewer))}, OK, checkPermissions, "what a viewer does, and not: start")
	want(t, []Finding{judgePermissions(without(permissions.Client))}, OK, checkPermissions, "what a client does")
	want(t, []Finding{judgePermissions(all)}, Warn, checkPermissions, "may not ask: describe", "drover auth template")
}

func contains(all []string, s string) bool {
	return slices.Contains(all, s)
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		has  []Status
		want Status
	}{{nil, OK}, {[]Status{OK, Warn, OK}, Warn}, {[]Status{Bad, Warn}, Bad}} {
		var all []Finding
		for _, s := range tt.has {
			all = append(all, Finding{Status: s})
		}
		if got := Worst(all); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.has, got, tt.want)
		}
	}
}
