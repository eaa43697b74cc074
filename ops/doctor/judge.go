package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Bounds between well, doubtful and bad. None of them is a promise of the service; they say when to
// look.
const (
	mib = 1 << 20

	payloadMin  = 128 << 10 // a broker does not start below it
	payloadGood = mib

	skewUnseen = 100 * time.Millisecond

	skewWarn = time.Second
	skewBad  = 5 * time.Second // half of the time that a claim lasts

	diskWarn, diskBad           = 0.10, 0.02 // shares that are free
	diskWarnBytes, diskBadBytes = 1 << 30, 64 * mib
	inodesWarn, inodesBad       = 1000, 100 // files that can be made: a stream has some ten

	limitWarn, limitBad = 0.80, 0.95 // shares of a limit that are used

	backlogWarn = 10_000 // messages of one inbox
	listWarn    = 5 * time.Minute
)

func judgeServer(version, name string, err error) Finding {
	where := fmt.Sprintf("%s is NATS %s", name, version)
	var major, minor int
	_, _ = fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor)
	switch {
	case errors.Is(err, natsconn.ErrPermission):
		return unseen(checkServer, err)
	case errors.Is(err, topology.ErrServerTooOld):
		return Finding{Bad, checkServer, err.Error(), "upgrade every server of the cluster"}
	case errors.Is(err, topology.ErrNoJetStream):
		return Finding{
			Bad,
			checkServer,
			err.Error(),
			"add a jetstream block to its configuration, name the JetStream domain that has it " +
				"in the context, or connect to another",
		}
	case err != nil:
		return Finding{
			Bad, checkServer, where + "; " + err.Error(),
			"see the log of the NATS server: a cluster without a leader does not answer",
		}
	case major == 2 && minor < 12:
		return Finding{
			Warn,
			checkServer,
			where,
			"2.12.2 or newer is recommended: Drover is tested with the release that drover server holds itself",
		}
	}
	return Finding{Status: OK, Check: checkServer, Found: where + ", with JetStream"}
}

// judgeLeaders is about the other servers of a cluster: each stream is told of by the one that
// leads it, with its version.
func judgeLeaders(i *topology.Inspection) []Finding {
	var found []Finding
	told := map[string]bool{}
	for n := range i.Streams {
		s := &i.Streams[n]
		server := s.Leader + " " + s.Version
		if err := s.TooOld(); err != nil && !told[server] {
			told[server] = true
			found = append(found, Finding{
				Bad, checkServer,
				fmt.Sprintf("%s, which leads %s: %v", cmp.Or(s.Leader, "a server"), s.Name, err),
				"upgrade every server of the cluster",
			})
		}
	}
	return found
}

func judgePayload(n int64) Finding {
	found := fmt.Sprintf("%s for one message", size(n))
	switch {
	case n < payloadMin:
		return Finding{Bad, checkPayload, found, "brokers need at least 128 KiB: raise max_payload"}
	case n < payloadGood:
		return Finding{
			Warn,
			checkPayload,
			found,
			"inputs and results above a third of it go the slow way or are refused: the default of NATS is 1 MiB",
		}
	}
	return Finding{Status: OK, Check: checkPayload, Found: found}
}

func judgeSkew(who string, ahead, doubt time.Duration) Finding {
	off := max(ahead.Abs()-doubt.Abs(), 0)
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	f := Finding{
		Status: OK, Check: checkClock,
		Found: fmt.Sprintf("%s is %v %s the NATS server",
			who, ahead.Abs().Round(time.Millisecond), word),
	}
	if ahead.Abs() < skewUnseen {
		f.Found = who + " agrees with the NATS server"
	}
	if off >= skewWarn {
		f.Status, f.Change = Warn, "run NTP there; what is due is judged by the NATS server's "+
			"clock, what is shown is not"
	}
	if off >= skewBad {
		f.Status = Bad
	}
	return f
}

