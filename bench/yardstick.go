package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// L15 is a limit that stays where it is. L1 plays the messages that the present engine stores, so that an engine which stores fewer
// has a higher limit above it. L15 plays what a W1 workflow stored at one commit, whatever the engine does by now. So a share of it
// says how far the engine has come since then, and may be more than 1.
//
// What follows is that workflow as data, recorded at the commit by the recorder of L1: 2,000 workflows, 64 outstanding, twice with the same
// figures. It is not brought up to date when the engine changes. Only sizes and names were kept of the bodies. They are filled so that
// S2, by which histories are compressed, makes of each kind what it made of those recorded: 133 bytes of a history's message with
// its subject, 38 of an inbox's, 58 of a task.

// yardstickCommit is the engine that was recorded.
const yardstickCommit = "1dbfaa60a211b25f9601a986febf855a2a20235d"

// nobody takes what is only stored.
const nobody = ""

// yardstickMessages are the stored messages of a workflow, in their order.
var yardstickMessages = []struct {
	stream  string // kind of it: see yardstickStreams
	subject string // behind drover.default; yardstickTape fills the names in
	size    int    // mean, with headers, bytes
	fresh   int    // bytes of them that no other message has
	from    string
	taken   string // the process that consumes it
}{
	{"in", "in.{partition}.{workflow}.start", 431, 22, fromServer, fromServer},
	{"history", "history.{partition}.{workflow}.{run}", 794, 110, fromServer, nobody},
	{"history", "history.{partition}.{workflow}.{run}", 989, 110, fromServer, nobody},
	{"tasks-bench", "task.bench.0", 618, 50, fromServer, fromWorker},
	{"in", "in.{partition}.{workflow}.act.bench", 231, 22, fromWorker, fromServer},
	{"history", "history.{partition}.{workflow}.{run}", 755, 110, fromServer, nobody},
	{"history", "history.{partition}.{workflow}.{run}", 990, 110, fromServer, nobody},
	{"tasks-bench", "task.bench.0", 621, 50, fromServer, fromWorker},
	{"in", "in.{partition}.{workflow}.act.bench", 232, 22, fromWorker, fromServer},
	{"history", "history.{partition}.{workflow}.{run}", 756, 110, fromServer, nobody},
	{"history", "history.{partition}.{workflow}.{run}", 990, 110, fromServer, nobody},
	{"tasks-bench", "task.bench.0", 621, 50, fromServer, fromWorker},
	{"in", "in.{partition}.{workflow}.act.bench", 232, 22, fromWorker, fromServer},
	{"history", "history.{partition}.{workflow}.{run}", 756, 110, fromServer, nobody},
	{"history", "history.{partition}.{workflow}.{run}", 827, 110, fromServer, nobody},
}

// yardstickStreams are the streams of that version, all but key-value buckets, and the consumers that got any of these messages. Files
// and no bounds go without saying.
var yardstickStreams = []struct {
	kind     string
	subjects string
	stored   string // subject under which they are stored, if another
	each     bool   // partition has one
	config   jetstream.StreamConfig
	consumer *jetstream.ConsumerConfig
}{
	{"alarms", "alarm.{partition}.>", "", true, jetstream.StreamConfig{Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, AllowDirect: true}, nil},
	{"dead", "dead.>", "", false, jetstream.StreamConfig{DenyDelete: true, AllowDirect: true}, nil},
	{"history", "history.{partition}.>", "", true, jetstream.StreamConfig{
		Discard: jetstream.DiscardNew, DenyDelete: true, AllowDirect: true, Compression: jetstream.S2Compression,
	}, nil},
	{"in", "in.{partition}.>", "", true, jetstream.StreamConfig{Discard: jetstream.DiscardNew, DenyDelete: true, AllowDirect: true}, &jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, FlowControl: true, IdleHeartbeat: 2 * time.Second, InactiveThreshold: 30 * time.Second,
		MemoryStorage: true, Replicas: 1, DeliverSubject: "reader",
	}},
	{"signals", "signal.*.*", "sig.{{partition({partitions},1)}}.{{wildcard(1)}}.{{wildcard(2)}}", false, jetstream.StreamConfig{Discard: jetstream.DiscardNew, DenyDelete: true, AllowDirect: true, Duplicates: 2 * time.Minute}, nil},
	{"tasks-bench", "task.bench.*", "", false, jetstream.StreamConfig{Discard: jetstream.DiscardNew, Retention: jetstream.WorkQueuePolicy}, &jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second, MaxDeliver: -1, MaxWaiting: 8192, MaxAckPending: -1,
		FilterSubject: "drover.default.task.bench.0",
	}},
}