func judgeStreams(i *topology.Inspection) []Finding {
	found := judgeConflicts(i.Differences)
	// a server opens lists for those who ask, and none at its start
	var missing, changed, lists []string
	for _, d := range i.Differences {
		switch {
		case d.Conflict: // told above
		case d.Field == "" && d.Stream == i.Name.StreamPayloads():
			found = append(found, Finding{
				Bad, checkStreams, "missing: " + d.Stream + ", with every large payload that there was",
				"what was in it is gone unless there is a backup, and a run that needs it " +
					"stands still: \"drover verify\" names the runs; the next large payload makes it anew",
			})
		case d.Field == "":
			missing = append(missing, d.Stream)
		case strings.HasPrefix(d.Stream, i.Name.StreamTasks("")):
			lists = append(lists, d.Stream+" ("+d.Field+")")
		default:
			changed = append(changed, d.Stream+" ("+d.Field+")")
		}
	}
	if i.Deleting {
		found = append(found, Finding{
			Bad, checkStreams, "the namespace is being deleted",
			fmt.Sprintf("finish that with \"drover namespace delete %s\"", i.Name),
		})
	}
	if len(missing) > 0 {
		found = append(found, Finding{
			Bad, checkStreams, "missing: " + strings.Join(missing, ", "),
			"what was in them is gone unless there is a backup; " + topology.Remake(i.Name),
		})
	}
	for _, c := range []struct {
		streams []string
		who     string
	}{{changed, "server"}, {lists, "worker of their lists"}} {
		if len(c.streams) > 0 {
			found = append(found, Finding{
				Warn, checkStreams, "not as Drover made them: " + strings.Join(c.streams, ", "),
				"the next start of a " + c.who + " brings them back to what they should be",
			})
		}
	}
	for _, s := range i.ForeignStreams {
		found = append(found, judgeForeignStream(s))
	}
	for _, s := range i.Streams {
		if s.Async && !i.Repeatable(s.Name) {
			found = append(found, Finding{
				Bad, checkStreams, s.Name + " acknowledges before it writes (persist_mode async)",
				"delete it while it is empty, and start a server",
			})
		}
	}
	if len(found) == 0 {
		found = append(found, Finding{
			Status: OK, Check: checkStreams,
			Found: fmt.Sprintf("%d are as they should be", len(i.Streams)),
		})
	}
	return found
}

// judgeForeignStream is about somebody else's stream on what is asked. With no_ack it gives no
// answer of its own, but who asks is never told any more that nobody listens.
func judgeForeignStream(s topology.ForeignStream) Finding {
	subjects := strings.Join(s.Subjects, ", ")
	f := Finding{
		Bad, checkStreams, fmt.Sprintf("the stream %s, which is not Drover's, takes requests of "+
			"Drover by %s, and answers them", s.Stream, subjects),
		"take the subjects out of it, or delete it; with no_ack it would answer nothing, and " +
			"still hide that nobody listens",
	}
	if s.Silent {
		f.Status, f.Found = Warn, fmt.Sprintf(
			"the stream %s, which is not Drover's, takes requests of Drover by %s, and hides that nobody listens",
			s.Stream, subjects)
		f.Change = "take the subjects out of it, or delete it: requests to servers and workers " +
			"that are gone are given up late"
	}
	return f
}

func judgeReplicas(i *topology.Inspection, servers int, clustered bool) Finding {
	found := fmt.Sprintf("%d of each stream, %d NATS servers are known", i.Replicas, servers)
	away, later := map[string]bool{}, map[string]bool{}
	var headless []string
	for _, s := range i.Streams {
		for _, name := range s.Away {
			away[name] = true
		}
		for _, name := range s.Lagging {
			later[name] = true
		}
		if s.Replicas > 1 && s.Leader == "" {
			headless = append(headless, s.Name)
		}
	}
	switch {
	case len(headless) > 0:
		return Finding{
			Bad, checkReplicas, "no leader: " + strings.Join(headless, ", "),
			"bring the other servers back: without a majority nothing is accepted",
		}
	case len(away) > 0:
		return Finding{
			Warn, checkReplicas, found + "; away: " + keys(away),
			"bring them back: with one more gone nothing is accepted",
		}
	case len(later) > 0:
		return Finding{
			Warn, checkReplicas, found + "; behind: " + keys(later),
			"wait until they have caught up before anything else is stopped",
		}
	case clustered && i.Replicas == 1 && servers >= 3:
		return Finding{
			Warn, checkReplicas, found,
			fmt.Sprintf(
				"each stream is on one server alone: \"drover namespace create %s --replicas 3\" puts it on three",
				i.Name),
		}
	}
	return Finding{Status: OK, Check: checkReplicas, Found: found}
}

// partitionsUnknown is for a user who may not see the streams of the namespace.
const partitionsUnknown = -1

func judgeOwners(held []claims.Info, partitions int) Finding {
	live := map[string]bool{}
	for _, h := range held {
		if !h.Expired && !h.Malformed {
			live[h.Key] = true
		}
	}
	var missing []string
	for p := range max(partitions, 0) {
		if !live[claims.Partition(p)] {
			missing = append(missing, fmt.Sprintf("partition %d", p))
		}
		if !live[claims.Alarms(p)] {
			missing = append(missing, fmt.Sprintf("the alarms of partition %d", p))
		}
	}
	if !live[claims.Master] {
		missing = append(missing, "the mastership")
	}
	if len(missing) > 0 {
		return Finding{
			Bad,
			checkOwners,
			"nobody has " + strings.Join(missing, ", "),
			"start a server with the roles broker, timers and ops; after a crash wait for ten seconds",
		}
	}
	if partitions == partitionsUnknown {
		return Finding{
			Warn, checkOwners,
			fmt.Sprintf(
				"how many partitions there are cannot be seen; %d have one, and there is a master",
				partitionsOwned(held)),
			"see the check streams",
		}
	}
	return Finding{
		Status: OK, Check: checkOwners,
		Found: fmt.Sprintf(
			"each of %d partitions has one, and so have its alarms; there is a master", partitions),
	}
}

// partitionsOwned counts the partitions whose owner has renewed its claim.
func partitionsOwned(held []claims.Info) (n int) {
	for _, h := range held {
		if _, ok := claims.ParsePartition(h.Key); ok && !h.Expired && !h.Malformed {
			n++
		}
	}
	return n
}

// judgeSilence is about an API that gave no answer that counts. Who only listens, and holds
// partitions, may just be busy.
func judgeSilence(err error, owned int, waited time.Duration) Finding {
	waited = waited.Round(100 * time.Millisecond)
	if refusal, ok := errors.AsType[*schemas.Error](err); ok {
		return Finding{
			Bad, checkLists, fmt.Sprintf("a server answers the API of the namespace, and could "+
				"not do what it was asked for %v: %s", waited, refusal.Message),
			"try again; if it stays so, see the load and the log of the servers",
		}
	}
	if errors.Is(err, natsconn.ErrTimeout) && owned > 0 {
		return Finding{
			Bad, checkLists, fmt.Sprintf("no answer of the API within %v, though servers listen "+
				"and hold %d partitions", waited, owned),
			"they are busy, or stand still: try again, and see their load and their logs; more " +
				"servers share the partitions",
		}
	}
	return Finding{
		Bad, checkLists, "nobody answers the API of the namespace",
		"start \"drover server\", and see the checks nodes and owners",
	}
}

// judgeMissing is about a namespace that has no signals stream. What else is left of it is worth
// more than its name: it is to be made over that, and nothing of it deleted.
func judgeMissing(ns subject.Namespace, partitions int, err error) Finding {
	if err == nil && partitions > 0 {
		return Finding{
			Bad, checkStreams,
			fmt.Sprintf("%s is gone, which says what the namespace %s is; "+
				"other streams of it are there, of %d partitions: delete none of them",
				ns.StreamSignals(), ns, partitions),
			fmt.Sprintf(
				"\"drover namespace create %s\" makes it anew for them; give it --retention, "+
					"--retention-flows, --require-types and --description as they were; without "+
					"the first two it keeps closed runs for ever", ns),
		}
	}
	return Finding{
		Bad,
		checkStreams,
		fmt.Sprintf("there is no namespace %s", ns),
		fmt.Sprintf(
			"start \"drover server\", or \"drover namespace create %s\"; or check --namespace, "+
				"and the JetStream domain of the context", ns),
	}
}