const (
	yardstickSubjects = "drover.default."
	// yardstickDuplicates is the window of the streams that name none: the shortest that there is.
	yardstickDuplicates = 100 * time.Millisecond
	// nameSize is how long the ids of workflows and runs were, and kinship how much of its workflow's id a run's had: both began with
	// the time.
	nameSize = 26
	kinship  = 19
	// nameLetters are what ids were written in.
	nameLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// yardstick is L15: what raw JetStream needs for the messages of W1 as they once were.
func yardstick(ctx context.Context, b *bench, l *line) error {
	outstanding, err := b.outstanding(0)
	if err != nil {
		return err
	}
	workflows := cmp.Or(b.o.n, 2000)
	for _, f := range []struct {
		flag string
		n    int
	}{{"-n", workflows}, {"-partitions", b.o.partitions}} {
		if f.n < 1 {
			return fmt.Errorf("%s is %d: L15 needs at least 1", f.flag, f.n)
		}
	}
	return b.playAll(ctx, yardstickTape(workflows, outstanding, b.o.partitions, b.o.profile), l)
}

// yardstickTape is a tape of some workflows, each of the numbers at least 1. As many workflows as are outstanding take turns, and so do
// the partitions. It is the same each time.
func yardstickTape(workflows, outstanding, partitions int, profile string) *tape {
	t := &tape{Workflows: workflows, Outstanding: outstanding, Partitions: partitions, Profile: profile}
	streams := t.yardstickStreams()
	var seed [32]byte
	copy(seed[:], yardstickCommit)
	dice := rand.NewChaCha8(seed)
	common := make([][]byte, len(yardstickMessages)) // what the messages of a place have in common
	for i, m := range yardstickMessages {
		common[i] = make([]byte, m.size)
		_, _ = dice.Read(common[i]) // never fails
	}
	for first := 0; first < workflows; first += outstanding {
		var round []*strings.Replacer
		for i := first; i < min(first+outstanding, workflows); i++ {
			round = append(round, yardstickNames(dice, i%partitions))
		}
		for place, m := range yardstickMessages {
			for i, names := range round {
				body := append([]byte(nil), common[place]...)
				_, _ = dice.Read(body[:m.fresh])
				t.Messages = append(t.Messages, taped{
					Stream: streams[m.stream][(first+i)%partitions], From: m.from, Subject: yardstickSubjects + names.Replace(m.subject), Body: body,
				})
			}
		}
	}
	return t
}

// yardstickStreams adds the streams, and returns their places by kind and partition.
func (t *tape) yardstickStreams() map[string][]int {
	places := map[string][]int{}
	for _, s := range yardstickStreams {
		for n := range t.Partitions {
			if n > 0 && !s.each {
				places[s.kind] = append(places[s.kind], places[s.kind][0])
				continue
			}
			sp := spool{Config: s.config}
			sp.Config.Name = "drover-default-" + s.kind
			if s.each {
				sp.Config.Name = fmt.Sprintf("%s-%d", sp.Config.Name, n)
			}
			sp.Config.Subjects = []string{yardstickSubjects + strings.ReplaceAll(s.subjects, "{partition}", strconv.Itoa(n))}
			if s.stored != "" {
				sp.Config.SubjectTransform = &jetstream.SubjectTransformConfig{
					Source: sp.Config.Subjects[0], Destination: yardstickSubjects + strings.ReplaceAll(s.stored, "{partitions}", strconv.Itoa(t.Partitions)),
				}
			}
			sp.Config.Duplicates = cmp.Or(s.config.Duplicates, yardstickDuplicates)
			if s.consumer != nil {
				sp.Consumers = []jetstream.ConsumerConfig{*s.consumer}
			}
			places[s.kind] = append(places[s.kind], len(t.Streams))
			t.Streams = append(t.Streams, sp)
		}
	}
	return places
}

// yardstickNames fills the names of a workflow into subjects.
func yardstickNames(dice rand.Source, partition int) *strings.Replacer {
	letters := func(n int) string {
		var s strings.Builder
		for range n {
			s.WriteByte(nameLetters[dice.Uint64()%uint64(len(nameLetters))])
		}
		return s.String()
	}
	workflow := letters(nameSize)
	run := workflow[:kinship] + letters(nameSize-kinship)
	return strings.NewReplacer("{partition}", strconv.Itoa(partition), "{workflow}", workflow, "{run}", run)
}