func judgeBacklog(i *topology.Inspection, ns subject.Namespace) Finding {
	var worst topology.StreamState
	for _, s := range i.Streams {
		if strings.HasPrefix(s.Name, strings.TrimSuffix(ns.StreamIn(0), "0")) &&
			s.Messages > worst.Messages {
			worst = s
		}
	}
	if worst.Messages >= backlogWarn {
		return Finding{
			Warn, checkBacklog, fmt.Sprintf("%d messages in %s", worst.Messages, worst.Name),
			"more servers share the partitions; see \"drover audit\"",
		}
	}
	return Finding{
		Status: OK, Check: checkBacklog,
		Found: fmt.Sprintf("at most %d messages in an inbox", worst.Messages),
	}
}

func judgeDead(i *topology.Inspection, ns subject.Namespace) Finding {
	for _, s := range i.Streams {
		if s.Name == ns.StreamDead() && s.Messages > 0 {
			return Finding{
				Warn, checkDead,
				fmt.Sprintf("%d, the oldest of %s", s.Messages,
					s.Oldest.UTC().Format(time.RFC3339)),
				"\"drover dead\" says what could not be applied, and why",
			}
		}
	}
	return Finding{Status: OK, Check: checkDead, Found: "none"}
}

func judgeLists(lists []schemas.TaskListInfo, now schemas.Timestamp) Finding {
	var stuck, paused, untaken, givingUp, missing []string
	for _, l := range lists {
		for _, c := range l.GivingUp {
			givingUp = append(givingUp, c+" of "+l.List)
		}
		for _, c := range l.Missing {
			missing = append(missing, c+" of "+l.List)
		}
		untaken = append(untaken, l.Untaken...)
		if l.PausedUntil != 0 {
			paused = append(paused,
				fmt.Sprintf("%s until %s", l.List, l.PausedUntil.Time().UTC().Format(time.RFC3339)))
		}
		if l.Pending > 0 && l.Workers == 0 && l.Working == 0 && l.OldestAt != 0 &&
			now.Sub(l.OldestAt) >= listWarn {
			stuck = append(stuck, fmt.Sprintf("%s has %d tasks since %s",
				l.List, l.Pending, l.OldestAt.Time().UTC().Format(time.RFC3339)))
		}
	}
	if len(missing) > 0 {
		return Finding{
			Bad, checkLists,
			"consumers are not there, and their tasks go to nobody: " + strings.Join(missing, ", "),
			"somebody has deleted them: " + schemas.MissingHint,
		}
	}
	if len(untaken) > 0 {
		return Finding{
			Bad, checkLists, "no consumer takes the tasks " + strings.Join(untaken, ", "),
			"somebody has changed a consumer: " + schemas.UntakenHint,
		}
	}
	if len(givingUp) > 0 {
		return Finding{
			Bad, checkLists,
			"consumers give up what a worker that died had in hand: " +
				strings.Join(givingUp, ", "),
			"somebody has given them a limit of deliveries: " + schemas.GivingUpHint,
		}
	}
	if len(stuck) > 0 {
		return Finding{
			Warn, checkLists, "no worker waits: " + strings.Join(stuck, ", "),
			"start activity workers for these lists; see \"drover tasklist list\"",
		}
	}
	if len(paused) > 0 {
		return Finding{
			Warn, checkLists, "somebody has paused consumers of " + strings.Join(paused, ", "),
			"until then some tasks go to no worker: nats consumer resume",
		}
	}
	return Finding{
		Status: OK, Check: checkLists,
		Found: fmt.Sprintf("%d, none of them left alone", len(lists)),
	}
}

func keys(m map[string]bool) string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// size prints a size for people.
func size(n int64) string {
	v, unit := float64(max(n, 0)), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" || v >= 100 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
